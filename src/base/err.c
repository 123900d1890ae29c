/* The error table of base/err.h spelled out, and filling a struct err.
 * Nothing here allocates, so that running out of memory can be reported too. Any thread. */
#include "base/err.h"

#include "base/str.h"

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

/* Names of users may be in it, cut to fit in the middle of a character: it must be UTF-8 again,
 * because it goes into JSON. */
static void mend_utf8(char *text)
{
    size_t len = strlen(text);
    size_t kept = 0;

    for (size_t at = 0; at < len;) {
        size_t step = str_utf8_step(text + at, len - at);

        memmove(text + kept, text + at, step ? step : 1);
        if (step == 0 && (kept == 0 || text[kept - 1] != '?'))
            text[kept++] = '?';
        kept += step;
        at += step ? step : 1;
    }
    text[kept] = '\0';
}

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
    mend_utf8(made.field);
    mend_utf8(made.text);
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
