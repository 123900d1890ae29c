/* The error table of base/err.h spelled out, and filling a struct err.
 * Nothing here allocates, so that running out of memory can be reported too. Any thread. */
#include "base/err.h"

#include <stdarg.h>
#include <string.h>

static const struct {
    int http_status;
    int exit_code;
    const char *word;
} table[ERR_COUNT] = {
    [ERR_NONE] = {200, 0, "ok"},
#define X(name, http, exit_code, word) [name] = {http, exit_code, word},
    ERR_TABLE(X)
#undef X
};

static void fill(struct err *err, enum err_code code, const char *field, const char *format,
                 va_list args)
{
    struct err made = {.code = code};

    /* Written beside err first: an argument may be err's own text, put into a longer sentence. */
    snprintf(made.field, sizeof made.field, "%s", field ? field : "");
    vsnprintf(made.text, sizeof made.text, format, args);
    *err = made;
}

int err_set(struct err *err, enum err_code code, const char *format, ...)
{
    if (err) {
        va_list args;

        va_start(args, format);
        fill(err, code, "", format, args);
        va_end(args);
    }
    return -(int)code;
}

int err_set_field(struct err *err, enum err_code code, const char *field, const char *format, ...)
{
    if (err) {
        va_list args;

        va_start(args, format);
        fill(err, code, field, format, args);
        va_end(args);
    }
    return -(int)code;
}

/* A code from outside the table counts as ERR_INTERNAL: reporting an error must never crash. */
static enum err_code known(enum err_code code)
{
    return (unsigned int)code < ERR_COUNT ? code : ERR_INTERNAL;
}

int err_http_status(enum err_code code)
{
    return table[known(code)].http_status;
}

int err_exit_code(enum err_code code)
{
    return table[known(code)].exit_code;
}

const char *err_word(enum err_code code)
{
    return table[known(code)].word;
}

enum err_code err_from_word(const char *word)
{
    for (int code = 1; word && code < ERR_COUNT; code++)
        if (strcmp(table[code].word, word) == 0)
            return (enum err_code)code;
    return ERR_INTERNAL;
}
