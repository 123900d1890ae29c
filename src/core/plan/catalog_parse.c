/* The objects of requests for categories, jobs, schedules, recurring patterns and dependencies: one
 * table for each says which members there are, what each takes and where it goes. The same tables
 * say what a change takes over. Unknown members are refused, so that a misspelt one is not silently
 * ignored. Pure, any thread. */
#include "core/plan/catalog_int.h"

#include "calendar/cron.h"
#include "core/plan/plan.h"

#define BYTES(type, path) sizeof(((type *)NULL)->path)
#define FIELD(type, name, read, path, min, max, bit) \
    {name, read, offsetof(type, path), BYTES(type, path), 0, min, max, bit}
#define FLAGGED(type, name, read, path, given, min, max, bit) \
    {name, read, offsetof(type, path), BYTES(type, path), offsetof(type, given), min, max, bit}
#define TABLE(noun, members) {noun, members, sizeof(members) / sizeof *(members)}

#define SECONDS_MAX (BOUND_DELAY_MS / 1000)

#define CATEGORY(name, read, path, min, max, bit) \
    FIELD(struct category, name, catalog_read_##read, path, min, max, CATEGORY_FIELD_##bit)

static const struct catalog_member category_members[] = {
    CATEGORY("name", text, name, 0, BOUND_NAME_BYTES, NAME),
    CATEGORY("description", description, description, 0, BOUND_DESCRIPTION_BYTES, DESCRIPTION),
    CATEGORY("default_priority", priority, default_priority, -BOUND_PRIORITY, BOUND_PRIORITY,
             DEFAULT_PRIORITY),
    CATEGORY("default_timeout", number, default_timeout_s, 1, SECONDS_MAX, DEFAULT_TIMEOUT),
    CATEGORY("default_max_retries", number, default_max_retries, 0, BOUND_RETRIES,
             DEFAULT_MAX_RETRIES),
    CATEGORY("configuration", object, configuration, 0, BOUND_METADATA_BYTES, CONFIGURATION),
    CATEGORY("is_active", bool, is_active, 0, 0, IS_ACTIVE),
};
const struct catalog_table catalog_category_table = TABLE("a category", category_members);

#define JOB(name, read, path, min, max, bit) \
    FIELD(struct job, name, catalog_read_##read, path, min, max, JOB_FIELD_##bit)
#define JOB_OWN(name, read, path, given, min, max, bit) \
    FLAGGED(struct job, name, catalog_read_##read, path, given, min, max, JOB_FIELD_##bit)

static const struct catalog_member job_members[] = {
    JOB("name", text, name, 0, BOUND_NAME_BYTES, NAME),
    JOB("description", description, description, 0, BOUND_DESCRIPTION_BYTES, DESCRIPTION),
    JOB("category", category, category_id, 0, 0, CATEGORY),
    JOB("task_type", type, task_type, 0, BOUND_NAME_BYTES, TASK_TYPE),
    JOB("queue", queue, queue, 0, 0, QUEUE),
    JOB("target_service", text, target_service, 0, BOUND_SERVICE_BYTES, TARGET_SERVICE),
    JOB("target_method", text, target_method, 0, BOUND_METHOD_BYTES, TARGET_METHOD),
    JOB("payload", json, payload, 0, BOUND_PAYLOAD_BYTES, PAYLOAD),
    JOB_OWN("priority", priority, priority, has_priority, -BOUND_PRIORITY, BOUND_PRIORITY,
            PRIORITY),
    JOB_OWN("max_retries", number, max_retries, has_max_retries, 0, BOUND_RETRIES, MAX_RETRIES),
    JOB_OWN("timeout_seconds", number, timeout_s, has_timeout, 1, SECONDS_MAX, TIMEOUT),
    JOB("max_concurrent", number, max_concurrent, 0, BOUND_JOB_CONCURRENT, MAX_CONCURRENT),
    JOB("callback_url", url, callback_url, 0, 0, CALLBACK_URL),
    JOB("callback_events", callback_events, callback_events, 0, 0, CALLBACK_EVENTS),
    JOB("is_active", bool, is_active, 0, 0, IS_ACTIVE),
    JOB("created_by", text, created_by, 0, BOUND_KEY_BYTES, CREATED_BY),
};
const struct catalog_table catalog_job_table = TABLE("a job", job_members);

#define SCHEDULE(name, read, path, min, max, bit) \
    FIELD(struct schedule, name, catalog_read_##read, path, min, max, SCHEDULE_FIELD_##bit)

static const struct catalog_member schedule_members[] = {
    SCHEDULE("job_id", id, job_id, 0, 0, JOB_ID),
    SCHEDULE("schedule_type", schedule_type, type, 0, 0, TYPE),
    SCHEDULE("cron_expression", text, cron_expression, 0, CRON_BYTES_MAX, CRON_EXPRESSION),
    SCHEDULE("interval_seconds", number, interval_s, 1, PLAN_INTERVAL_MAX_S, INTERVAL),
    SCHEDULE("scheduled_at", time, scheduled_at_us, 0, 0, SCHEDULED_AT),
    SCHEDULE("timezone", text, timezone, 0, ZONE_NAME_BYTES_MAX, TIMEZONE),
    SCHEDULE("starts_at", time, starts_at_us, 0, 0, STARTS_AT),
    SCHEDULE("ends_at", time, ends_at_us, 0, 0, ENDS_AT),
    SCHEDULE("is_active", bool, is_active, 0, 0, IS_ACTIVE),
    SCHEDULE("misfire", misfire, misfire, 0, 0, MISFIRE),
    SCHEDULE("misfire_grace_ms", number, misfire_grace_ms, 0, BOUND_MISFIRE_GRACE_MS,
             MISFIRE_GRACE),
    SCHEDULE("misfire_cap", number, misfire_cap, 1, BOUND_MISFIRE_CAP, MISFIRE_CAP),
    SCHEDULE("overlap", overlap, overlap, 0, 0, OVERLAP),
    SCHEDULE("dst", dst, dst, 0, 0, DST),
    SCHEDULE("jitter_ms", number, jitter_ms, 0, BOUND_JITTER_MS, JITTER),
    SCHEDULE("callback_url", url, callback_url, 0, 0, CALLBACK_URL),
    SCHEDULE("callback_events", callback_events, callback_events, 0, 0, CALLBACK_EVENTS),
};
const struct catalog_table catalog_schedule_table = TABLE("a schedule", schedule_members);

static const struct catalog_member preview_members[] = {
    {"count", catalog_read_preview_count, 0, 0, 0, 1, BOUND_PREVIEW, 0},
    {"from", catalog_read_preview_from, 0, 0, 0, 0, 0, 0},
};
static const struct catalog_table preview_table = TABLE("a preview", preview_members);

#define RECURRING(name, read, path, max, bit) \
    FIELD(struct recurring, name, catalog_read_##read, path, 0, max, RECURRING_FIELD_##bit)

static const struct catalog_member recurring_members[] = {
    RECURRING("name", text, name, BOUND_NAME_BYTES, NAME),
    RECURRING("pattern_type", pattern_type, type, 0, TYPE),
    RECURRING("pattern_config", object, pattern_config, BOUND_PATTERN_BYTES, CONFIG),
    RECURRING("template_job_id", id, template_job_id, 0, TEMPLATE),
    RECURRING("is_active", bool, is_active, 0, IS_ACTIVE),
};
const struct catalog_table catalog_recurring_table =
    TABLE("a recurring pattern", recurring_members);

#define DEPENDENCY(name, read, path, max, bit) \
    FIELD(struct job_dependency, name, catalog_read_##read, path, 0, max, DEPENDENCY_FIELD_##bit)

static const struct catalog_member dependency_members[] = {
    DEPENDENCY("job_id", id, job_id, 0, JOB),
    DEPENDENCY("depends_on_job_id", id, depends_on_job_id, 0, DEPENDS_ON),
    DEPENDENCY("dependency_type", dependency_type, kind, 0, TYPE),
    DEPENDENCY("dependency_config", object, config, BOUND_METADATA_BYTES, CONFIG),
};
const struct catalog_table catalog_dependency_table = TABLE("a dependency", dependency_members);

/* ---- reading ---- */

static const struct catalog_member *find_member(const struct catalog_table *table, struct str name)
{
    for (size_t i = 0; i < table->count; i++)
        if (str_is(name, table->members[i].name))
            return &table->members[i];
    return NULL;
}

/* null: as it is when new. */
static void reset_member(struct catalog_reader *reader, const struct catalog_member *member)
{
    char *object = reader->object;

    memcpy(object + member->at, (const char *)reader->defaults + member->at, member->bytes);
    if (member->flag)
        *(bool *)(object + member->flag) = false;
}

static int read_member(struct catalog_reader *reader, const struct catalog_member *member,
                       struct str value)
{
    int rc;

    reader->set |= member->bit;
    if (json_kind(value) == JSON_NULL) {
        reset_member(reader, member);
        return 0;
    }
    rc = member->read(reader, member, value);
    if (reader->arena->failed)
        return spec_no_memory(reader->err);
    if (rc == 0 && member->flag)
        *(bool *)((char *)reader->object + member->flag) = true;
    return rc;
}

static int read_members(struct str object, const struct catalog_table *table,
                        struct catalog_reader *reader)
{
    struct json_iter iter;
    struct json_member found;

    if (json_kind(object) != JSON_OBJECT)
        return err_set(reader->err, ERR_INVALID, "%s must be a JSON object", table->noun);
    json_begin(object, &iter);
    while (json_next_member(&iter, &found)) {
        struct str name = json_decode_key(found.key, reader->arena);
        const struct catalog_member *member;
        char field[80];

        if (!name.data)
            return spec_no_memory(reader->err);
        member = find_member(table, name);
        if (!member && reader->preview)
            member = find_member(&preview_table, name);
        if (!member) {
            snprintf(field, sizeof field, STR_FMT, STR_ARG(str_cut(name, sizeof field - 1)));
            return err_set_field(reader->err, ERR_INVALID, field,
                                 "%s has no member \"%s\"; remove it or correct its name",
                                 table->noun, field);
        }
        TRY(read_member(reader, member, found.value));
    }
    return 0;
}

int category_read(struct str object, struct arena *arena, struct category *category, uint64_t *set,
                  struct err *err)
{
    struct category defaults;
    struct catalog_reader reader = {.arena = arena, .object = category, .defaults = &defaults,
                                    .err = err};

    category_init(&defaults);
    TRY(read_members(object, &catalog_category_table, &reader));
    *set = reader.set;
    return 0;
}

int job_read(struct str object, struct arena *arena, struct job *job, struct str *category,
             uint64_t *set, struct err *err)
{
    struct job defaults;
    struct catalog_reader reader = {.arena = arena, .object = job, .defaults = &defaults,
                                    .category = STR_NONE, .err = err};

    job_init(&defaults);
    TRY(read_members(object, &catalog_job_table, &reader));
    *category = reader.category;
    *set = reader.set;
    return 0;
}

int schedule_read(struct str object, struct arena *arena, struct schedule *schedule, uint64_t *set,
                  struct preview_wish *preview, struct err *err)
{
    struct schedule defaults;
    struct catalog_reader reader = {.arena = arena, .object = schedule, .defaults = &defaults,
                                    .preview = preview, .err = err};

    schedule_init(&defaults);
    if (preview)
        *preview = (struct preview_wish){.count = PREVIEW_DEFAULT_COUNT};
    TRY(read_members(object, &catalog_schedule_table, &reader));
    *set = reader.set;
    return 0;
}

int recurring_read(struct str object, struct arena *arena, struct recurring *recurring,
                   uint64_t *set, struct err *err)
{
    struct recurring defaults;
    struct catalog_reader reader = {.arena = arena, .object = recurring, .defaults = &defaults,
                                    .err = err};

    recurring_init(&defaults);
    TRY(read_members(object, &catalog_recurring_table, &reader));
    *set = reader.set;
    return 0;
}

int job_dependency_parse(struct str object, struct arena *arena,
                         struct job_dependency *dependency, uint64_t *set, struct err *err)
{
    struct job_dependency defaults;
    struct catalog_reader reader = {.arena = arena, .object = dependency, .defaults = &defaults,
                                    .err = err};

    job_dependency_init(&defaults);
    TRY(read_members(object, &catalog_dependency_table, &reader));
    *set = reader.set;
    return job_dependency_read(dependency, err);
}

/* ---- taking over ---- */

static void take_members(const struct catalog_table *table, void *to, const void *from,
                         uint64_t set)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct catalog_member *member = &table->members[i];

        if (!(set & member->bit))
            continue;
        memcpy((char *)to + member->at, (const char *)from + member->at, member->bytes);
        if (member->flag)
            memcpy((char *)to + member->flag, (const char *)from + member->flag, sizeof(bool));
    }
}

void category_take(struct category *to, const struct category *from, uint64_t set)
{
    take_members(&catalog_category_table, to, from, set);
}

void job_take(struct job *to, const struct job *from, uint64_t set)
{
    take_members(&catalog_job_table, to, from, set);
}

void schedule_take(struct schedule *to, const struct schedule *from, uint64_t set)
{
    if (set & SCHEDULE_FIELD_TYPE && to->type != from->type) {
        to->cron_expression = STR_NONE;
        to->interval_s = 0;
        to->scheduled_at_us = 0;
    }
    take_members(&catalog_schedule_table, to, from, set);
}

void recurring_take(struct recurring *to, const struct recurring *from, uint64_t set)
{
    take_members(&catalog_recurring_table, to, from, set);
}

/* ---- bounds ---- */

int catalog_check_numbers(const struct catalog_table *table, const void *object,
                          const void *defaults, struct err *err)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct catalog_member *member = &table->members[i];
        int64_t value, usual;

        if (member->read != catalog_read_number && member->read != catalog_read_priority)
            continue;
        memcpy(&value, (const char *)object + member->at, sizeof value);
        memcpy(&usual, (const char *)defaults + member->at, sizeof usual);
        if (value != usual && (value < member->min || value > member->max))
            return err_set_field(err, ERR_INVALID, member->name,
                                 "\"%s\" must be a whole number from %lld to %lld", member->name,
                                 (long long)member->min, (long long)member->max);
    }
    return 0;
}
