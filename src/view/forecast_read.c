/* Reading for a forecast. Jobs come first and are kept as what a forecast asks of them, so that a
 * hundred thousand schedules do not ask for their jobs one by one. */
#include "view/forecast_read.h"

#include "base/map.h"

#define PAGE 500
#define JOBS_BYTES_MAX ((size_t)128 << 20) /* about half a million jobs */

struct known_job {
    struct uuid id;
    struct uuid category_id;
    struct str name;
};

struct reading {
    struct forecast *forecast;
    const struct catalog_source *source;
    struct str job; /* only what fires for it; absent = all */
    struct arena jobs_arena;
    struct map jobs; /* by id */
    struct err *err;
};

static const struct catalog_verbs *verbs_of(const struct reading *reading)
{
    return reading->source->store->verbs->catalog;
}

static struct catalog_filter all_of(const struct reading *reading, int active)
{
    return (struct catalog_filter){.namespace_name = catalog_source_namespace(reading->source),
                                   .active = active,
                                   .type = -1,
                                   .limit = PAGE};
}

/* Reads and hands on one page of a kind; the filter continues behind it. */
typedef int page_read(struct reading *reading, struct catalog_filter *filter, uint32_t *count);

static int read_pages(struct reading *reading, page_read *page, int active)
{
    struct catalog_filter filter = all_of(reading, active);
    uint32_t count;

    for (;;) {
        int rc = page(reading, &filter, &count);

        arena_reset(reading->source->arena);
        if (rc == -ERR_TOO_LARGE && filter.limit > 1) {
            filter.limit /= 2;
            continue;
        }
        if (rc < 0)
            return rc;
        if (count < filter.limit)
            return 0;
    }
}

static int categories_page(struct reading *reading, struct catalog_filter *filter, uint32_t *count)
{
    const struct catalog_source *source = reading->source;
    struct category *categories = NULL;
    int rc = verbs_of(reading)->read_categories(source->reader, filter, source->arena, &categories,
                                                count, reading->err);

    if (rc < 0 || *count == 0)
        return rc;
    filter->before_id = categories[*count - 1].id;
    return forecast_categories(reading->forecast, categories, *count, reading->err);
}

static int no_memory(struct reading *reading)
{
    return err_set(reading->err, ERR_MEMORY, "there are too many jobs to forecast in this memory");
}

static int keep_job(struct reading *reading, const struct job *job)
{
    struct known_job *known = arena_alloc(&reading->jobs_arena, sizeof *known);

    if (!known)
        return no_memory(reading);
    known->id = job->id;
    known->category_id = job->category_id;
    known->name = arena_str(&reading->jobs_arena, job->name);
    if (!known->name.data || map_put(&reading->jobs, uuid_bytes(&known->id), known) < 0)
        return no_memory(reading);
    return 0;
}

static bool is_wanted(const struct reading *reading, const struct job *job)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&job->id, id);
    if (!catalog_shows_job(reading->source, job))
        return false;
    return !reading->job.data || str_eq(reading->job, job->name) || str_is(reading->job, id);
}

static int jobs_page(struct reading *reading, struct catalog_filter *filter, uint32_t *count)
{
    const struct catalog_source *source = reading->source;
    struct job *jobs = NULL;

    TRY(verbs_of(reading)->read_jobs(source->reader, filter, source->arena, &jobs, count,
                                     reading->err));
    for (uint32_t i = 0; i < *count; i++) {
        if (is_wanted(reading, &jobs[i]))
            TRY(keep_job(reading, &jobs[i]));
        filter->before_id = jobs[i].id;
    }
    return 0;
}

/* Whether what belongs to this job is counted. A principal of one user does not learn what others
 * plan, not even how much. */
static bool counts(const struct reading *reading, bool found)
{
    const struct principal *principal = reading->source->principal;

    return found || !principal || !principal->user_id.data;
}

/* As much of the job as a forecast looks at; false when it is not there or not active. */
static bool find_job(const struct reading *reading, const struct uuid *id, struct job *job)
{
    const struct known_job *known = map_get(&reading->jobs, uuid_bytes(id));

    if (!known)
        return false;
    *job = (struct job){.id = known->id,
                        .namespace_name = catalog_source_namespace(reading->source),
                        .name = known->name,
                        .category_id = known->category_id,
                        .is_active = true};
    return true;
}

static int schedules_page(struct reading *reading, struct catalog_filter *filter, uint32_t *count)
{
    const struct catalog_source *source = reading->source;
    struct schedule *schedules = NULL;
    struct job job;

    TRY(verbs_of(reading)->read_schedules(source->reader, filter, source->arena, &schedules, count,
                                          reading->err));
    for (uint32_t i = 0; i < *count; i++) {
        bool found = find_job(reading, &schedules[i].job_id, &job);

        if (counts(reading, found))
            TRY(forecast_add_schedule(reading->forecast, &schedules[i], found ? &job : NULL,
                                      reading->err));
        filter->before_id = schedules[i].id;
    }
    return 0;
}

static int recurring_page(struct reading *reading, struct catalog_filter *filter, uint32_t *count)
{
    const struct catalog_source *source = reading->source;
    struct recurring *recurring = NULL;
    struct job job;

    TRY(verbs_of(reading)->read_recurring(source->reader, filter, source->arena, &recurring, count,
                                          reading->err));
    for (uint32_t i = 0; i < *count; i++) {
        bool found = find_job(reading, &recurring[i].template_job_id, &job);

        if (counts(reading, found))
            TRY(forecast_add_recurring(reading->forecast, &recurring[i], found ? &job : NULL,
                                       reading->err));
        filter->before_id = recurring[i].id;
    }
    return 0;
}

int forecast_read(struct forecast *forecast, const struct catalog_source *source, struct str job,
                  struct err *err)
{
    struct reading reading = {.forecast = forecast,
                              .source = source,
                              .job = job,
                              .jobs_arena = ARENA_INIT(JOBS_BYTES_MAX),
                              .jobs = MAP_INIT,
                              .err = err};
    int rc;

    rc = read_pages(&reading, categories_page, -1);
    if (rc == 0)
        rc = read_pages(&reading, jobs_page, 1);
    if (rc == 0)
        rc = read_pages(&reading, schedules_page, 1);
    if (rc == 0)
        rc = read_pages(&reading, recurring_page, 1);
    map_deinit(&reading.jobs);
    arena_deinit(&reading.jobs_arena);
    return rc;
}
