/* Members of a request body by a table of names. Strict: a misspelt member is refused and not
 * silently ignored. The task object itself has a table of its own in core/spec/spec.c, reports in
 * parse_report.c. Pure, any thread. */
#include "server/body.h"

static struct body_field *find(struct body_field *fields, size_t count, struct str raw_key)
{
    for (size_t i = 0; i < count; i++)
        if (json_key_is(raw_key, str_of(fields[i].name)))
            return &fields[i];
    return NULL;
}

int body_parse(struct str object, struct body_field *fields, size_t count, struct err *err)
{
    struct json_member member;
    struct json_iter iter;

    if (json_kind(object) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "this must be an object");
    json_begin(object, &iter);
    while (json_next_member(&iter, &member)) {
        struct body_field *field = find(fields, count, member.key);
        char name[sizeof err->field];

        if (!field) {
            snprintf(name, sizeof name, STR_FMT, STR_ARG(member.key));
            return err_set_field(err, ERR_INVALID, name, "there is no field '%s' here", name);
        }
        field->is_null = json_kind(member.value) == JSON_NULL;
        field->value = field->is_null ? STR_NONE : member.value;
    }
    return 0;
}

int body_text(const struct body_field *field, size_t bytes_max, struct arena *arena,
              struct str *out, struct err *err)
{
    struct str text;

    if (!field->value.data)
        return 0;
    if (json_kind(field->value) != JSON_STRING)
        return err_set_field(err, ERR_INVALID, field->name, "'%s' must be a text", field->name);
    text = json_string(field->value, arena);
    TRY_MEMORY(text.data);
    if (text.len > bytes_max)
        return err_set_field(err, ERR_INVALID, field->name, "'%s' has more than %zu bytes",
                             field->name, bytes_max);
    *out = text;
    return 0;
}

int body_int(const struct body_field *field, int64_t min, int64_t max, int64_t *out,
             struct err *err)
{
    int64_t number;

    if (!field->value.data)
        return 0;
    if (json_kind(field->value) != JSON_NUMBER || !json_int64(field->value, &number) ||
        number < min || number > max)
        return err_set_field(err, ERR_INVALID, field->name,
                             "'%s' must be a whole number from %lld to %lld", field->name,
                             (long long)min, (long long)max);
    *out = number;
    return 0;
}

int body_bool(const struct body_field *field, bool *out, struct err *err)
{
    enum json_kind kind;

    if (!field->value.data)
        return 0;
    kind = json_kind(field->value);
    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return err_set_field(err, ERR_INVALID, field->name, "'%s' must be true or false",
                             field->name);
    *out = kind == JSON_TRUE;
    return 0;
}

int body_check_name(const char *field, struct str text, size_t bytes_max, struct err *err)
{
    if (text.len == 0 || text.len > bytes_max)
        return err_set_field(err, ERR_INVALID, field, "'%s' must have 1 to %zu bytes", field,
                             bytes_max);
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7F)
            return err_set_field(err, ERR_INVALID, field, "'%s' must not hold control characters",
                                 field);
    return 0;
}

int body_texts(const struct body_field *field, uint32_t count_max, size_t bytes_max, bool copy,
               struct arena *arena, const struct str **out, uint32_t *count, struct err *err)
{
    struct json_iter iter;
    struct str value;
    struct str *texts;
    uint32_t n = 0;

    if (!field->value.data)
        return 0;
    if (json_kind(field->value) != JSON_ARRAY || json_count(field->value) > count_max)
        return err_set_field(err, ERR_INVALID, field->name,
                             "'%s' must be an array of at most %u texts", field->name, count_max);
    texts = TRY_MEMORY(arena_alloc_array(arena, json_count(field->value) + 1, sizeof *texts));
    json_begin(field->value, &iter);
    while (json_next_element(&iter, &value)) {
        struct str text = json_kind(value) == JSON_STRING ? json_string(value, arena) : STR("");

        TRY(body_check_name(field->name, text, bytes_max, err));
        texts[n] = copy ? arena_str(arena, text) : text;
        TRY_MEMORY(texts[n].data);
        n++;
    }
    *out = texts;
    *count = n;
    return 0;
}
