/* What a new category, job, schedule, pattern or dependency is like before anything is said about
 * it, and whether one makes sense as a whole once everything is. Pure, any thread. */
#include "core/plan/catalog_int.h"

#include "calendar/window.h"
#include "core/service/service_url.h"
#include "core/task/search.h"

#define SETTING_BYTES_MAX 24 /* of a key that may be a misspelt one; the longest has 16 */
#define CHECK_ARENA_BYTES (64 * 1024) /* for texts of a configuration that have escapes */

void category_init(struct category *category)
{
    *category = (struct category){
        .namespace_name = STR(TASK_DEFAULT_NAMESPACE),
        .default_timeout_s = TASK_DEFAULT_TIMEOUT_MS / 1000,
        .default_max_retries = TASK_DEFAULT_MAX_RETRIES,
        .configuration = STR("{}"),
        .is_active = true,
    };
}

void job_init(struct job *job)
{
    *job = (struct job){.namespace_name = STR(TASK_DEFAULT_NAMESPACE), .is_active = true};
}

void schedule_init(struct schedule *schedule)
{
    *schedule = (struct schedule){
        .namespace_name = STR(TASK_DEFAULT_NAMESPACE),
        .type = SCHEDULE_TYPE_COUNT, /* none yet: it must be said */
        .timezone = STR("UTC"),
        .is_active = true,
        .misfire = MISFIRE_FIRE_ONCE,
        .misfire_grace_ms = SCHEDULE_DEFAULT_GRACE_MS,
        .misfire_cap = SCHEDULE_DEFAULT_CAP,
        .overlap = OVERLAP_ALLOW,
        .dst = DST_STANDARD,
    };
}

void recurring_init(struct recurring *recurring)
{
    *recurring = (struct recurring){
        .namespace_name = STR(TASK_DEFAULT_NAMESPACE),
        .type = RECURRENCE_TYPE_COUNT,
        .pattern_config = STR("{}"),
        .is_active = true,
    };
}

void job_dependency_init(struct job_dependency *dependency)
{
    *dependency = (struct job_dependency){
        .namespace_name = STR(TASK_DEFAULT_NAMESPACE),
        .kind = DEPENDENCY_SUCCESS,
        .config = STR("{}"),
        .mode = DEPENDENCY_GATE,
    };
}

static int missing(const char *field, const char *why, struct err *err)
{
    return err_set_field(err, ERR_INVALID, field, "\"%s\" is missing; %s", field, why);
}

/* ---- categories ---- */

/* Names the member with the object it is in. */
static int inside_configuration(int rc, const struct err *why, struct err *err)
{
    char field[sizeof why->field + sizeof "configuration."];

    if (rc == 0)
        return 0;
    snprintf(field, sizeof field, "configuration.%s", why->field);
    return err_set_field(err, why->code, field, "%s", why->text);
}

static int check_text(struct str value, const char *field, size_t max, struct arena *arena,
                      struct err *err)
{
    struct str text;

    TRY(spec_read_string(value, field, arena, &text, err));
    return strcmp(field, "queue") == 0 ? spec_check_new_queue(text, err)
                                       : spec_check_text(text, max, field, err);
}

static int check_windows(struct str value, struct err *err)
{
    struct window_set windows;

    return window_parse(value, &windows, err);
}

/* Steps from one word to the other, a letter more, less or another one; beyond 2 it does not
 * matter how many. */
static uint32_t steps_between(struct str a, struct str b)
{
    uint32_t row[SETTING_BYTES_MAX + 1];

    for (uint32_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= a.len; i++) {
        uint32_t diagonal = row[0];

        row[0] = i;
        for (uint32_t j = 1; j <= b.len; j++) {
            uint32_t other = diagonal + (a.data[i - 1] != b.data[j - 1]);

            diagonal = row[j];
            row[j] = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = other < row[j] ? other : row[j];
        }
    }
    return row[b.len];
}

/* A member that is nearly one that means something is a slip, and would do nothing. */
static int check_spelling(struct str key, struct err *err)
{
    static const char *const known[] = {"queue",      "allowed_windows",  "timezone",
                                        "batch_size", "batch_processing", "service"};

    for (size_t i = 0; i < sizeof known / sizeof *known && key.len <= SETTING_BYTES_MAX; i++)
        if (steps_between(key, str_of(known[i])) <= 2) {
            char field[SETTING_BYTES_MAX + 1];

            snprintf(field, sizeof field, STR_FMT, STR_ARG(key));
            return err_set_field(err, ERR_INVALID, field,
                                 "\"%s\" is unknown here; did you mean \"%s\"?", field,
                                 known[i]);
        }
    return 0;
}

static int check_service(struct str value, struct arena *arena, struct err *err)
{
    TRY(check_text(value, "service", BOUND_SERVICE_BYTES, arena, err));
    return service_name_valid(json_string(value, arena))
               ? 0
               : err_set_field(err, ERR_INVALID, "service", "\"service\" must be of letters, "
                               "digits, '.', '_', '~' and '-', as the names of services are");
}

/* Of the members that mean something; what else is there is its users' own. */
static int check_setting(struct str key, struct str value, struct arena *arena, struct err *err)
{
    int64_t number;
    bool yes;

    if (json_kind(value) == JSON_NULL)
        return 0; /* as if it were not there */
    if (json_key_is(key, STR("queue")))
        return check_text(value, "queue", BOUND_NAME_BYTES, arena, err);
    if (json_key_is(key, STR("timezone")))
        return check_text(value, "timezone", ZONE_NAME_BYTES_MAX, arena, err);
    if (json_key_is(key, STR("service")))
        return check_service(value, arena, err);
    if (json_key_is(key, STR("allowed_windows")))
        return check_windows(value, err);
    if (json_key_is(key, STR("batch_size")))
        return spec_read_number(value, "batch_size", 1, BOUND_CLAIM_MAX, &number, err);
    if (json_key_is(key, STR("batch_processing")))
        return spec_read_bool(value, "batch_processing", &yes, err);
    return check_spelling(key, err);
}

static int check_configuration(struct str configuration, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(CHECK_ARENA_BYTES);
    struct json_iter iter;
    struct json_member found;
    struct err why = {0};

    json_begin(configuration, &iter);
    while (json_next_member(&iter, &found))
        TRY(inside_configuration(check_setting(found.key, found.value, &arena, &why), &why, err));
    return 0;
}

int category_check(const struct category *category, struct err *err)
{
    struct category defaults;

    if (!category->name.data)
        return missing("name", "jobs name their category by it", err);
    category_init(&defaults);
    TRY(catalog_check_numbers(&catalog_category_table, category, &defaults, err));
    if (!category->configuration.data)
        return 0;
    return check_configuration(category->configuration, err);
}

/* ---- jobs, patterns, dependencies ---- */

int job_check(const struct job *job, struct err *err)
{
    struct job defaults;
    struct err why;

    if (!job->name.data)
        return missing("name", "a job is known by it", err);
    if (!job->task_type.data && search_is_pattern(job->name))
        return err_set_field(err, ERR_INVALID, "name",
                             "\"name\" must not begin or end with '*': it is the type of the "
                             "job's tasks, unless \"task_type\" names another");
    if (job->target_service.data && !service_name_valid(job->target_service))
        return err_set_field(err, ERR_INVALID, "target_service",
                             "\"target_service\" must be of letters, digits, '.', '_', '~' and "
                             "'-', as the names of services are");
    if (job->target_method.data && service_method_check(job->target_method, &why) < 0)
        return err_set_field(err, ERR_INVALID, "target_method", "\"target_method\": %s",
                             why.text);
    job_init(&defaults);
    return catalog_check_numbers(&catalog_job_table, job, &defaults, err);
}

int recurring_check(const struct recurring *recurring, struct err *err)
{
    if (!recurring->name.data)
        return missing("name", "a recurring pattern is known by it", err);
    if (recurring->type >= RECURRENCE_TYPE_COUNT)
        return missing("pattern_type", "it is daily, weekly, monthly, yearly or rrule", err);
    if (uuid_is_nil(&recurring->template_job_id))
        return missing("template_job_id", "tasks are made from this job", err);
    return 0;
}

int job_dependency_check(const struct job_dependency *dependency, struct err *err)
{
    if (uuid_is_nil(&dependency->depends_on_job_id))
        return missing("depends_on_job_id", "it names the job that is waited for", err);
    return 0;
}

/* ---- schedules ---- */

/* What a type needs, and what belongs to another one. */
static int check_type(const struct schedule *schedule, struct err *err)
{
    const struct {
        enum schedule_type type;
        const char *field;
        bool given;
    } rows[] = {
        {SCHEDULE_CRON, "cron_expression", schedule->cron_expression.data != NULL},
        {SCHEDULE_INTERVAL, "interval_seconds", schedule->interval_s != 0},
        {SCHEDULE_ONCE, "scheduled_at", schedule->scheduled_at_us != 0},
    };

    if (schedule->type >= SCHEDULE_TYPE_COUNT &&
        rows[0].given + rows[1].given + rows[2].given > 1)
        return err_set_field(err, ERR_INVALID, rows[rows[2].given ? 2 : 1].field,
                             "a schedule has one of \"cron_expression\", \"interval_seconds\" "
                             "and \"scheduled_at\"; for two times make two schedules");
    if (schedule->type >= SCHEDULE_TYPE_COUNT)
        return missing("schedule_type", "it is cron, interval, once or immediate", err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].type == schedule->type && !rows[i].given)
            return err_set_field(err, ERR_INVALID, rows[i].field,
                                 "\"%s\" is missing; a schedule of type %s needs it",
                                 rows[i].field, schedule_type_word(schedule->type));
        if (rows[i].type != schedule->type && rows[i].given)
            return err_set_field(err, ERR_INVALID, rows[i].field,
                                 "\"%s\" belongs to schedules of type %s, and this one is %s; "
                                 "leave it out",
                                 rows[i].field, schedule_type_word(rows[i].type),
                                 schedule_type_word(schedule->type));
    }
    return 0;
}

static int check_span(const struct schedule *schedule, struct err *err)
{
    int64_t starts_us = schedule->starts_at_us, ends_us = schedule->ends_at_us;

    if (starts_us && ends_us && ends_us <= starts_us)
        return err_set_field(err, ERR_INVALID, "ends_at",
                             "\"ends_at\" must lie after \"starts_at\"");
    if (schedule->type != SCHEDULE_ONCE)
        return 0;
    if ((starts_us && schedule->scheduled_at_us < starts_us) ||
        (ends_us && schedule->scheduled_at_us > ends_us))
        return err_set_field(err, ERR_INVALID, "scheduled_at",
                             "\"scheduled_at\" must lie between \"starts_at\" and \"ends_at\"");
    return 0;
}

int schedule_check(const struct schedule *schedule, struct err *err)
{
    struct schedule defaults;

    TRY(check_type(schedule, err));
    schedule_init(&defaults);
    TRY(catalog_check_numbers(&catalog_schedule_table, schedule, &defaults, err));
    return check_span(schedule, err);
}
