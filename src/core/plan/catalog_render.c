/* Categories, jobs, schedules, recurring patterns and dependencies as JSON: their columns under
 * their names, and what a job's reply says beside them. Values of a job are those in force: its
 * own, else its category's. Pure, any thread. */
#include "core/plan/catalog_render.h"

#include "core/plan/catalog_fields.h"
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

/* A stored field by its name. Empty numbers are null; absent texts are what stores put there. */
static void render_field(struct buf *out, const struct field *field, const void *row)
{
    const void *at = (const char *)row + field->offset;
    const struct str *text = at;

    switch (field->kind) {
    case FIELD_UUID:
        render_uuid(out, field->name, at);
        break;
    case FIELD_TEXT:
        (field->flags & FIELD_LIST ? render_json : render_text)(
            out, field->name, text->data ? *text : str_of(field->otherwise));
        break;
    case FIELD_JSON:
        render_json(out, field->name, text->data ? *text : str_of(field->otherwise));
        break;
    case FIELD_WORD:
        render_word(out, field->name, field->words->word(*(const int *)at));
        break;
    case FIELD_BOOL:
        render_bool(out, field->name, *(const bool *)at);
        break;
    case FIELD_TIME:
        render_time(out, field->name, *(const int64_t *)at);
        break;
    case FIELD_PRIORITY:
        render_priority(out, field->name, true, *(const int64_t *)at);
        break;
    default:
        ASSERT(field->kind == FIELD_INT);
        render_number(out, field->name,
                      !(field->flags & FIELD_EMPTY) || *(const int64_t *)at != field->empty,
                      *(const int64_t *)at);
    }
}

/* All stored fields, in the order of their list. */
static void render_row(struct buf *out, const struct field_table *table, const void *row)
{
    buf_byte(out, '{');
    for (uint32_t i = 0; i < table->count; i++)
        render_field(out, &table->fields[i], row);
    buf_byte(out, '}');
}

void render_category(struct buf *out, const struct category *category)
{
    render_row(out, &category_table, category);
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
    render_text(out, "target_service", values ? values->target_service : job->target_service);
    render_text(out, "target_method", job->target_method);
    if (extra && extra->redacted)
        render_bool(out, "redacted", true);
    else
        render_json(out, "payload", job->payload);
    job_values(out, job, values);
    render_int(out, "max_concurrent", job->max_concurrent);
    render_text(out, "callback_url", job->callback_url);
    render_json(out, "callback_events", job->callback_events);
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
    render_row(out, &schedule_table, schedule);
}

void render_recurring(struct buf *out, const struct recurring *recurring)
{
    render_row(out, &recurring_table, recurring);
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
