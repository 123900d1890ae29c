/* Categories, jobs, schedules, recurring patterns and dependencies as JSON: their columns under
 * their names, and what a job's reply says beside them. Values of a job are those in force: its
 * own, else its category's. Pure, any thread. */
#include "core/plan/catalog_render.h"

#include "core/plan/job.h"
#include "core/render.h"
#include "core/spec/spec.h"

/* A member after the first: `,"key":value`. */
#define MEMBER(kind, key, value) (buf_byte(out, ','), render_##kind(out, key, value))

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
    MEMBER(text, "namespace", category->namespace_name);
    MEMBER(text, "name", category->name);
    MEMBER(text, "description", category->description);
    buf_byte(out, ',');
    render_priority(out, "default_priority", true, category->default_priority);
    MEMBER(int, "default_timeout", category->default_timeout_s);
    MEMBER(int, "default_max_retries", category->default_max_retries);
    MEMBER(json, "configuration",
           category->configuration.data ? category->configuration : STR("{}"));
    MEMBER(bool, "is_active", category->is_active);
    MEMBER(time, "created_at", category->created_at_us);
    MEMBER(time, "updated_at", category->updated_at_us);
    buf_byte(out, '}');
}

/* ---- jobs ---- */

/* Where nobody knows the category, what is not the job's own is null. */
static void job_own_values(struct buf *out, const struct job *job)
{
    buf_byte(out, ',');
    render_priority(out, "priority", job->has_priority, job->priority);
    buf_byte(out, ',');
    render_number(out, "max_retries", job->has_max_retries, job->max_retries);
    buf_byte(out, ',');
    render_number(out, "timeout_seconds", job->has_timeout, job->timeout_s);
    buf_byte(out, ',');
    render_number(out, "timeout_ms", job->has_timeout, job->timeout_s * 1000);
    MEMBER(json, "value_from", STR_NONE);
}

static void job_values(struct buf *out, const struct job *job, const struct job_values *values)
{
    if (!values) {
        job_own_values(out, job);
        return;
    }
    buf_byte(out, ',');
    render_priority(out, "priority", true, values->priority);
    MEMBER(int, "max_retries", values->max_retries);
    MEMBER(int, "timeout_seconds", (values->timeout_ms + 999) / 1000);
    MEMBER(int, "timeout_ms", values->timeout_ms);
    buf_text(out, ",\"value_from\":{");
    render_word(out, "queue", values->queue_from);
    MEMBER(word, "priority", values->priority_from);
    MEMBER(word, "max_retries", values->max_retries_from);
    MEMBER(word, "timeout_seconds", values->timeout_from);
    buf_byte(out, '}');
}

/* The run that ended last, or null. */
static void job_last(struct buf *out, const struct job *job)
{
    if (job->last_status == STATUS_NONE) {
        MEMBER(json, "last_execution", STR_NONE);
        return;
    }
    buf_text(out, ",\"last_execution\":{");
    render_uuid(out, "task_id", &job->last_task_id);
    MEMBER(word, "status", status_word(job->last_status));
    MEMBER(time, "ended_at", job->last_ended_at_us);
    buf_byte(out, '}');
}

static void job_stats(struct buf *out, const struct job_extra *extra)
{
    buf_text(out, ",\"stats\":{");
    render_time(out, "since", extra->since_us);
    MEMBER(int, "total", extra->total);
    MEMBER(int, "open", extra->open);
    MEMBER(int, "completed", extra->completed);
    MEMBER(int, "failed", extra->failed);
    MEMBER(int, "cancelled", extra->cancelled);
    MEMBER(int, "timeout", extra->timed_out);
    MEMBER(int, "average_ms", extra->average_ms);
    MEMBER(int, "max_ms", extra->max_ms);
    buf_byte(out, '}');
}

void render_job(struct buf *out, const struct job *job, const struct job_extra *extra)
{
    const struct category *category = extra ? extra->category : NULL;
    struct arena arena = ARENA_INIT(0);
    struct job_values in_force;
    struct err ignored = {0};
    const struct job_values *values =
        category && job_values_read(job, category, extra->settings, &arena, &in_force,
                                    &ignored) == 0 ? &in_force : NULL;

    buf_byte(out, '{');
    render_uuid(out, "id", &job->id);
    MEMBER(text, "namespace", job->namespace_name);
    MEMBER(text, "name", job->name);
    MEMBER(text, "description", job->description);
    MEMBER(uuid, "category_id", category ? &category->id : &job->category_id);
    MEMBER(text, "category", category ? category->name : STR_NONE);
    MEMBER(text, "task_type", job->task_type.data ? job->task_type : job->name);
    MEMBER(text, "queue", values ? values->queue : job->queue);
    MEMBER(text, "target_service", job->target_service);
    MEMBER(text, "target_method", job->target_method);
    MEMBER(json, "payload", job->payload);
    job_values(out, job, values);
    MEMBER(int, "max_concurrent", job->max_concurrent);
    MEMBER(text, "callback_url", job->callback_url);
    MEMBER(bool, "is_active", job->is_active);
    MEMBER(text, "created_by", job->created_by);
    MEMBER(time, "created_at", job->created_at_us);
    MEMBER(time, "updated_at", job->updated_at_us);
    MEMBER(time, "deleted_at", job->deleted_at_us);
    job_last(out, job);
    MEMBER(time, "next_execution", extra ? extra->next_execution_us : 0);
    if (extra && extra->with_stats)
        job_stats(out, extra);
    buf_byte(out, '}');
    arena_deinit(&arena);
}

/* ---- schedules, patterns, dependencies ---- */

void render_schedule(struct buf *out, const struct schedule *schedule)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &schedule->id);
    MEMBER(text, "namespace", schedule->namespace_name);
    MEMBER(uuid, "job_id", &schedule->job_id);
    MEMBER(word, "schedule_type", schedule_type_word(schedule->type));
    MEMBER(text, "cron_expression", schedule->cron_expression);
    buf_byte(out, ',');
    render_number(out, "interval_seconds", schedule->interval_s != 0, schedule->interval_s);
    MEMBER(time, "scheduled_at", schedule->scheduled_at_us);
    MEMBER(text, "timezone", schedule->timezone.data ? schedule->timezone : STR("UTC"));
    MEMBER(time, "starts_at", schedule->starts_at_us);
    MEMBER(time, "ends_at", schedule->ends_at_us);
    MEMBER(bool, "is_active", schedule->is_active);
    MEMBER(word, "misfire", misfire_word(schedule->misfire));
    MEMBER(int, "misfire_grace_ms", schedule->misfire_grace_ms);
    MEMBER(int, "misfire_cap", schedule->misfire_cap);
    MEMBER(word, "overlap", overlap_word(schedule->overlap));
    MEMBER(word, "dst", dst_policy_word(schedule->dst));
    MEMBER(int, "jitter_ms", schedule->jitter_ms);
    MEMBER(text, "callback_url", schedule->callback_url);
    MEMBER(time, "next_fire_at", schedule->next_fire_at_us);
    MEMBER(time, "last_fire_at", schedule->last_fire_at_us);
    MEMBER(text, "error", schedule->error);
    MEMBER(time, "created_at", schedule->created_at_us);
    MEMBER(time, "updated_at", schedule->updated_at_us);
    buf_byte(out, '}');
}

void render_recurring(struct buf *out, const struct recurring *recurring)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &recurring->id);
    MEMBER(text, "namespace", recurring->namespace_name);
    MEMBER(text, "name", recurring->name);
    MEMBER(word, "pattern_type", recurrence_type_word(recurring->type));
    MEMBER(json, "pattern_config",
           recurring->pattern_config.data ? recurring->pattern_config : STR("{}"));
    MEMBER(uuid, "template_job_id", &recurring->template_job_id);
    MEMBER(time, "last_generated", recurring->last_generated_us);
    MEMBER(time, "next_generation", recurring->next_generation_us);
    MEMBER(bool, "is_active", recurring->is_active);
    MEMBER(text, "error", recurring->error);
    MEMBER(time, "created_at", recurring->created_at_us);
    MEMBER(time, "updated_at", recurring->updated_at_us);
    buf_byte(out, '}');
}

void render_job_dependency(struct buf *out, const struct job_dependency *dependency)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &dependency->id);
    MEMBER(text, "namespace", dependency->namespace_name);
    MEMBER(uuid, "job_id", &dependency->job_id);
    MEMBER(uuid, "depends_on_job_id", &dependency->depends_on_job_id);
    MEMBER(word, "dependency_type", dependency_word(dependency->kind));
    MEMBER(json, "dependency_config", dependency->config.data ? dependency->config : STR("{}"));
    MEMBER(word, "mode", dependency_mode_word(dependency->mode));
    MEMBER(time, "created_at", dependency->created_at_us);
    buf_byte(out, '}');
}
