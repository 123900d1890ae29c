/* Finding and showing one of what people plan with, and when it fires next. Reads by the verbs of
 * catalog_store.h, renders by core/plan/catalog_render.h, computes by core/plan/plan.h. */
#include "view/catalog_view.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/plan/catalog_parse.h"
#include "core/plan/catalog_render.h"
#include "core/plan/plan.h"

#define NAMESAKES_MAX 100 /* of all users, among which one's own are looked for */
#define EXPLAIN_BYTES_MAX 8192 /* an expression of 256 bytes says less; longer is cut off */

/* The word of a kind: "job". */
static const char *kind_word(enum catalog_kind kind)
{
    static const char *const words[] = {[CATALOG_CATEGORY] = "category",
                                        [CATALOG_JOB] = "job",
                                        [CATALOG_SCHEDULE] = "schedule",
                                        [CATALOG_RECURRING] = "recurring pattern",
                                        [CATALOG_DEPENDENCY] = "dependency"};

    ASSERT(kind < CATALOG_KIND_COUNT);
    return words[kind];
}

/* ---- who may know of it ---- */

static bool looks_at_one_user(const struct catalog_source *source)
{
    return source->principal && source->principal->user_id.data;
}

bool catalog_shows_job(const struct catalog_source *source, const struct job *job)
{
    return !looks_at_one_user(source) ||
           principal_row(source->principal, job->created_by, false) != ROW_HIDDEN;
}

int catalog_shows(const struct catalog_source *source, enum catalog_kind kind, const void *item,
                  bool *shows, struct err *err)
{
    const struct uuid *job_id = kind == CATALOG_SCHEDULE
                                    ? &((const struct schedule *)item)->job_id
                                : kind == CATALOG_RECURRING
                                    ? &((const struct recurring *)item)->template_job_id
                                    : NULL;
    struct job *job = NULL;

    *shows = kind != CATALOG_JOB || catalog_shows_job(source, item);
    if (!looks_at_one_user(source) || !job_id)
        return 0;
    TRY(source->store->verbs->catalog->read_job(source->reader, job_id, source->arena, &job, err));
    *shows = job && catalog_shows_job(source, job);
    return 0;
}

/* ---- finding ---- */

/* Of those with a name, the ones that are shown: their number and the first one's id. */
static int count_shown(const struct catalog_source *source, enum catalog_kind kind,
                       const void *items, size_t item_bytes, uint32_t *count, struct uuid *id,
                       struct err *err)
{
    const char *at = items;
    uint32_t read = *count;

    *count = 0;
    for (uint32_t i = 0; i < read; i++, at += item_bytes) {
        bool shows;

        TRY(catalog_shows(source, kind, at, &shows, err));
        if (shows && (*count)++ == 0)
            memcpy(id, at, sizeof *id); /* it stands first in all of them */
    }
    return 0;
}

static int count_named(const struct catalog_source *source, enum catalog_kind kind,
                       const struct catalog_filter *filter, struct uuid *id, uint32_t *count,
                       struct err *err)
{
    const struct catalog_verbs *verbs = source->store->verbs->catalog;
    struct category *categories = NULL;
    struct job *jobs = NULL;
    struct recurring *recurring = NULL;

    *count = 0;
    if (kind == CATALOG_CATEGORY)
        TRY(verbs->read_categories(source->reader, filter, source->arena, &categories, count, err));
    else if (kind == CATALOG_JOB)
        TRY(verbs->read_jobs(source->reader, filter, source->arena, &jobs, count, err));
    else if (kind == CATALOG_RECURRING)
        TRY(verbs->read_recurring(source->reader, filter, source->arena, &recurring, count, err));
    if (categories)
        return count_shown(source, kind, categories, sizeof *categories, count, id, err);
    if (jobs)
        return count_shown(source, kind, jobs, sizeof *jobs, count, id, err);
    return count_shown(source, kind, recurring, sizeof *recurring, count, id, err);
}

struct str catalog_source_namespace(const struct catalog_source *source)
{
    return source->namespace_name.data ? source->namespace_name : STR(TASK_DEFAULT_NAMESPACE);
}

int catalog_find(const struct catalog_source *source, enum catalog_kind kind, struct str text,
                 struct uuid *id, struct err *err)
{
    struct catalog_filter filter = {.namespace_name = catalog_source_namespace(source),
                                    .name = text,
                                    .active = -1,
                                    .type = -1,
                                    .limit = looks_at_one_user(source) ? NAMESAKES_MAX : 2};
    const char *word = kind_word(kind);
    uint32_t count;

    if (uuid_parse(text, id))
        return 0;
    TRY(count_named(source, kind, &filter, id, &count, err));
    if (count > 1)
        return err_set(err, ERR_CONFLICT, "several have this name; give the id of one %s", word);
    if (count == 0 && (kind == CATALOG_SCHEDULE || kind == CATALOG_DEPENDENCY))
        return err_set(err, ERR_NOT_FOUND, "there is no such %s; an id is 36 characters", word);
    if (count == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no %s with this id or name", word);
    return 0;
}

int catalog_load(const struct catalog_source *source, enum catalog_kind kind,
                 const struct uuid *id, const void **item, struct err *err)
{
    const struct catalog_verbs *verbs = source->store->verbs->catalog;
    struct category *category = NULL;
    struct job *job = NULL;
    struct schedule *schedule = NULL;
    struct recurring *recurring = NULL;
    struct str own;
    bool shows = true;

    ASSERT(kind != CATALOG_DEPENDENCY);
    if (kind == CATALOG_CATEGORY)
        TRY(verbs->read_category(source->reader, id, source->arena, &category, err));
    else if (kind == CATALOG_JOB)
        TRY(verbs->read_job(source->reader, id, source->arena, &job, err));
    else if (kind == CATALOG_SCHEDULE)
        TRY(verbs->read_schedule(source->reader, id, source->arena, &schedule, err));
    else
        TRY(verbs->read_recurring_one(source->reader, id, source->arena, &recurring, err));
    if (job && job->deleted_at_us && !source->with_deleted)
        job = NULL;
    own = category ? category->namespace_name : job ? job->namespace_name
          : schedule ? schedule->namespace_name : recurring ? recurring->namespace_name : STR_NONE;
    if (own.data && !str_eq(own, catalog_source_namespace(source)))
        return err_set(err, ERR_NOT_FOUND, "there is no %s with this id", kind_word(kind));
    *item = category ? (const void *)category : job ? (const void *)job
            : schedule ? (const void *)schedule : recurring;
    if (*item)
        TRY(catalog_shows(source, kind, *item, &shows, err));
    if (!*item || !shows)
        return err_set(err, ERR_NOT_FOUND, "there is no %s with this id", kind_word(kind));
    return 0;
}

/* The id behind this one, so that "below it" includes it. */
static struct uuid id_behind(struct uuid id)
{
    for (size_t i = sizeof id.bytes; i-- > 0;)
        if (++id.bytes[i] != 0)
            break;
    return id;
}

int catalog_check_dependency(const struct catalog_source *source, const struct uuid *job_id,
                             const struct uuid *id, struct err *err)
{
    struct catalog_filter filter = {.namespace_name = catalog_source_namespace(source),
                                    .job_id = *job_id,
                                    .active = -1,
                                    .type = -1,
                                    .before_id = id_behind(*id),
                                    .limit = 1};
    struct job_dependency *found = NULL;
    uint32_t count = 0;

    TRY(source->store->verbs->catalog->read_dependencies(source->reader, &filter, source->arena,
                                                         &found, &count, err));
    if (count == 0 || !uuid_eq(&found[0].id, id) || !uuid_eq(&found[0].job_id, job_id))
        return err_set(err, ERR_NOT_FOUND, "the job has no dependency with this id");
    return 0;
}

/* ---- showing ---- */

/* A page of jobs has few categories: each is read once. */
struct category_memo {
    const struct category *list[64];
    uint32_t count;
    const struct category *general; /* of jobs that have none */
};

static int read_general(const struct catalog_source *source, struct category_memo *memo,
                        struct err *err)
{
    struct catalog_filter filter = {.namespace_name = catalog_source_namespace(source),
                                    .name = STR(CATEGORY_GENERAL),
                                    .active = -1,
                                    .type = -1,
                                    .limit = 1};
    struct category *found = NULL;
    uint32_t count = 0;
    int rc = source->store->verbs->catalog->read_categories(source->reader, &filter, source->arena,
                                                            &found, &count, err);

    memo->general = rc == 0 && count ? found : NULL;
    return rc;
}

static int category_of(const struct catalog_source *source, const struct job *job,
                       struct category_memo *memo, const struct category **category,
                       struct err *err)
{
    struct category *found = NULL;
    int rc;

    if (uuid_is_nil(&job->category_id)) {
        rc = memo->general ? 0 : read_general(source, memo, err);
        *category = memo->general;
        return rc;
    }
    for (uint32_t i = 0; i < memo->count; i++)
        if (uuid_eq(&memo->list[i]->id, &job->category_id)) {
            *category = memo->list[i];
            return 0;
        }
    rc = source->store->verbs->catalog->read_category(source->reader, &job->category_id,
                                                      source->arena, &found, err);
    *category = found;
    if (rc == 0 && found && memo->count < sizeof memo->list / sizeof *memo->list)
        memo->list[memo->count++] = found;
    return rc;
}

int catalog_write_jobs(const struct catalog_source *source, const struct job *jobs, uint32_t count,
                       struct buf *out, struct err *err)
{
    struct uuid *ids = TRY_MEMORY(arena_alloc_array(source->arena, count + 1, sizeof *ids));
    int64_t *next_us = TRY_MEMORY(arena_alloc_array(source->arena, count + 1, sizeof *next_us));
    struct category_memo memo = {.count = 0};

    for (uint32_t i = 0; i < count; i++)
        ids[i] = jobs[i].id;
    TRY(source->store->verbs->catalog->read_next_fires(source->reader, ids, count, next_us, err));
    for (uint32_t i = 0; i < count; i++) {
        struct job_extra extra = {.next_execution_us = next_us[i], .settings = source->settings,
                                  .redacted = source->redacted};

        TRY(category_of(source, &jobs[i], &memo, &extra.category, err));
        if (!jobs[i].is_active || (extra.category && !extra.category->is_active))
            extra.next_execution_us = 0; /* its instants pass */
        json_comma(out);
        render_job(out, &jobs[i], &extra);
    }
    return 0;
}

int catalog_write(const struct catalog_source *source, enum catalog_kind kind, const void *item,
                  struct buf *out, struct err *err)
{
    switch (kind) {
    case CATALOG_CATEGORY:
        render_category(out, item);
        return 0;
    case CATALOG_JOB:
        return catalog_write_jobs(source, item, 1, out, err);
    case CATALOG_SCHEDULE:
        render_schedule(out, item);
        return 0;
    case CATALOG_RECURRING:
        render_recurring(out, item);
        return 0;
    case CATALOG_DEPENDENCY:
        render_job_dependency(out, item);
        return 0;
    case CATALOG_KIND_COUNT:
        break;
    }
    ASSERT(false);
    return -(int)ERR_INTERNAL;
}

/* ---- when it fires ---- */

/* An instant without a fraction where it has none: 2027-03-28T01:00:00Z, in quotes. */
static void write_instant(struct buf *out, int64_t time_us)
{
    char text[CLOCK_TEXT_BYTES];

    clock_format(time_us, text);
    if (time_us % CLOCK_SECOND_US == 0)
        memcpy(strchr(text, '.'), "Z", 2);
    buf_byte(out, '"');
    buf_text(out, text);
    buf_byte(out, '"');
}

static void write_plan(const struct plan *plan, bool active, const struct upcoming_wish *wish,
                       int64_t now_us, struct buf *out)
{
    int64_t after_us = (wish->from_us ? wish->from_us : now_us) - 1;
    BUF_AUTO struct buf words = BUF_INIT(EXPLAIN_BYTES_MAX);
    int64_t next_us;

    buf_text(out, "{\"items\":[");
    for (int64_t i = 0; active && i < wish->count && plan_next(plan, after_us, &next_us); i++) {
        json_comma(out);
        write_instant(out, next_us);
        after_us = next_us;
    }
    plan_explain(plan, &words);
    buf_text(out, "],\"explain\":");
    json_write_string(out, buf_view(&words));
    buf_byte(out, '}');
}

static int write_schedule(const struct catalog_source *source, const struct schedule *schedule,
                          const struct upcoming_wish *wish, struct buf *out, struct err *err)
{
    struct plan plan;

    TRY(plan_schedule(schedule, source->zones, source->now_us, &plan, err));
    write_plan(&plan, schedule->is_active, wish, source->now_us, out);
    plan_release(&plan, source->zones);
    return 0;
}

static int write_recurring(const struct catalog_source *source, const struct recurring *recurring,
                           const struct upcoming_wish *wish, struct buf *out, struct err *err)
{
    struct plan plan;

    TRY(plan_recurring(recurring, source->zones, source->now_us, source->arena, &plan, err));
    write_plan(&plan, recurring->is_active, wish, source->now_us, out);
    plan_release(&plan, source->zones);
    return 0;
}

int catalog_write_upcoming(const struct catalog_source *source, enum catalog_kind kind,
                           const void *item, const struct upcoming_wish *wish, struct buf *out,
                           struct err *err)
{
    ASSERT(kind == CATALOG_SCHEDULE || kind == CATALOG_RECURRING);
    return kind == CATALOG_SCHEDULE ? write_schedule(source, item, wish, out, err)
                                    : write_recurring(source, item, wish, out, err);
}

int catalog_write_preview(const struct catalog_source *source, enum catalog_kind kind, void *item,
                          const struct upcoming_wish *wish, struct buf *out, struct err *err)
{
    int64_t made_us = wish->from_us ? wish->from_us : source->now_us;
    struct schedule *schedule = item;
    struct recurring *recurring = item;

    if (kind == CATALOG_SCHEDULE) {
        schedule->created_at_us = made_us;
        schedule->is_active = true;
        TRY(schedule_check(schedule, err));
    } else {
        recurring->created_at_us = made_us;
        recurring->is_active = true;
        if (recurring->type >= RECURRENCE_TYPE_COUNT)
            return err_set_field(err, ERR_INVALID, "pattern_type", "'pattern_type' is missing; it "
                                 "is daily, weekly, monthly, yearly or rrule");
    }
    return catalog_write_upcoming(source, kind, item, wish, out, err);
}
