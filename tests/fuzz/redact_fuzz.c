/* Rules that take things out of log lines: the first line is a pattern, or a JSON pointer if it
 * begins with a slash; the second a message; the rest a context. A rule is refused with a sentence
 * or works; what comes out is a text and JSON again. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "core/log/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str take_line(struct str *rest)
{
    const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
    struct str line = end ? str_span(rest->data, (size_t)(end - rest->data)) : *rest;

    *rest = end ? str_span(end + 1, rest->len - line.len - 1) : STR("");
    return line;
}

static void work(const struct redact_rule *rule, struct str message, struct str context)
{
    struct arena arena = ARENA_INIT(8 * 1024 * 1024);
    struct err err = {0};
    struct redact *redact = NULL;
    struct str trimmed = STR_NONE;
    int64_t left_us = REDACT_REPORT_CPU_US_MAX;

    if (redact_new(&redact, rule, 1, &err) == 0 && redact) {
        if (json_check(context, &trimmed, &err) < 0)
            trimmed = STR_NONE;
        if (redact_line(redact, &message, &trimmed, &arena, &left_us) == 0 && trimmed.data) {
            struct str again;

            ASSERT(json_check(trimmed, &again, &err) == 0);
        }
    }
    redact_free(redact);
    arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = str_span((const char *)data, size);
    struct str what = take_line(&rest);
    struct str message = take_line(&rest);
    struct redact_rule rule = {.replace = STR("***")};
    struct err err = {0};

    if (what.len > 0 && what.data[0] == '/')
        rule.pointer = what;
    else
        rule.pattern = what;
    if (redact_rule_check(&rule, &err) < 0)
        ASSERT(err.code != ERR_NONE && err.text[0]);
    else if (str_is_utf8(message))
        work(&rule, message, rest);
    return 0;
}
