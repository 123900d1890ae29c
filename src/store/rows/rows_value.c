/* Parameters, and the stored values of structs' fields. Pure; any thread. */
#include "store/rows/rows.h"

#include "core/spec/spec.h"

#include <stdio.h>

struct rows_value value_int(int64_t number)
{
    return (struct rows_value){.kind = FIELD_INT, .number = number};
}

struct rows_value value_int_if(bool given, int64_t number)
{
    return (struct rows_value){.kind = FIELD_INT, .null = !given, .number = number};
}

struct rows_value value_time(int64_t us)
{
    return (struct rows_value){.kind = FIELD_TIME, .null = us == 0, .number = us};
}

struct rows_value value_moment(int64_t us)
{
    return (struct rows_value){.kind = FIELD_TIME, .number = us};
}

struct rows_value value_bool(bool truth)
{
    return (struct rows_value){.kind = FIELD_BOOL, .number = truth};
}

struct rows_value value_text(struct str text)
{
    return (struct rows_value){.kind = FIELD_TEXT, .null = !text.data, .text = text};
}

struct rows_value value_word(const char *word)
{
    return value_text(str_of(word));
}

struct rows_value value_uuid(const struct uuid *id)
{
    return (struct rows_value){.kind = FIELD_UUID, .null = !id || uuid_is_nil(id),
                               .id = id ? *id : (struct uuid){{0}}};
}

struct rows_value value_ids(const struct uuid *ids, uint32_t count)
{
    return (struct rows_value){.kind = FIELD_UUID, .ids = ids, .ids_count = count};
}

/* ---- of fields ---- */

static struct str text_at(const struct field *field, const char *at)
{
    struct str text = *(const struct str *)(const void *)at;

    if (!text.data && field->flags & FIELD_ALWAYS)
        text = str_of(field->otherwise ? field->otherwise : "");
    return text;
}

/* The word of a level where there is one, else the number. */
static void write_priority(int64_t priority, struct rows_value *value)
{
    const char *word = priority_level(priority);

    if (!word) {
        snprintf(value->digits, sizeof value->digits, "%lld", (long long)priority);
        word = value->digits;
    }
    value->text = str_of(word);
}

static void write_id(const struct uuid *id, struct rows_value *value)
{
    value->digits[0] = '\0';
    if (!uuid_is_nil(id))
        uuid_format(id, value->digits);
    value->text = str_of(value->digits);
}

static void write_text(const struct field *field, const char *at, struct rows_value *value)
{
    int64_t number;

    switch (field->kind) {
    case FIELD_PRIORITY:
        write_priority(field_number(field, at), value);
        break;
    case FIELD_ID_TEXT:
        write_id((const struct uuid *)(const void *)at, value);
        break;
    case FIELD_HASH:
        value->text = str_of(at);
        break;
    case FIELD_WORD:
    case FIELD_MARK:
        number = field_number(field, at);
        value->text = field->flags & FIELD_EMPTY && number == field->empty
                          ? STR_NONE
                          : str_of(field->words->word((int)number));
        break;
    default:
        value->text = text_at(field, at);
    }
    value->kind = FIELD_TEXT;
    value->null = !value->text.data;
}

void value_of_field(const struct field *field, const void *row, struct rows_value *value)
{
    const char *at = (const char *)row + field->offset;

    value->kind = field->kind;
    value->ids_count = 0;
    switch (field->kind) {
    case FIELD_INT:
    case FIELD_BOOL:
        value->number = field_number(field, at);
        value->null = field->flags & FIELD_EMPTY && value->number == field->empty;
        break;
    case FIELD_TIME:
        value->number = field_number(field, at);
        value->null = value->number == 0 && !(field->flags & FIELD_ALWAYS);
        break;
    case FIELD_UUID:
        value->id = *(const struct uuid *)(const void *)at;
        value->null = uuid_is_nil(&value->id);
        break;
    default:
        write_text(field, at, value);
    }
    if (field->has && !((const bool *)row)[field->has])
        value->null = true;
}
