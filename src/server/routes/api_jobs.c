/* /v1/jobs: definitions that tasks are made of, with their schedules, dependencies, runs and how
 * these went. {id} may be the name, where only one job has it. Most of it is catalog_call.c. Loop
 * thread, but for the read_ functions. */
#include "server/api.h"
#include "server/catalog_call.h"

#include "core/render.h"

#define STATS_SINCE_US (7 * 24 * 3600 * CLOCK_SECOND_US) /* where nothing else is asked for */

struct stats_call {
    int64_t since_us;
    bool with_deleted;
};

/* What has not begun or not ended has no duration; of nothing there is no average. */
static void write_stats(struct buf *out, const struct job *job, const struct job_stats *stats,
                        int64_t since_us)
{
    int64_t ended = stats->completed + stats->failed + stats->timed_out;

    buf_byte(out, '{');
    render_uuid(out, "job_id", &job->id);
    render_text(out, "name", job->name);
    render_time(out, "since", since_us);
    render_int(out, "total", stats->total);
    render_int(out, "completed", stats->completed);
    render_int(out, "failed", stats->failed);
    render_int(out, "timeout", stats->timed_out);
    render_int(out, "cancelled", stats->cancelled);
    render_int(out, "open", stats->open);
    if (ended)
        buf_format(out, ",\"success_rate\":%.4f", (double)stats->completed / (double)ended);
    else
        buf_text(out, ",\"success_rate\":null");
    if (stats->duration_count)
        render_int(out, "average_duration_ms", stats->duration_ms_total / stats->duration_count);
    else
        render_json(out, "average_duration_ms", STR_NONE);
    if (stats->duration_count)
        render_int(out, "max_duration_ms", stats->duration_ms_max);
    else
        render_json(out, "max_duration_ms", STR_NONE);
    render_time(out, "last_started_at", stats->last_started_us);
    buf_byte(out, '}');
}

static int read_stats(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct stats_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    int64_t since_us = ours->since_us ? ours->since_us : source.now_us - STATS_SINCE_US;
    struct job_stats stats = {0};
    const void *job;
    struct uuid id;
    int rc = catalog_find(&source, CATALOG_JOB, call->name, &id, &call->err);

    source.with_deleted = ours->with_deleted;
    if (rc == 0)
        rc = catalog_load(&source, CATALOG_JOB, &id, &job, &call->err);
    if (rc == 0)
        rc = source.store->verbs->catalog->read_job_stats(reader, &id, since_us, &stats,
                                                          &call->err);
    if (rc == 0)
        write_stats(&call->out, job, &stats, since_us);
    return rc;
}

void api_job_stats(struct api_call *call)
{
    struct stats_call *ours = arena_alloc(call->arena, sizeof *ours);

    if (!ours)
        err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    if (!ours || call_parameter_time(call, "since", &ours->since_us) < 0 ||
        catalog_call_with_deleted(call, &ours->with_deleted) < 0) {
        call_fail(call);
        return;
    }
    call->ctx = ours;
    call_reads_long(call, true);
    call_read(call, read_stats);
}

void api_jobs_list(struct api_call *call)
{
    catalog_call_list(call, CATALOG_JOB);
}

void api_job_create(struct api_call *call)
{
    catalog_call_create(call, CATALOG_JOB);
}

void api_job_get(struct api_call *call)
{
    catalog_call_get(call, CATALOG_JOB);
}

void api_job_update(struct api_call *call)
{
    catalog_call_update(call, CATALOG_JOB);
}

void api_job_delete(struct api_call *call)
{
    catalog_call_delete(call, CATALOG_JOB);
}

void api_job_run(struct api_call *call)
{
    catalog_call_run(call, CATALOG_JOB);
}

void api_job_schedules_list(struct api_call *call)
{
    catalog_call_list_of_job(call, CATALOG_SCHEDULE);
}

void api_job_schedule_create(struct api_call *call)
{
    catalog_call_create_of_job(call, CATALOG_SCHEDULE);
}

void api_job_dependencies_list(struct api_call *call)
{
    catalog_call_list_of_job(call, CATALOG_DEPENDENCY);
}

void api_job_dependency_create(struct api_call *call)
{
    catalog_call_create_of_job(call, CATALOG_DEPENDENCY);
}

void api_job_dependency_delete(struct api_call *call)
{
    catalog_call_delete_dependency(call);
}
