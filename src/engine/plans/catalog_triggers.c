/* How much the end of one job may start (D7): all of it is made in the transaction of that end, so
 * it is bounded in runs and in bytes when a dependency or a job is changed, not when a run ends and
 * it is too late to change anything. Under the catalog's lock. */
#include "core/bounds.h"
#include "engine/batch.h"
#include "engine/plans/catalog_change.h"
#include "engine/plans/categories.h"
#include "engine/plans/runs.h"
#include "store/catalog_store.h"

#define TRIGGERS_MAX BOUND_CHORE_ROWS
#define TRIGGERS_BYTES_MAX (16u * 1024 * 1024) /* of payloads, as one commit of firing takes */
#define JOBS_PAGE 32                           /* looked at together: payloads come with them */

static int refuse(struct err *err, const char *field, const char *whose)
{
    return err_set_field(err, ERR_INVALID, field, "the end of %s would start jobs with more than "
                         "%u MiB of payloads; make some of them smaller", whose,
                         TRIGGERS_BYTES_MAX >> 20);
}

/* Of those that the end of a job starts, but for one of them. */
static int sum_page(struct batch *batch, const struct uuid *ids, uint32_t count, size_t *bytes,
                    struct err *err)
{
    ARENA_AUTO struct arena page = ARENA_INIT(0);
    struct job *jobs[JOBS_PAGE];

    TRY(batch->store->verbs->catalog->jobs_load(batch->store, ids, count, false, &page, jobs, err));
    TRY_MEMORY(!page.failed);
    for (uint32_t i = 0; i < count; i++)
        *bytes += jobs[i] ? jobs[i]->payload.len : 0;
    return 0;
}

static int sum_payloads(struct batch *batch, const struct uuid *ended_id,
                        const struct uuid *but_job_id, size_t *bytes, struct err *err)
{
    uint32_t edges_count, count = 0;
    struct job_dependency **edges = edges_on(batch, ended_id, &edges_count);
    struct uuid ids[JOBS_PAGE];

    for (uint32_t i = 0; i < edges_count; i++) {
        if (edges[i]->mode == DEPENDENCY_TRIGGER && !uuid_eq(&edges[i]->job_id, but_job_id))
            ids[count++] = edges[i]->job_id;
        if (count == JOBS_PAGE || (count && i + 1 == edges_count)) {
            TRY(sum_page(batch, ids, count, bytes, err));
            count = 0;
        }
    }
    return 0;
}

int triggers_check(struct batch *batch, const struct job_dependency *dependency,
                   const struct job *job, struct err *err)
{
    uint32_t edges_count, count = 0;
    struct job_dependency **edges = edges_on(batch, &dependency->depends_on_job_id, &edges_count);
    size_t bytes = job->payload.len;

    if (dependency->mode != DEPENDENCY_TRIGGER)
        return 0;
    for (uint32_t i = 0; i < edges_count; i++)
        count += edges[i]->mode == DEPENDENCY_TRIGGER &&
                 !uuid_eq(&edges[i]->id, &dependency->id);
    if (count >= TRIGGERS_MAX)
        return err_set_field(err, ERR_INVALID, "depends_on_job_id", "that job starts %d others "
                             "already", TRIGGERS_MAX);
    TRY(sum_payloads(batch, &dependency->depends_on_job_id, &dependency->job_id, &bytes, err));
    return bytes > TRIGGERS_BYTES_MAX ? refuse(err, "depends_on_job_id", "that job") : 0;
}

int triggers_check_job(struct batch *batch, const struct job *job, struct err *err)
{
    uint32_t edges_count;
    const struct job_dependency *edges = edges_of(batch, &job->id, &edges_count);

    if (job->payload.len <= TRIGGERS_BYTES_MAX / TRIGGERS_MAX) /* they may all be as large */
        return 0;
    for (uint32_t i = 0; i < edges_count; i++) {
        size_t bytes = job->payload.len;

        if (edges[i].mode != DEPENDENCY_TRIGGER)
            continue;
        TRY(sum_payloads(batch, &edges[i].depends_on_job_id, &job->id, &bytes, err));
        if (bytes > TRIGGERS_BYTES_MAX)
            return refuse(err, "payload", "a job that starts this one");
    }
    return 0;
}
