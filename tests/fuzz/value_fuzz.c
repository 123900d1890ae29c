/* libFuzzer: any bytes as a value on the command line or in a variable: numbers, durations, times,
 * rates, sizes, priorities, words, ids. What is accepted is in its range, and what can be written
 * again reads back the same. */
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/uuid7.h"
#include "cli/frame/command.h"
#include "cli/config/config.h"
#include "core/bounds.h"
#include "core/task/report.h"
#include "core/spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_numbers(struct str text)
{
    char again[32];
    int64_t value;
    int64_t same;

    if (str_to_int64(text, &value)) {
        snprintf(again, sizeof again, "%lld", (long long)value);
        ASSERT(str_to_int64(str_of(again), &same) && same == value);
    }
    if (str_to_duration_ms(text, &value))
        ASSERT(value >= 0 && value <= INT64_MAX / 1000);
    if (config_bytes_parse(text, &value))
        ASSERT(value >= 0 || str_to_int64(text, &same)); /* the field's range refuses those */
    if (config_priority_parse(text, &value))
        ASSERT(priority_parse(text, &same) && same == value && value >= -BOUND_PRIORITY &&
               value <= BOUND_PRIORITY);
}

static void check_time(struct str text)
{
    char again[CLOCK_TEXT_BYTES];
    int64_t time_us;
    int64_t same_us;

    if (!clock_parse(text, &time_us))
        return;
    ASSERT(time_us >= CLOCK_MIN_US && time_us <= CLOCK_MAX_US);
    clock_format(time_us, again);
    ASSERT(clock_parse(str_of(again), &same_us) && same_us == time_us);
}

static void check_words(struct str text)
{
    char again[UUID_TEXT_BYTES];
    struct uuid id;
    struct uuid same;
    enum log_severity severity;
    enum report_op op;
    struct rate_rule rate;

    if (uuid_parse(text, &id)) {
        uuid_format(&id, again);
        ASSERT(uuid_parse(str_of(again), &same) && uuid_eq(&id, &same));
    }
    if (severity_parse(text, &severity))
        ASSERT(severity < SEVERITY_COUNT);
    if (report_op_parse(text, &op))
        ASSERT(str_is(text, report_op_word(op)));
    if (config_rate_parse(text, &rate))
        ASSERT(rate.count >= 0 && rate.per_ms >= 0 && rate.burst >= 0);
}

/* Every kind of flag, as the command line checks it before anything else looks at it. */
static void check_flags(struct str text)
{
    for (enum flag_type type = FLAG_BOOL; type <= FLAG_RATE; type++) {
        struct flag flag = {.name = "flag", .type = type, .choices = "one|two", .min = -5,
                            .max = 1000};
        struct err err = {0};

        if (flag_check(&flag, text, &err) < 0)
            ASSERT(err.code == ERR_USAGE && err.text[0]);
    }
}

static void check_settings(struct str text)
{
    struct config config;
    struct err err = {0};

    ASSERT(config_init_defaults(&config, &err) == 0);
    for (const struct config_field *field = config_root.fields; field->key; field++) {
        if (field->kind > CONFIG_RATE)
            continue;
        err.code = ERR_NONE;
        if (config_set_scalar(&config, field, text, &config.arena, &err) < 0)
            ASSERT(err.code != ERR_NONE && err.text[0]);
    }
    config_deinit(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_span((const char *)data, size);

    check_numbers(text);
    check_time(text);
    check_words(text);
    check_flags(text);
    if (size < 64)
        check_settings(text);
    return 0;
}
