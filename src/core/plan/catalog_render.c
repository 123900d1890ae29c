/* Categories, jobs, schedules, recurring patterns and dependencies as JSON: their columns under
 * their names, and what a job's reply says beside them. Values of a job are those in force: its
 * own, else its category's. Pure, any thread. */
#include "core/plan/catalog_render.h"

#include "core/plan/job.h"
#include "core/render.h"
#include "core/spec/spec.h"

static void render_word(struct buf *out, const char *key, const char *word)
{
    render_text(out, key, str_of(word));
}

/* A number that is null where there is none. */
static void render_number(struct buf *out, const char *key, bool given, int64_t value)
{
    if (given)
        render_int(out, key, value);
    else
        render_json(out, key, STR_NONE);
}

/* The level where it is one, else the number. */
static void render_priority(struct buf *out, const char *key, bool given, int64_t priority)
{
    const char *word = priority_level(priority);

    if (given && word)
        render_word(out, key, word);
    else
        render_number(out, key, given, priority);
}

void render_category(struct buf *out, const struct category *category)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &category->id);
    render_text(out, "namespace", category->namespace_name);
    render_text(out, "name", category->name);
    render_text(out, "description", category->description);
    render_priority(out, "default_priority", true, category->default_priority);
    render_int(out, "default_timeout", category->default_timeout_s);
    render_int(out, "default_max_retries", category->default_max_retries);
    render_json(out, "configuration",
           category->configuration.data ? category->configuration : STR("{}"));
    render_bool(out, "is_active", category->is_active);
    render_time(out, "created_at", category->created_at_us);
    render_time(out, "updated_at", category->updated_at_us);
    buf_byte(out, '}');
}

/* ---- jobs ---- */

/* Where the category is unknown, what is not the job's own is null. */
static void job_own_values(struct buf *out, const struct job *job)
{
    render_priority(out, "priority", job->has_priority, job->priority);
    render_number(out, "max_retries", job->has_max_retries, job->max_retries);
    render_number(out, "timeout_seconds", job->has_timeout, job->timeout_s);
    render_number(out, "timeout_ms", job->has_timeout, job->timeout_s * 1000);
    render_json(out, "value_from", STR_NONE);
}

static void job_values(struct buf *out, const struct job *job, const struct job_values *values)
{
    if (!values) {
        job_own_values(out, job);
        return;
    }
    render_priority(out, "priority", true, values->priority);
    render_int(out, "max_retries", values->max_retries);
    render_int(out, "timeout_seconds", (values->timeout_ms + 999) / 1000);
    render_int(out, "timeout_ms", values->timeout_ms);
    buf_text(out, ",\"value_from\":{");
    render_word(out, "queue", values->queue_from);
    render_word(out, "priority", values->priority_from);
    render_word(out, "max_retries", values->max_retries_from);
    render_word(out, "timeout_seconds", values->timeout_from);
    buf_byte(out, '}');
}

/* The run that ended last, or null. */
static void job_last(struct buf *out, const struct job *job)
{
    if (job->last_status == STATUS_NONE) {
        render_json(out, "last_execution", STR_NONE);
        return;
    }
    buf_text(out, ",\"last_execution\":{");
    render_uuid(out, "task_id", &job->last_task_id);
    render_word(out, "status", status_word(job->last_status));
    render_time(out, "ended_at", job->last_ended_at_us);
    buf_byte(out, '}');
}

static void job_stats(struct buf *out, const struct job_extra *extra)
{
    buf_text(out, ",\"stats\":{");
    render_time(out, "since", extra->since_us);
    render_int(out, "total", extra->total);
    render_int(out, "open", extra->open);
    render_int(out, "completed", extra->completed);
    render_int(out, "failed", extra->failed);
    render_int(out, "cancelled", extra->cancelled);
    render_int(out, "timeout", extra->timed_out);
    render_int(out, "average_ms", extra->average_ms);
    render_int(out, "max_ms", extra->max_ms);
    buf_byte(out, '}');
}

void render_job(struct buf *out, const struct job *job, const struct job_extra *extra)
{
    const struct category *category = extra ? extra->category : NULL;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct job_values in_force;
    struct err ignored = {0};
    const struct job_values *values =
        category && job_values_read(job, category, extra->settings, &arena, &in_force,
                                    &ignored) == 0 ? &in_force : NULL;

    buf_byte(out, '{');
    render_uuid(out, "id", &job->id);
    render_text(out, "namespace", job->namespace_name);
    render_text(out, "name", job->name);
    render_text(out, "description", job->description);
    render_uuid(out, "category_id", category ? &category->id : &job->category_id);
    render_text(out, "category", category ? category->name : STR_NONE);
    render_text(out, "task_type", job->task_type.data ? job->task_type : job->name);
    render_text(out, "queue", values ? values->queue : job->queue);
    render_text(out, "target_service", job->target_service);
    render_text(out, "target_method", job->target_method);
    if (extra && extra->redacted)
        render_bool(out, "redacted", true);
    else
        render_json(out, "payload", job->payload);
    job_values(out, job, values);
    render_int(out, "max_concurrent", job->max_concurrent);
    render_text(out, "callback_url", job->callback_url);
    render_bool(out, "is_active", job->is_active);
    render_text(out, "created_by", job->created_by);
    render_text(out, "created_by_principal", job->principal);
    render_time(out, "created_at", job->created_at_us);
    render_time(out, "updated_at", job->updated_at_us);
    render_time(out, "deleted_at", job->deleted_at_us);
    job_last(out, job);
    render_time(out, "next_execution", extra ? extra->next_execution_us : 0);
    if (extra && extra->with_stats)
        job_stats(out, extra);
    buf_byte(out, '}');
}

/* ---- schedules, patterns, dependencies ---- */

void render_schedule(struct buf *out, const struct schedule *schedule)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &schedule->id);
    render_text(out, "namespace", schedule->namespace_name);
    render_uuid(out, "job_id", &schedule->job_id);
    render_word(out, "schedule_type", schedule_type_word(schedule->type));
    render_text(out, "cron_expression", schedule->cron_expression);
    render_number(out, "interval_seconds", schedule->interval_s != 0, schedule->interval_s);
    render_time(out, "scheduled_at", schedule->scheduled_at_us);
    render_text(out, "timezone", schedule->timezone.data ? schedule->timezone : STR("UTC"));
    render_time(out, "starts_at", schedule->starts_at_us);
    render_time(out, "ends_at", schedule->ends_at_us);
    render_bool(out, "is_active", schedule->is_active);
    render_word(out, "misfire", misfire_word(schedule->misfire));
    render_int(out, "misfire_grace_ms", schedule->misfire_grace_ms);
    render_int(out, "misfire_cap", schedule->misfire_cap);
    render_word(out, "overlap", overlap_word(schedule->overlap));
    render_word(out, "dst", dst_policy_word(schedule->dst));
    render_int(out, "jitter_ms", schedule->jitter_ms);
    render_text(out, "callback_url", schedule->callback_url);
    render_time(out, "next_fire_at", schedule->next_fire_at_us);
    render_time(out, "last_fire_at", schedule->last_fire_at_us);
    render_text(out, "error", schedule->error);
    render_text(out, "created_by_principal", schedule->principal);
    render_time(out, "created_at", schedule->created_at_us);
    render_time(out, "updated_at", schedule->updated_at_us);
    buf_byte(out, '}');
}

void render_recurring(struct buf *out, const struct recurring *recurring)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &recurring->id);
    render_text(out, "namespace", recurring->namespace_name);
    render_text(out, "name", recurring->name);
    render_word(out, "pattern_type", recurrence_type_word(recurring->type));
    render_json(out, "pattern_config",
           recurring->pattern_config.data ? recurring->pattern_config : STR("{}"));
    render_uuid(out, "template_job_id", &recurring->template_job_id);
    render_time(out, "last_generated", recurring->last_generated_us);
    render_time(out, "next_generation", recurring->next_generation_us);
    render_bool(out, "is_active", recurring->is_active);
    render_text(out, "error", recurring->error);
    render_text(out, "created_by_principal", recurring->principal);
    render_time(out, "created_at", recurring->created_at_us);
    render_time(out, "updated_at", recurring->updated_at_us);
    buf_byte(out, '}');
}

void render_job_dependency(struct buf *out, const struct job_dependency *dependency)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &dependency->id);
    render_text(out, "namespace", dependency->namespace_name);
    render_uuid(out, "job_id", &dependency->job_id);
    render_uuid(out, "depends_on_job_id", &dependency->depends_on_job_id);
    render_word(out, "dependency_type", dependency_word(dependency->kind));
    render_json(out, "dependency_config", dependency->config.data ? dependency->config : STR("{}"));
    render_word(out, "mode", dependency_mode_word(dependency->mode));
    render_time(out, "created_at", dependency->created_at_us);
    buf_byte(out, '}');
}
