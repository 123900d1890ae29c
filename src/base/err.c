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

void err_record(struct err *err, enum err_code code, const char *field, const char *format, ...)
{
    struct err made = {.code = code};
    va_list args;

    if (!err)
        return;
    /* Written beside err first: an argument may be err's own text, put into a longer sentence. */
    snprintf(made.field, sizeof made.field, "%s", field ? field : "");
    va_start(args, format);
    vsnprintf(made.text, sizeof made.text, format, args);
    va_end(args);
    *err = made;
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
