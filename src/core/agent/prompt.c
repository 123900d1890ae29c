/* Fills prompt templates. */
#include "core/agent/prompt.h"

#include <stdlib.h>

#include "base/json.h"

#define NAME_BYTES_MAX 200

static struct str trim(struct str text)
{
    while (text.len && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = str_span(text.data + 1, text.len - 1);
    while (text.len && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* The next {{name}} at or behind *at: true, with what stands before and the name. */
static bool next_name(struct str text, size_t *at, struct str *before, struct str *name)
{
    const char *open = *at < text.len ? memmem(text.data + *at, text.len - *at, "{{", 2) : NULL;
    const char *close;

    if (!open)
        return false;
    *before = str_span(text.data + *at, (size_t)(open - text.data) - *at);
    close = memmem(open, text.len - (size_t)(open - text.data), "}}", 2);
    *name = close ? trim(str_span(open + 2, (size_t)(close - open) - 2)) : STR_NONE;
    *at = close ? (size_t)(close - text.data) + 2 : text.len;
    return true;
}

static struct str first_part(struct str name, struct str *rest)
{
    const char *point = name.len ? memchr(name.data, '.', name.len) : NULL;
    size_t len = point ? (size_t)(point - name.data) : name.len;

    *rest = point ? str_span(point + 1, name.len - len - 1) : STR_NONE;
    return str_span(name.data, len);
}

int prompt_check(struct str text, struct err *err)
{
    static const char *const roots[] = {"payload", "data", "metadata", "dependencies", "children"};
    struct str before, name, rest;
    size_t at = 0;

    while (next_name(text, &at, &before, &name)) {
        struct str root;
        bool known;

        if (!name.data)
            return err_set(err, ERR_INVALID, "a {{ of the prompt is never closed with }}");
        root = first_part(name, &rest);
        known = !rest.data && (str_is(root, "id") || str_is(root, "type"));
        for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
            known |= str_is(root, roots[i]);
        if (!known || name.len > NAME_BYTES_MAX || (rest.data && rest.len == 0))
            return err_set(err, ERR_INVALID, "the prompt names {{" STR_FMT "}}; it may name id, "
                           "type, payload, data, metadata, dependencies and children, and members "
                           "such as {{payload.topic}}", STR_ARG(str_cut(name, 60)));
    }
    return 0;
}

static struct str element(struct str array, struct str index)
{
    struct json_iter iter;
    struct str value;
    int64_t wanted;

    if (!str_to_int64(index, &wanted) || wanted < 0)
        return STR_NONE;
    json_begin(array, &iter);
    while (json_next_element(&iter, &value))
        if (wanted-- == 0)
            return value;
    return STR_NONE;
}

static struct str walk(struct str value, struct str path)
{
    while (path.data && value.data) {
        struct str rest, part = first_part(path, &rest);

        if (json_kind(value) == JSON_ARRAY)
            value = element(value, part);
        else
            value = json_kind(value) == JSON_OBJECT ? json_get(value, part) : STR_NONE;
        path = rest;
    }
    return value;
}

static void write_value(struct str value, struct arena *arena, struct buf *out)
{
    if (!value.data || json_kind(value) == JSON_NULL)
        return;
    if (json_kind(value) == JSON_STRING)
        buf_str(out, json_string(value, arena));
    else
        buf_str(out, value);
}

static void write_name(struct str name, const struct prompt_values *values, struct arena *arena,
                       struct buf *out)
{
    struct str rest, root = first_part(name, &rest);

    if (str_is(root, "id"))
        buf_str(out, values->id);
    else if (str_is(root, "type"))
        buf_str(out, values->type);
    else if (str_is(root, "payload"))
        write_value(walk(values->payload, rest), arena, out);
    else if (str_is(root, "metadata"))
        write_value(walk(values->metadata, rest), arena, out);
    else if (str_is(root, "data"))
        write_value(walk(values->data, rest), arena, out);
    else /* dependencies and children are members of data */
        write_value(walk(values->data, name), arena, out);
}

void prompt_write(struct str text, const struct prompt_values *values, struct arena *arena,
                  struct buf *out)
{
    struct str before, name;
    size_t at = 0, start = 0;

    while (next_name(text, &at, &before, &name)) {
        buf_str(out, before);
        if (name.data)
            write_name(name, values, arena, out);
        start = at;
    }
    buf_append(out, text.data + start, text.len - start);
}
