#include "core/queue_name.h"

#include "core/task/task.h"

#define SEPARATOR '\x1e'

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_' || c == '.';
}

int namespace_check_name(struct str name, struct err *err)
{
    bool good = name.len >= 1 && name.len <= NAMESPACE_BYTES_MAX && name.data[0] != '-' &&
                name.data[0] != '_' && name.data[0] != '.';

    for (size_t i = 0; good && i < name.len; i++)
        good = is_name_char(name.data[i]);
    if (good)
        return 0;
    return err_set_field(err, ERR_INVALID, "namespace",
                         "a namespace is 1 to %d letters, digits, '-', '_' and '.', and begins "
                         "with a letter or a digit", NAMESPACE_BYTES_MAX);
}

static const char *separator_of(struct str full)
{
    return full.len ? memchr(full.data, SEPARATOR, full.len) : NULL;
}

struct str queue_name_full(struct str namespace_name, struct str plain, struct arena *arena)
{
    char *text;

    if (str_is(namespace_name, TASK_DEFAULT_NAMESPACE))
        return plain;
    text = arena_alloc(arena, namespace_name.len + 1 + plain.len + 1);
    if (!text || !plain.data)
        return STR_NONE;
    memcpy(text, namespace_name.data, namespace_name.len);
    text[namespace_name.len] = SEPARATOR;
    memcpy(text + namespace_name.len + 1, plain.data, plain.len);
    return str_span(text, namespace_name.len + 1 + plain.len);
}

int queue_name_enter(struct str namespace_name, struct str *name, struct arena *arena,
                     struct err *err)
{
    if (!separator_of(*name)) {
        *name = queue_name_full(namespace_name, *name, arena);
        return name->data ? 0 : err_no_memory(err);
    }
    if (queue_name_in(*name, namespace_name))
        return 0;
    return err_set_field(err, ERR_INVALID, "queue",
                         "\"queue\" must not contain control characters");
}

struct str queue_name_plain(struct str full)
{
    const char *at = separator_of(full);

    return at ? str_span(at + 1, (size_t)(full.data + full.len - at) - 1) : full;
}

struct str queue_name_namespace(struct str full)
{
    const char *at = separator_of(full);

    return at ? str_span(full.data, (size_t)(at - full.data)) : STR(TASK_DEFAULT_NAMESPACE);
}

bool queue_name_in(struct str full, struct str namespace_name)
{
    return str_eq(queue_name_namespace(full), namespace_name);
}
