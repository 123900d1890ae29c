/* Domain objects as JSON. Written for speed, as every claim and list is made of it: keys are
 * literals copied whole, numbers and times are formed by hand, one reservation holds all of a task
 * but the user's own texts, and nothing here goes through printf. Pure, any thread. */
#include "core/render.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/queue_name.h"
#include "core/task/task_fields.h"

#define TASK_BYTES 2560 /* a task without its texts and JSON values */

/* Copying a literal is a few moves where it is inlined; in a function as long as that of a task
 * compilers would call it instead. */
__attribute__((always_inline)) static inline void put(struct buf *out, const char *text, size_t len)
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

/* Every kind: the value as it is. */
#define PUT_INT(value, words) buf_int(out, value)
#define PUT_TIME(value, words) put_time(out, value)
#define PUT_BOOL(value, words) put_bool(out, value)
#define PUT_UUID(value, words) put_id_or_null(out, &(value))
#define PUT_TEXT(value, words) put_text(out, value)
#define PUT_BODY PUT_TEXT
#define PUT_WORD(value, words) put_##words(out, value)
#define put_unique_until(out, value) put_word(out, unique_until_word(value))
#define put_on_unsatisfied(out, value) put_word(out, on_unsatisfied_word(value))
#define put_retry_policy(out, value) put_word(out, retry_policy_word(value))

/* Every way to show a field. A load may leave out what is of the spec. */
#define FIELD_SHOW(loaded, name, path, kind, words)                                                \
    if (loaded) {                                                                                  \
        PUT(out, ",\"" #name "\":");                                                               \
        PUT_##kind(task->path, words);                                                             \
    }
#define FIELD_SHOW_JSON(loaded, name, path, kind, words)                                           \
    if (loaded)                                                                                    \
        JSON(out, #name, task->path);
#define FIELD_SHOW_OBJECT(loaded, name, path, kind, words)                                         \
    if (loaded)                                                                                    \
        JSON(out, #name, task->path.data ? task->path : STR("{}"));
#define FIELD_SHOW_LIST(loaded, name, path, kind, words)                                           \
    if (loaded)                                                                                    \
        JSON(out, #name, task->path.data ? task->path : STR("[]"));
#define FIELD_SHOW_CONTENT(loaded, name, path, kind, words)                                        \
    if ((loaded) && !redacted)                                                                     \
        JSON(out, #name, task->path);
#define FIELD_SHOW_CONTENT_TEXT(loaded, name, path, kind, words)                                   \
    if ((loaded) && !redacted)                                                                     \
        TEXT(out, #name, task->path);
#define FIELD_SHOW_DATA(loaded, name, path, kind, words)                                           \
    if ((instead.data || task->has_data) && !redacted)                                             \
        JSON(out, #name, instead.data ? instead : task->path);
#define FIELD_SHOW_RUN_AT(loaded, name, path, kind, words)                                         \
    TIME(out, #name, task->path ? task->path : task->scheduled_at_us);
#define FIELD_SHOW_TRACE(loaded, name, path, kind, words)                                          \
    if (loaded)                                                                                    \
        TEXT(out, #name, trace.data ? trace : task->path);
#define FIELD_SHOW_QUEUE(loaded, name, path, kind, words)                                          \
    if (loaded)                                                                                    \
        TEXT(out, #name, queue_name_plain(task->path));
#define FIELD_SHOW_NOT(loaded, name, path, kind, words)
#define OF_SPEC(name, path, kind, flags, empty, words, show, ask)                                  \
    FIELD_##show(task->has_spec, name, path, kind, words)
#define OF_STATE(name, path, kind, flags, empty, words, show, ask)                                 \
    FIELD_##show(true, name, path, kind, words)

/* Expanded here, field by field, and not read from a table: answers are made of little else. */
static void put_fields(struct buf *out, const struct task *task, const struct render_extra *extra)
{
    const struct str instead = extra ? extra->data : STR_NONE;
    const struct str trace = extra ? extra->traceparent : STR_NONE;
    const bool redacted = extra && extra->redacted;
    size_t start = out->len;

    TASK_FIELDS(OF_SPEC, OF_SPEC, OF_STATE, OF_STATE, OF_STATE, OF_STATE, OF_STATE, OF_SPEC)
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
        if (!extra->redacted)
            JSON(out, "result", extra->result);
        put_dependencies(out, extra->dependencies, extra->dependencies_count);
    }
    if (extra->event.data)
        TEXT(out, "event", extra->event);
    if (extra->attempt)
        INT(out, "attempt", extra->attempt);
    if (extra->redacted)
        PUT(out, ",\"redacted\":true");
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
                  struct str correlation_id, bool redacted)
{
    PUT(out, "{\"id\":");
    put_id_or_null(out, &event->id);
    ID(out, "task_id", task_id);
    INT(out, "seq", event->seq);
    PUT(out, ",\"status\":");
    put_status(out, event->status);
    TEXT(out, "state", event->state);
    if (redacted)
        PUT(out, ",\"redacted\":true");
    else if (event->status == STATUS_CLAIMED)
        put_detail(out, event->detail);
    else
        JSON(out, "detail", event->detail);
    WORD(out, "actor", actor_word(event->actor));
    TEXT(out, "principal", event->principal);
    TEXT(out, "correlation_id", correlation_id);
    TIME(out, "created_at", event->created_at_us);
    buf_byte(out, '}');
}

void render_execution(struct buf *out, const struct execution *execution, bool redacted)
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
    if (redacted) {
        PUT(out, ",\"redacted\":true");
    } else {
        JSON(out, "result_data", execution->result_data);
        JSON(out, "error_data", execution->error_data);
    }
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
                       const struct uuid *task_id, bool redacted)
{
    PUT(out, "{\"id\":");
    put_id_or_null(out, &checkpoint->id);
    ID(out, "task_id", task_id);
    INT(out, "seq", checkpoint->seq);
    TEXT(out, "checkpoint_name", checkpoint->name);
    PUT(out, ",\"progress_percent\":");
    put_progress(out, checkpoint->progress);
    if (!redacted)
        TEXT(out, "step_description", checkpoint->description);
    if (redacted) {
        PUT(out, ",\"redacted\":true");
    } else {
        JSON(out, "recoverable_data", checkpoint->data);
        JSON(out, "database_state", checkpoint->database_state);
        JSON(out, "file_state", checkpoint->file_state);
    }
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
