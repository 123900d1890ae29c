/* The words of catalog.h, each in one table, and what is read from the JSON objects that a category
 * and a dependency carry. What such an object may hold is checked where it is taken from a request
 * (catalog_parse.c); here it is read for use, as it was stored. Pure; any thread. */
#include "core/plan/catalog.h"

#include "base/enum_words.h"
#include "base/json.h"
#include "core/bounds.h"

#define CATEGORY_BATCH_SIZE 100 /* batch_processing without a batch_size */
#define CONFIG_ARENA_BYTES 4096 /* for a word that is written with escapes */

static const char *const type_words[SCHEDULE_TYPE_COUNT] = {
    [SCHEDULE_CRON] = "cron",
    [SCHEDULE_INTERVAL] = "interval",
    [SCHEDULE_ONCE] = "once",
    [SCHEDULE_IMMEDIATE] = "immediate",
};

static const char *const misfire_words[MISFIRE_COUNT] = {
    [MISFIRE_SKIP] = "skip",
    [MISFIRE_FIRE_ONCE] = "fire_once",
    [MISFIRE_FIRE_ALL] = "fire_all",
};

static const char *const overlap_words[OVERLAP_COUNT] = {
    [OVERLAP_ALLOW] = "allow",
    [OVERLAP_SKIP] = "skip",
    [OVERLAP_QUEUE] = "queue",
    [OVERLAP_REPLACE] = "replace",
};

static const char *const mode_words[DEPENDENCY_MODE_COUNT] = {
    [DEPENDENCY_GATE] = "gate",
    [DEPENDENCY_TRIGGER] = "trigger",
};

ENUM_WORDS(schedule_type, type_words);
ENUM_WORDS(misfire, misfire_words);
ENUM_WORDS(overlap, overlap_words);
ENUM_WORDS(dependency_mode, mode_words);

/* ---- the objects they carry ---- */

/* A member that is a text of at least one byte, or STR_NONE. */
static struct str text_member(struct str object, struct str name, struct arena *arena)
{
    struct str value = json_get(object, name);
    struct str text = STR_NONE;

    if (value.data && json_kind(value) == JSON_STRING)
        text = json_string(value, arena);
    return text.len ? text : STR_NONE;
}

static int64_t batch_size(struct str object)
{
    struct str processing = json_get(object, STR("batch_processing"));
    struct str size = json_get(object, STR("batch_size"));
    int64_t number;

    if (processing.data && json_kind(processing) == JSON_FALSE)
        return 0;
    if (size.data && json_int64(size, &number) && number >= 1)
        return number;
    return processing.data && json_kind(processing) == JSON_TRUE ? CATEGORY_BATCH_SIZE : 0;
}

int category_rules_read(struct str configuration, struct arena *arena,
                        struct category_rules *rules, struct err *err)
{
    struct str windows;

    *rules = (struct category_rules){.queue = STR_NONE};
    if (!configuration.data || json_kind(configuration) != JSON_OBJECT)
        return 0;
    rules->queue = text_member(configuration, STR("queue"), arena);
    rules->service = text_member(configuration, STR("service"), arena);
    rules->timezone = text_member(configuration, STR("timezone"), arena);
    rules->batch_size = batch_size(configuration);
    windows = json_get(configuration, STR("allowed_windows"));
    if (windows.data && json_kind(windows) == JSON_ARRAY && json_count(windows) > 0)
        rules->allowed_windows = windows;
    if (arena->failed)
        return err_no_memory(err);
    return 0;
}

static int read_mode(struct str value, enum dependency_mode *mode, struct err *err)
{
    struct arena arena = ARENA_INIT(CONFIG_ARENA_BYTES);
    bool known = json_kind(value) == JSON_STRING &&
                 dependency_mode_parse(json_string(value, &arena), mode);

    arena_deinit(&arena);
    if (!known)
        return err_set_field(err, ERR_INVALID, "dependency_config.mode",
                             "\"mode\" must be gate or trigger");
    return 0;
}

int job_dependency_read(struct job_dependency *dependency, struct err *err)
{
    struct str mode, within;

    dependency->mode = DEPENDENCY_GATE;
    dependency->within_ms = 0;
    if (!dependency->config.data)
        return 0;
    if (json_kind(dependency->config) != JSON_OBJECT)
        return err_set_field(err, ERR_INVALID, "dependency_config",
                             "\"dependency_config\" must be an object such as "
                             "{\"mode\":\"gate\"}");
    mode = json_get(dependency->config, STR("mode"));
    within = json_get(dependency->config, STR("within_ms"));
    if (mode.data && json_kind(mode) != JSON_NULL)
        TRY(read_mode(mode, &dependency->mode, err));
    if (!within.data || json_kind(within) == JSON_NULL)
        return 0;
    if (!json_int64(within, &dependency->within_ms) || dependency->within_ms < 0 ||
        dependency->within_ms > BOUND_DELAY_MS) {
        dependency->within_ms = 0;
        return err_set_field(err, ERR_INVALID, "dependency_config.within_ms",
                             "\"within_ms\" must be a whole number from 0 to %lld",
                             (long long)BOUND_DELAY_MS);
    }
    return 0;
}

bool schedule_same_times(const struct schedule *a, const struct schedule *b)
{
    return a->type == b->type && str_eq(a->cron_expression, b->cron_expression) &&
           a->interval_s == b->interval_s && a->scheduled_at_us == b->scheduled_at_us &&
           str_eq(a->timezone, b->timezone) && a->starts_at_us == b->starts_at_us &&
           a->ends_at_us == b->ends_at_us && a->dst == b->dst && a->is_active == b->is_active;
}

bool recurring_same_times(const struct recurring *a, const struct recurring *b)
{
    return a->type == b->type && str_eq(a->pattern_config, b->pattern_config) &&
           a->is_active == b->is_active;
}
