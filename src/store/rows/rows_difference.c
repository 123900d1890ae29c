/* What changed, as JSON: two structs compared by what would be stored of them. */
#include "store/difference.h"

#include "base/json.h"
#include "core/callback_allow.h"
#include "core/render.h"
#include "core/log/audit.h"
#include "store/rows/rows_registry.h"
#include "store/rows/type_limits.h"

/* Fields that change with every write, what identifies the object anyway, and what is made of
 * secrets. */
static bool is_noise(const char *name)
{
    return strcmp(name, "hash") == 0 || strncmp(name, "former_", 7) == 0 ||
           strcmp(name, "generation") == 0 ||
           strcmp(name, "id") == 0 || strcmp(name, "updated_at") == 0 ||
           strcmp(name, "namespace") == 0 || strncmp(name, "last_", 5) == 0;
}

static bool same_value(const struct rows_value *a, const struct rows_value *b)
{
    if (a->null || b->null)
        return a->null == b->null;
    switch (a->kind) {
    case FIELD_INT:
    case FIELD_TIME:
    case FIELD_BOOL:
        return a->number == b->number;
    case FIELD_UUID:
        return uuid_eq(&a->id, &b->id);
    default:
        return str_eq(a->text, b->text);
    }
}

/* The content of payloads is not for everyone who may read the trail; that it changed is. */
static void write_text(struct buf *out, const struct field *field, const struct rows_value *value)
{
    if (strcmp(field->name, "payload") == 0)
        render_int(out, "payload_bytes", (int64_t)value->text.len);
    else if (strcmp(field->name, "callback_url") == 0)
        render_text(out, field->name, callback_origin(value->text));
    else if (field->kind == FIELD_JSON || field->flags & FIELD_LIST)
        render_json(out, field->name, value->text);
    else
        render_text(out, field->name, value->text);
}

static void write_value(struct buf *out, const struct field *field,
                        const struct rows_value *value)
{
    if (value->null)
        render_json(out, field->name, STR_NONE);
    else if (field->kind == FIELD_INT)
        render_int(out, field->name, value->number);
    else if (field->kind == FIELD_TIME)
        render_time(out, field->name, value->number);
    else if (field->kind == FIELD_BOOL)
        render_bool(out, field->name, value->number != 0);
    else if (field->kind == FIELD_UUID)
        render_uuid(out, field->name, &value->id);
    else
        write_text(out, field, value);
}

/* The fields of `row` that are other in `than`; of an object that was made or removed (than NULL)
 * all that have a value. */
static bool write_side(struct buf *out, const char *side, const struct field_table *table,
                       const void *row, const void *than)
{
    bool any = false;

    json_write_key(out, side);
    buf_byte(out, '{');
    for (uint32_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        struct rows_value value, other = {.null = true};

        if (is_noise(field->name))
            continue;
        value_of_field(field, row, &value);
        if (than)
            value_of_field(field, than, &other);
        if (than ? same_value(&value, &other) : value.null)
            continue;
        write_value(out, field, &value);
        any = true;
    }
    buf_byte(out, '}');
    return any;
}

struct str store_difference(const struct field_table *table, const void *before, const void *after,
                            struct arena *arena)
{
    BUF_AUTO struct buf text = BUF_INIT(AUDIT_CHANGE_BYTES_MAX);
    bool any = false;

    buf_byte(&text, '{');
    if (before)
        any |= write_side(&text, "before", table, before, after);
    if (after)
        any |= write_side(&text, "after", table, after, before);
    buf_byte(&text, '}');
    if (text.failed)
        return STR("{\"too_large\":true}");
    return any ? arena_str(arena, buf_view(&text)) : STR_NONE;
}

struct str store_queue_difference(const struct queue_row *before, const struct queue_row *after,
                                  struct arena *arena)
{
    BUF_AUTO struct buf old_limits = BUF_INIT(TYPE_LIMITS_BYTES_MAX);
    BUF_AUTO struct buf new_limits = BUF_INIT(TYPE_LIMITS_BYTES_MAX);
    struct stored_queue was, is;

    if (before)
        rows_queue_stored(before, &old_limits, &was);
    if (after)
        rows_queue_stored(after, &new_limits, &is);
    return store_difference(&rows_queue_table, before ? &was : NULL, after ? &is : NULL, arena);
}
