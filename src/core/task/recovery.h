/* Recovery of lost tasks: the entries of the recovery queue (B4), the tasks that discovery lists as
 * recoverable (B5), and whether a task may be recovered at all (B6). Pure data and decisions: the
 * engine gathers the facts and applies the decisions (recoveries.c), the store keeps the
 * entries. */
#ifndef CORE_TASK_RECOVERY_H
#define CORE_TASK_RECOVERY_H

#include "base/buf.h"
#include "core/task/task.h"

#define RECOVERY_MAX_ATTEMPTS 3
#define RECOVERY_STALL_AFTER_MS (10 * 60 * 1000) /* for lists and users; no sweep uses it */

enum recovery_method {
    RECOVERY_RESUME_CHECKPOINT,
    RECOVERY_RESTART_CLEAN,
    RECOVERY_VALIDATE_ONLY,
    RECOVERY_METHOD_COUNT
};

enum recovery_status {
    RECOVERY_PENDING,
    RECOVERY_PROCESSING,
    RECOVERY_COMPLETED, /* the task was put back, or found done */
    RECOVERY_FAILED,
    RECOVERY_STATUS_COUNT
};

struct recovery_entry {
    struct uuid id;
    struct str namespace_name;
    struct uuid task_id;
    enum recovery_method method;
    int64_t priority;
    int64_t scheduled_for_us;
    int64_t processing_started_us;   /* 0 = not yet, here and below */
    int64_t processing_completed_us;
    enum recovery_status status;
    int64_t attempts;
    int64_t max_attempts;     /* 0 = no limit: the sweep made it, and if it gave up,
                               * nothing would recover the task */
    struct str result;        /* JSON or absent */
    struct str error_message; /* why the last attempt did not recover it; absent = it did */
    int64_t created_at_us;
};

const char *recovery_method_word(enum recovery_method method);
bool recovery_method_parse(struct str word, enum recovery_method *method);
const char *recovery_status_word(enum recovery_status status);
bool recovery_status_parse(struct str word, enum recovery_status *status);

/* Why a task cannot be recovered; the first that holds. */
enum recovery_reason {
    RECOVERY_VALID,
    RECOVERY_NOT_FOUND,
    RECOVERY_ALREADY_COMPLETED,
    RECOVERY_ATTEMPTS_EXHAUSTED, /* poison, or no retries left: only :retry runs it again */
    RECOVERY_ENDED,              /* failed or cancelled: only :retry runs it again */
    RECOVERY_NOT_LOST,           /* it waits or runs: nothing to recover */
    RECOVERY_KEY_TAKEN,          /* another task has taken it since this one ended */
    RECOVERY_CHECKPOINT_DAMAGED, /* it has checkpoints, and none of them is whole */
    RECOVERY_HANDLER_GONE,       /* live workers of its queue list their types, not this one */
    RECOVERY_UNANSWERED,         /* the validator of its type could not be asked, ... */
    RECOVERY_REFUSED,            /* ... or said no */
    RECOVERY_REASON_COUNT
};
const char *recovery_reason_word(enum recovery_reason reason);
const char *recovery_reason_text(enum recovery_reason reason); /* what to do about it */

struct recovery_facts {
    bool found;
    enum status status;
    bool stalled;       /* it runs, but its handler gives no sign */
    bool poisoned;      /* crash_count has reached max_crashes */
    bool key_taken;     /* another task has its key now */
    bool damaged;       /* it has checkpoints, but none to resume from is intact */
    bool handler_gone;
};
enum recovery_reason recovery_judge(const struct recovery_facts *facts,
                                    enum recovery_method method);

/* A user's question to the validator of a type, about a task that need not be lost. */
#define RECOVERY_ANSWER_BYTES 256
struct recovery_question {
    struct recovery_question *next;
    struct uuid task_id;
    struct str type;
    struct str task;  /* JSON as the API shows it; these live until done */
    int64_t came_us;  /* boot time */
    bool asked;       /* false: no validator was asked, because too many questions wait or the
                       * server stops */
    bool valid;
    char reason[RECOVERY_ANSWER_BYTES]; /* why it refused, or why it did not answer */
    void (*done)(struct recovery_question *question); /* on another thread */
};

/* What the engine does with an entry that is due. */
enum recovery_step {
    RECOVERY_STEP_ACT,     /* put the task back */
    RECOVERY_STEP_DONE,    /* nothing to do: completed */
    RECOVERY_STEP_LATER,   /* try again: the reason may pass */
    RECOVERY_STEP_GIVE_UP
};
enum recovery_step recovery_decide(const struct recovery_entry *entry,
                                   enum recovery_reason reason);
bool recovery_tries_left(const struct recovery_entry *entry);
int64_t recovery_delay_ms(int64_t attempts); /* until the next attempt */

/* Has its handler been silent for longer than its spec allows? after_ms counts where the spec sets
 * nothing; 0 = then never. */
bool recovery_is_stalled(const struct task *task, int64_t after_ms, int64_t now_us);

/* A task that discovery found, and why. */
struct recovery_candidate {
    struct task *task;
    const char *reason; /* orphaned, partial or stalled */
};
const char *recovery_candidate_reason(const struct task *task);

void recovery_render_entry(struct buf *out, const struct recovery_entry *entry,
                           bool redacted);
void recovery_render_candidate(struct buf *out, const struct recovery_candidate *candidate);

#endif
