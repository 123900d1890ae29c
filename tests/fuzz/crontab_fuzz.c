/* libFuzzer: the first byte chooses the form, the rest is a crontab. Every line is taken or refused
 * with a reason, in order; what is taken has a command and a time that can be read again. */
#include <stddef.h>
#include <stdint.h>

#include "calendar/cron.h"
#include "core/plan/crontab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const struct crontab_line *line, bool system_form)
{
    struct cron cron;

    ASSERT(line->command.len > 0 && str_is_utf8(line->command));
    ASSERT((line->user.len > 0) == system_form);
    ASSERT((line->every_s > 0) != (line->expression.data != NULL));
    if (line->every_s == 0)
        ASSERT(cron_parse(line->expression, &cron, NULL) == 0);
    if (line->input.len > 0)
        ASSERT(line->input.data[line->input.len - 1] == '\n' && str_is_utf8(line->input));
    for (uint32_t i = 0; i < line->variables_count; i++)
        ASSERT(line->variables[i].name.len > 0 && str_is_utf8(line->variables[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT(64 * 1024 * 1024);
    struct crontab crontab;
    bool system_form = size > 0 && data[0] & 1;
    struct err err = {0};

    if (size < 1)
        return 0;
    if (crontab_parse(str_span((const char *)data + 1, size - 1), system_form, &arena, &crontab,
                      &err) == 0) {
        for (uint32_t i = 0; i < crontab.count; i++) {
            const struct crontab_line *line = &crontab.lines[i];

            ASSERT(line->number > (i ? line[-1].number : 0) && line->text.len > 0);
            if (line->kind == CRONTAB_REFUSED)
                ASSERT(line->reason.len > 0);
            else if (line->kind == CRONTAB_ENTRY)
                check_entry(line, system_form);
            else
                ASSERT(line->name.len > 0 && line->value.data);
        }
    }
    arena_deinit(&arena);
    return 0;
}
