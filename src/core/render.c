/* Domain objects as JSON. Written for speed, as every claim and list is made of it: keys are
 * literals copied whole, numbers and times are formed by hand, one reservation holds all of a task
 * but the user's own texts, and nothing here goes through printf. Pure, any thread. */
#include "core/render.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/queue_name.h"
#include "core/task/task_fields.h"

#define TASK_BYTES 2560 /* a task without its texts and JSON values */

static inline void put(struct buf *out, const char *text, size_t len)
{
    if (out->failed || len > out->cap - out->len) {
        buf_append(out, text, len);
        return;
    }
    memcpy(out->data + out->len, text, len);
    out->len += len;
}

/* A literal with its length known when this is compiled. */
#define PUT(out, literal) put(out, literal, sizeof(literal) - 1)

static inline void put_time(struct buf *out, int64_t time_us)
{
    char text[CLOCK_TEXT_BYTES + 1];

    if (time_us == 0) {
        PUT(out, "null");
        return;
    }
    text[0] = '"';
    clock_format(time_us, text + 1);
    text[CLOCK_TEXT_BYTES] = '"'; /* in place of the NUL */
    put(out, text, CLOCK_TEXT_BYTES + 1);
}

static inline void put_text(struct buf *out, struct str text)
{
    if (text.data)
        json_write_string(out, text);
    else
        PUT(out, "null");
}

static inline void put_json(struct buf *out, struct str json)
{
    if (json.data)
        put(out, json.data, json.len);
    else
        PUT(out, "null");
}

static inline void put_bool(struct buf *out, bool value)
{
    if (value)
        PUT(out, "true");
    else
        PUT(out, "false");
}

static inline void put_id(struct buf *out, const struct uuid *id)
{
    char text[UUID_TEXT_BYTES + 1];

    text[0] = '"';
    uuid_format(id, text + 1);
    text[UUID_TEXT_BYTES] = '"';
    put(out, text, UUID_TEXT_BYTES + 1);
}

static inline void put_id_or_null(struct buf *out, const struct uuid *id)
{
    if (uuid_is_nil(id))
        PUT(out, "null");
    else
        put_id(out, id);
}

/* A word of ours, which needs no escapes. */
static inline void put_word(struct buf *out, const char *word)
{
    buf_byte(out, '"');
    put(out, word, strlen(word));
    buf_byte(out, '"');
}

static inline void put_word_or_null(struct buf *out, const char *word)
{
    if (word)
        put_word(out, word);
    else
        PUT(out, "null");
}

static void put_status(struct buf *out, enum status status)
{
    put_word_or_null(out, status == STATUS_NONE ? NULL : status_word(status));
}

/* A member after the first: `,"key":value`. */
#define TIME(out, key, value) (PUT(out, ",\"" key "\":"), put_time(out, value))
#define TEXT(out, key, value) (PUT(out, ",\"" key "\":"), put_text(out, value))
#define JSON(out, key, value) (PUT(out, ",\"" key "\":"), put_json(out, value))
#define INT(out, key, value) (PUT(out, ",\"" key "\":"), buf_int(out, value))
#define BOOL(out, key, value) (PUT(out, ",\"" key "\":"), put_bool(out, value))
#define ID(out, key, value) (PUT(out, ",\"" key "\":"), put_id_or_null(out, value))
#define WORD(out, key, value) (PUT(out, ",\"" key "\":"), put_word(out, value))

/* All of the field's bytes, as their number is known; what is behind them is written over. */
static inline void put_member(struct buf *out, const struct task_field *field)
{
    if (out->failed || TASK_KEY_BYTES > out->cap - out->len) {
        buf_append(out, field->key, field->key_len);
        return;
    }
    memcpy(out->data + out->len, field->key, TASK_KEY_BYTES);
    out->len += field->key_len;
}

static void put_value(struct buf *out, const struct field *field, const void *at)
{
    switch (field->kind) {
    case FIELD_INT:
        buf_int(out, *(const int64_t *)at);
        break;
    case FIELD_TIME:
        put_time(out, *(const int64_t *)at);
        break;
    case FIELD_BOOL:
        put_bool(out, *(const bool *)at);
        break;
    case FIELD_UUID:
        put_id_or_null(out, at);
        break;
    case FIELD_WORD:
        put_word_or_null(out, field->words->word(*(const int *)at));
        break;
    default:
        put_text(out, *(const struct str *)at);
    }
}

static void put_field(struct buf *out, const struct task_field *field, const struct task *task,
                      const struct render_extra *extra)
{
    const void *at = (const char *)task + field->field.offset;
    struct str text = field->field.kind == FIELD_TEXT ? *(const struct str *)at : STR_NONE;

    switch (field->show) {
    case SHOW_DATA:
        if (extra && extra->data.data)
            text = extra->data;
        break;
    case SHOW_OBJECT:
        if (!text.data)
            text = STR("{}");
        break;
    case SHOW_LIST:
        if (!text.data)
            text = STR("[]");
        break;
    case SHOW_RUN_AT:
        put_time(out, task->spec.run_at_us ? task->spec.run_at_us : task->scheduled_at_us);
        return;
    case SHOW_QUEUE:
        put_text(out, queue_name_plain(text));
        return;
    case SHOW_TRACE:
        put_text(out, extra && extra->traceparent.data ? extra->traceparent : text);
        return;
    case SHOW:
        put_value(out, &field->field, at);
        return;
    default:
        break;
    }
    put_json(out, text);
}

static bool is_loaded(const struct task_field *field, const struct task *task,
                      const struct render_extra *extra)
{
    if (field->show == SHOW_DATA)
        return task->has_data || (extra && extra->data.data);
    return !field->of_spec || task->has_spec || field->show == SHOW_RUN_AT;
}

static void put_fields(struct buf *out, const struct task *task, const struct render_extra *extra)
{
    size_t start = out->len;

    for (uint32_t i = 0; i < task_fields_count; i++) {
        const struct task_field *field = &task_fields[i];

        if (field->show == SHOW_NOT || !is_loaded(field, task, extra))
            continue;
        put_member(out, field);
        put_field(out, field, task, extra);
    }
    if (out->len > start)
        out->data[start] = '{'; /* in place of the first comma */
}

/* What it came to: met is null as long as it has not ended. */
static void put_parent(struct buf *out, const struct task_dependency *dependency)
{
    WORD(out, "status", status_word(dependency->status));
    if (!status_ended(dependency->status))
        PUT(out, ",\"met\":null");
    else if (dependency_met(dependency->kind, dependency->status))
        PUT(out, ",\"met\":true");
    else
        PUT(out, ",\"met\":false");
}

static void put_dependencies(struct buf *out, const struct task_dependency *dependencies,
                             uint32_t count)
{
    PUT(out, ",\"depends_on\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            PUT(out, ",{\"task\":");
        else
            PUT(out, "{\"task\":");
        put_id(out, &dependencies[i].task_id);
        WORD(out, "type", dependency_word(dependencies[i].kind));
        if (dependencies[i].status != STATUS_NONE)
            put_parent(out, &dependencies[i]);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void task_extra(struct buf *out, const struct task *task, const struct render_extra *extra)
{
    if (extra->single) {
        JSON(out, "result", extra->result);
        put_dependencies(out, extra->dependencies, extra->dependencies_count);
    }
    if (extra->verdict.data)
        JSON(out, "recovery", extra->verdict);
    if (extra->duplicate)
        PUT(out, ",\"duplicate\":true");
    if (extra->payload_differs)
        PUT(out, ",\"payload_differs\":true");
    if (!extra->claimed)
        return;
    INT(out, "lease_token", task->lease.token); /* shown to its holder only */
    INT(out, "lease_ms", extra->lease_ms);
    INT(out, "attempt", task->counts.attempts);
    PUT(out, ",\"checkpoint\":");
    if (extra->checkpoint)
        render_checkpoint_short(out, extra->checkpoint);
    else
        PUT(out, "null");
}

void render_task(struct buf *out, const struct task *task, const struct render_extra *extra)
{
    size_t texts = task->spec.payload.len + task->data.len + task->about.metadata.len;

    /* Only a wish: near the buffer's maximum the texts decide whether it fits. */
    if (texts < out->max_bytes && TASK_BYTES + texts < out->max_bytes - out->len)
        buf_reserve(out, TASK_BYTES + texts);
    put_fields(out, task, extra);
    if (extra)
        task_extra(out, task, extra);
    buf_byte(out, '}');
}

/* The detail of a claim without its lease token, which is the holder's alone. */
static void put_detail(struct buf *out, struct str detail)
{
    static const char key[] = "\"lease_token\":";
    const char *at = detail.data ? memmem(detail.data, detail.len, key, sizeof key - 1) : NULL;
    size_t before = at ? (size_t)(at - detail.data) : 0, after = before + sizeof key - 1;

    if (!at) {
        JSON(out, "detail", detail);
        return;
    }
    while (after < detail.len && detail.data[after] != ',' && detail.data[after] != '}')
        after++;
    if (after < detail.len && detail.data[after] == ',')
        after++;
    PUT(out, ",\"detail\":");
    buf_append(out, detail.data, before);
    buf_append(out, detail.data + after, detail.len - after);
}

void render_event(struct buf *out, const struct task_event *event, const struct uuid *task_id,
                  struct str correlation_id)
{
    PUT(out, "{\"id\":");
    put_id_or_null(out, &event->id);
    ID(out, "task_id", task_id);
    INT(out, "seq", event->seq);
    PUT(out, ",\"status\":");
    put_status(out, event->status);
    TEXT(out, "state", event->state);
    if (event->status == STATUS_CLAIMED)
        put_detail(out, event->detail);
    else
        JSON(out, "detail", event->detail);
    WORD(out, "actor", actor_word(event->actor));
    TEXT(out, "correlation_id", correlation_id);
    TIME(out, "created_at", event->created_at_us);
    buf_byte(out, '}');
}

void render_execution(struct buf *out, const struct execution *execution)
{
    bool ended = execution->completed_at_us || execution->failed_at_us;

    PUT(out, "{\"id\":");
    put_id_or_null(out, &execution->id);
    ID(out, "task_id", &execution->task_id);
    ID(out, "job_id", &execution->job_id);
    ID(out, "schedule_id", &execution->schedule_id);
    WORD(out, "status", execution_status_word(execution->status));
    INT(out, "attempt_number", execution->attempt_number);
    TEXT(out, "worker_id", execution->worker_id);
    TEXT(out, "correlation_id", execution->correlation_id);
    TIME(out, "planned_at", execution->planned_at_us);
    TIME(out, "started_at", execution->started_at_us);
    TIME(out, "completed_at", execution->completed_at_us);
    TIME(out, "failed_at", execution->failed_at_us);
    if (ended)
        INT(out, "duration_ms", execution->duration_ms);
    else
        PUT(out, ",\"duration_ms\":null");
    JSON(out, "result_data", execution->result_data);
    JSON(out, "error_data", execution->error_data);
    TIME(out, "created_at", execution->created_at_us);
    buf_byte(out, '}');
}

static void put_progress(struct buf *out, int64_t progress)
{
    if (progress < 0)
        PUT(out, "null");
    else
        buf_int(out, progress);
}

void render_checkpoint(struct buf *out, const struct checkpoint *checkpoint,
                       const struct uuid *task_id)
{
    PUT(out, "{\"id\":");
    put_id_or_null(out, &checkpoint->id);
    ID(out, "task_id", task_id);
    INT(out, "seq", checkpoint->seq);
    TEXT(out, "checkpoint_name", checkpoint->name);
    PUT(out, ",\"progress_percent\":");
    put_progress(out, checkpoint->progress);
    TEXT(out, "step_description", checkpoint->description);
    JSON(out, "recoverable_data", checkpoint->data);
    JSON(out, "database_state", checkpoint->database_state);
    JSON(out, "file_state", checkpoint->file_state);
    TEXT(out, "checkpoint_hash", str_of(checkpoint->hash));
    BOOL(out, "is_valid", checkpoint->valid);
    TIME(out, "created_at", checkpoint->created_at_us);
    buf_byte(out, '}');
}

void render_checkpoint_short(struct buf *out, const struct checkpoint *checkpoint)
{
    PUT(out, "{\"name\":");
    put_text(out, checkpoint->name);
    PUT(out, ",\"progress\":");
    put_progress(out, checkpoint->progress);
    JSON(out, "data", checkpoint->data);
    JSON(out, "database_state", checkpoint->database_state);
    JSON(out, "file_state", checkpoint->file_state);
    buf_byte(out, '}');
}

/* Keys are ours and need no escapes. */
static void put_key(struct buf *out, const char *key)
{
    json_comma(out);
    put_word(out, key);
    buf_byte(out, ':');
}

void render_time(struct buf *out, const char *key, int64_t time_us)
{
    put_key(out, key);
    put_time(out, time_us);
}

void render_text(struct buf *out, const char *key, struct str text)
{
    put_key(out, key);
    put_text(out, text);
}

void render_json(struct buf *out, const char *key, struct str json)
{
    put_key(out, key);
    put_json(out, json);
}

void render_int(struct buf *out, const char *key, int64_t value)
{
    put_key(out, key);
    buf_int(out, value);
}

void render_bool(struct buf *out, const char *key, bool value)
{
    put_key(out, key);
    put_bool(out, value);
}

void render_uuid(struct buf *out, const char *key, const struct uuid *id)
{
    put_key(out, key);
    put_id_or_null(out, id);
}

void render_error(struct buf *out, const struct err *err)
{
    PUT(out, "{\"error\":{\"code\":");
    put_word(out, err_word(err->code));
    TEXT(out, "message", str_of(err->text));
    if (err->field[0])
        TEXT(out, "field", str_of(err->field));
    PUT(out, "}}");
}
