/* Events become state again: the counterpart of what queue/ writes when it moves a task. Pure. */
#include "core/task/replay.h"

#include "base/json.h"
#include "core/queue_name.h"
#include "core/render.h"
#include "core/task/task_fields.h"

static struct str member_of(const struct task_event *event, const char *key)
{
    return event->detail.data && json_kind(event->detail) == JSON_OBJECT
               ? json_get(event->detail, str_of(key)) : STR_NONE;
}

static bool number_of(const struct task_event *event, const char *key, int64_t *number)
{
    struct str value = member_of(event, key);

    return value.data && json_int64(value, number);
}

static struct str text_of(const struct task_event *event, const char *key, struct arena *arena)
{
    struct str value = member_of(event, key);

    return value.data && json_kind(value) == JSON_STRING ? json_string(value, arena) : STR_NONE;
}

static bool says(const struct task_event *event, const char *key, const char *word)
{
    struct str value = member_of(event, key);

    return value.data && json_kind(value) == JSON_STRING && value.len == strlen(word) + 2 &&
           memcmp(value.data + 1, word, value.len - 2) == 0;
}

static void take_checkpoint(struct replay *replay, const struct task_event *event,
                            struct arena *arena)
{
    if (!number_of(event, "checkpoint", &replay->checkpoint_seq))
        return;
    replay->checkpoint_name = text_of(event, "name", arena);
    if (number_of(event, "progress", &replay->checkpoint_progress))
        replay->progress = replay->checkpoint_progress;
}

/* What people say about it: told by the first event, and by each that changes it. */
static void take_edits(struct replay *replay, const struct task_event *event, struct arena *arena)
{
    for (size_t i = 0; task_edits[i].name; i++)
        if (member_of(event, task_edits[i].name).data)
            *task_edit_text(&replay->about, i) = text_of(event, task_edits[i].name, arena);
}

static void claimed(struct replay *replay, const struct task_event *event, struct arena *arena)
{
    replay->worker_id = text_of(event, "worker_id", arena);
    number_of(event, "attempt", &replay->attempts);
    number_of(event, "lease_token", &replay->lease_token);
    replay->claimed_at_us = event->created_at_us;
    replay->started_at_us = 0;
    replay->pause_requested = false;
}

static void forget_checkpoint(struct replay *replay)
{
    replay->checkpoint_seq = 0;
    replay->checkpoint_name = STR_NONE;
    replay->checkpoint_progress = 0;
    replay->progress = 0;
}

/* It goes from one status to another. */
static void move(struct replay *replay, const struct task_event *event, struct arena *arena)
{
    enum status from = replay->status;

    replay->previous_status = from;
    replay->status = event->status;
    if (!status_held(event->status) && event->status != STATUS_ORPHANED)
        replay->pause_requested = false; /* it waits for a lost task to come back */
    if (status_held(from) && !status_held(event->status))
        replay->attempts -= (event->status == STATUS_PENDING || event->status == STATUS_PAUSED) &&
                            says(event, "reason", "released");
    if (event->status == STATUS_CLAIMED)
        claimed(replay, event, arena);
    if (event->status == STATUS_RUNNING)
        replay->started_at_us = event->created_at_us;
    if (event->status == STATUS_COMPLETED)
        replay->progress = 100;
    if (event->status == STATUS_RECOVERING && says(event, "method", "restart_clean"))
        forget_checkpoint(replay);
    if (event->status == STATUS_PENDING && (status_ended(from) || from == STATUS_ORPHANED))
        replay->progress = 0; /* retried */
    if (status_ended(event->status))
        replay->completed_at_us = event->created_at_us;
    else if (status_ended(from))
        replay->completed_at_us = 0;
}

bool replay_tells_progress(struct str detail)
{
    static const char begin[] = "{\"progress\":";
    size_t len = sizeof begin - 1;

    if (detail.len <= len || detail.len > sizeof "{\"progress\":100}" - 1 ||
        memcmp(detail.data, begin, len) != 0)
        return false;
    while (len < detail.len && detail.data[len] >= '0' && detail.data[len] <= '9')
        len++;
    return len + 1 == detail.len && detail.data[len] == '}';
}

/* It stays where it is. What a handler says of itself comes with another state; its detail is the
 * user's own, but where there was none it is the progress, in a form that only this program writes.
 * All else is ours. */
static void stay(struct replay *replay, const struct task_event *event, struct arena *arena)
{
    struct str asked = member_of(event, "pause_requested");

    if (!str_eq(event->state, replay->state)) {
        if (replay_tells_progress(event->detail))
            number_of(event, "progress", &replay->progress);
        return;
    }
    take_checkpoint(replay, event, arena);
    take_edits(replay, event, arena);
    if (asked.data)
        replay->pause_requested = json_kind(asked) == JSON_TRUE;
    if (member_of(event, "awaits").data)
        replay->worker_id = text_of(event, "worker_id", arena);
}

void replay_event(struct replay *replay, const struct task_event *event, struct arena *arena)
{
    if (replay->events_count == 0) {
        replay->whole = event->seq == 1;
        replay->status = event->status;
        if (event->status == STATUS_CLAIMED)
            claimed(replay, event, arena);
        if (replay->whole) { /* a fork begins with a checkpoint */
            take_checkpoint(replay, event, arena);
            take_edits(replay, event, arena);
        }
    } else if (event->status != replay->status) {
        move(replay, event, arena);
    } else {
        stay(replay, event, arena);
    }
    replay->events_count++;
    replay->seq = event->seq;
    replay->state = event->state;
    replay->updated_at_us = event->created_at_us;
}

void replay_keep(struct replay *replay, struct arena *arena)
{
    replay->state = arena_str(arena, replay->state);
    replay->worker_id = arena_str(arena, replay->worker_id);
    replay->checkpoint_name = arena_str(arena, replay->checkpoint_name);
    for (size_t i = 0; task_edits[i].name; i++) {
        struct str *text = task_edit_text(&replay->about, i);

        *text = arena_str(arena, *text);
    }
}

static void render_checkpoint_data(struct buf *out, const struct replay *replay)
{
    json_write_key(out, "checkpoint_data");
    if (replay->checkpoint_seq == 0) {
        buf_text(out, "null");
        return;
    }
    buf_byte(out, '{');
    render_int(out, "seq", replay->checkpoint_seq);
    render_text(out, "name", replay->checkpoint_name);
    render_int(out, "progress", replay->checkpoint_progress);
    buf_byte(out, '}');
}

void replay_render(struct buf *out, const struct replay *replay, const struct task *task,
                   int64_t at_us, bool redacted)
{
    const struct {
        const char *key;
        struct str text;
    } texts[] = {{"type", task->spec.type},
                 {"name", task->spec.name},
                 {"queue", queue_name_plain(task->spec.queue)},
                 {"status", str_of(status_word(replay->status))},
                 {"previous_status", replay->previous_status == STATUS_NONE
                                         ? STR_NONE : str_of(status_word(replay->previous_status))},
                 {"state", replay->state},
                 {"worker_id", replay->worker_id}};
    const struct {
        const char *key;
        int64_t time_us;
    } times[] = {{"at", at_us},
                 {"created_at", task->spec.created_at_us},
                 {"updated_at", replay->updated_at_us},
                 {"claimed_at", replay->claimed_at_us},
                 {"started_at", replay->started_at_us},
                 {"completed_at", replay->completed_at_us}};
    const struct {
        const char *key;
        int64_t number;
    } numbers[] = {{"progress", replay->progress},
                   {"attempts", replay->attempts},
                   {"event_seq", replay->seq}};

    buf_byte(out, '{');
    render_uuid(out, "id", &task->id);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        render_text(out, texts[i].key, texts[i].text);
    }
    for (size_t i = 0; task_edits[i].name; i++) {
        struct task_about about = replay->about;

        render_text(out, task_edits[i].name, *task_edit_text(&about, i));
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        render_int(out, numbers[i].key, numbers[i].number);
    }
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        render_time(out, times[i].key, times[i].time_us);
    }
    render_bool(out, "pause_requested", replay->pause_requested);
    if (redacted)
        render_bool(out, "redacted", true);
    else
        render_checkpoint_data(out, replay);
    buf_byte(out, '}');
}
