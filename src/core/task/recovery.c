#include "core/task/recovery.h"

#include "base/clock.h"
#include "base/enum_words.h"
#include "base/err.h"
#include "core/queue_name.h"
#include "core/render.h"

#define FIRST_DELAY_MS 5000
#define DELAY_FACTOR 4
#define MAX_DELAY_MS (60 * 1000) /* so late is noticed that what was away is back */

static const char *const method_words[RECOVERY_METHOD_COUNT] = {
    "resume_checkpoint", "restart_clean", "validate_only"};

static const char *const status_words[RECOVERY_STATUS_COUNT] = {"pending", "processing",
                                                                "completed", "failed"};

static const struct {
    const char *word;
    const char *text;
} reasons[RECOVERY_REASON_COUNT] = {
    [RECOVERY_VALID] = {"valid", "it can be recovered"},
    [RECOVERY_NOT_FOUND] = {"not_found", "there is no such task"},
    [RECOVERY_ALREADY_COMPLETED] = {"already_completed", "the task is done"},
    [RECOVERY_ATTEMPTS_EXHAUSTED] = {"attempts_exhausted",
                                     "its attempts are used up; only a retry starts it again"},
    [RECOVERY_ENDED] = {"ended", "the task failed or was cancelled; only a retry starts it again"},
    [RECOVERY_NOT_LOST] = {"not_lost", "the task waits or runs; there is nothing to recover"},
    [RECOVERY_KEY_TAKEN] = {"key_taken",
                            "another task has taken its key since it ended; wait until that one "
                            "has ended too"},
    [RECOVERY_CHECKPOINT_DAMAGED] = {"checkpoint_damaged",
                                     "none of its checkpoints is intact; use restart_clean"},
    [RECOVERY_HANDLER_GONE] = {"handler_gone",
                               "no live worker of its queue has a handler for its type"},
    [RECOVERY_UNANSWERED] = {"unanswered", "the validator of its type did not answer"},
    [RECOVERY_REFUSED] = {"refused", "the validator of its type refused it"},
};

ENUM_WORDS(recovery_method, method_words);
ENUM_WORDS(recovery_status, status_words);

const char *recovery_reason_word(enum recovery_reason reason)
{
    return reasons[reason].word;
}

const char *recovery_reason_text(enum recovery_reason reason)
{
    return reasons[reason].text;
}

enum recovery_reason recovery_judge(const struct recovery_facts *facts,
                                    enum recovery_method method)
{
    if (!facts->found)
        return RECOVERY_NOT_FOUND;
    if (facts->status == STATUS_COMPLETED)
        return RECOVERY_ALREADY_COMPLETED;
    if (facts->status == STATUS_DEAD_LETTER)
        return RECOVERY_ATTEMPTS_EXHAUSTED;
    if (facts->status == STATUS_FAILED || facts->status == STATUS_CANCELLED)
        return RECOVERY_ENDED;
    if (facts->status != STATUS_ORPHANED && facts->status != STATUS_PARTIAL && !facts->stalled)
        return RECOVERY_NOT_LOST;
    if (facts->poisoned)
        return RECOVERY_ATTEMPTS_EXHAUSTED;
    if (facts->key_taken)
        return RECOVERY_KEY_TAKEN;
    if (facts->damaged && method != RECOVERY_RESTART_CLEAN)
        return RECOVERY_CHECKPOINT_DAMAGED;
    return facts->handler_gone ? RECOVERY_HANDLER_GONE : RECOVERY_VALID;
}

bool recovery_tries_left(const struct recovery_entry *entry)
{
    return entry->max_attempts == 0 || entry->attempts < entry->max_attempts;
}

enum recovery_step recovery_decide(const struct recovery_entry *entry,
                                   enum recovery_reason reason)
{
    if (entry->method == RECOVERY_VALIDATE_ONLY)
        return RECOVERY_STEP_DONE;
    switch (reason) {
    case RECOVERY_VALID:
        return RECOVERY_STEP_ACT;
    case RECOVERY_ALREADY_COMPLETED:
    case RECOVERY_NOT_LOST: /* another recovery was faster */
        return RECOVERY_STEP_DONE;
    case RECOVERY_KEY_TAKEN:    /* its holder may end, ... */
    case RECOVERY_HANDLER_GONE: /* ... its workers may come back, ... */
    case RECOVERY_UNANSWERED:   /* ... and so may its validator */
        return recovery_tries_left(entry) ? RECOVERY_STEP_LATER : RECOVERY_STEP_GIVE_UP;
    default:
        return RECOVERY_STEP_GIVE_UP;
    }
}

int64_t recovery_delay_ms(int64_t attempts)
{
    int64_t delay_ms = FIRST_DELAY_MS;

    for (int64_t i = 1; i < attempts && delay_ms < MAX_DELAY_MS; i++)
        delay_ms *= DELAY_FACTOR;
    return delay_ms < MAX_DELAY_MS ? delay_ms : MAX_DELAY_MS;
}

bool recovery_is_stalled(const struct task *task, int64_t after_ms, int64_t now_us)
{
    if (task->spec.stall_after_ms > 0)
        after_ms = task->spec.stall_after_ms;
    return after_ms > 0 && task->status == STATUS_RUNNING &&
           now_us - task->lease.last_heartbeat_us > after_ms * CLOCK_MS_US;
}

const char *recovery_candidate_reason(const struct task *task)
{
    if (task->status == STATUS_ORPHANED || task->status == STATUS_PARTIAL)
        return status_word(task->status);
    return "stalled";
}

/* ---- rendering ---- */

void recovery_render_entry(struct buf *out, const struct recovery_entry *entry, bool redacted)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &entry->id);
    render_uuid(out, "task_id", &entry->task_id);
    render_text(out, "recovery_method", str_of(recovery_method_word(entry->method)));
    render_int(out, "recovery_priority", entry->priority);
    render_time(out, "scheduled_for", entry->scheduled_for_us);
    render_time(out, "processing_started", entry->processing_started_us);
    render_time(out, "processing_completed", entry->processing_completed_us);
    render_text(out, "status", str_of(recovery_status_word(entry->status)));
    render_int(out, "attempts", entry->attempts);
    render_int(out, "max_attempts", entry->max_attempts);
    if (redacted) {
        render_bool(out, "redacted", true);
    } else {
        render_json(out, "recovery_result", entry->result);
        render_text(out, "error_message", entry->error_message);
    }
    render_time(out, "created_at", entry->created_at_us);
    buf_byte(out, '}');
}

static void render_counts(struct buf *out, const struct task *task)
{
    render_int(out, "progress", task->progress);
    render_int(out, "attempts", task->counts.attempts);
    render_int(out, "crash_count", task->counts.crashes);
    render_int(out, "recovery_priority", task->spec.recovery_priority);
    render_bool(out, "auto_recovery_enabled", task->spec.auto_recovery);
}

void recovery_render_candidate(struct buf *out, const struct recovery_candidate *candidate)
{
    const struct task *task = candidate->task;

    buf_byte(out, '{');
    render_uuid(out, "id", &task->id);
    render_uuid(out, "task_id", &task->id);
    render_text(out, "reason", str_of(candidate->reason));
    render_text(out, "status", str_of(status_word(task->status)));
    render_text(out, "state", task->state);
    render_text(out, "type", task->spec.type);
    render_text(out, "name", task->spec.name);
    render_text(out, "queue", queue_name_plain(task->spec.queue));
    render_text(out, "user_id", task->spec.user_id);
    render_text(out, "external_id", task->spec.external_id);
    render_text(out, "worker_id", task->lease.worker_id);
    render_counts(out, task);
    render_json(out, "checkpoint_data", task->resume.checkpoint);
    render_text(out, "last_error", task->fault.last);
    render_time(out, "last_heartbeat", task->lease.last_heartbeat_us);
    render_time(out, "created_at", task->spec.created_at_us);
    render_time(out, "updated_at", task->updated_at_us);
    buf_byte(out, '}');
}
