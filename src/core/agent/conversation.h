/* A task's conversation with a model, as its checkpoints keep it, and what comes next in it. Every
 * checkpoint has all of it, so the newest one is enough to continue. Pure; texts live in the
 * arena. */
#ifndef CORE_AGENT_CONVERSATION_H
#define CORE_AGENT_CONVERSATION_H

#include "core/agent/budget.h"
#include "core/agent/model_answer.h"

#define CONVERSATION_BYTES_MAX ((size_t)900 * 1024) /* of a checkpoint's 1 MiB */
#define CONVERSATION_MESSAGES_MAX 10000
#define FINAL_ANSWER "finalAnswer"

enum conversation_next {
    NEXT_MODEL,     /* the model is called */
    NEXT_TOOLS,     /* calls of its last answer have no result yet */
    NEXT_NUDGE,     /* text without a tool call: it is asked once more */
    NEXT_TEXT_ENDS, /* the text is the answer */
    NEXT_FINAL      /* finalAnswer was called; everything else has its result */
};

/* A tool call of the last answer. */
struct pending_call {
    struct tool_call call;
    bool has_result;
    bool begun; /* it may have happened */
};

enum resume_decision { RESUME_NONE, RESUME_RETRY, RESUME_SKIP, RESUME_FAIL };

struct conversation {
    struct arena *arena;
    struct str *messages; /* JSON objects, as chat APIs have them */
    uint32_t messages_count, messages_cap;
    size_t bytes;
    struct pending_call *calls; /* of the last answer, if it had any */
    uint32_t calls_count;
    struct str text;            /* of the last answer, if it had none */
    struct agent_usage usage;
    struct agent_budget raised; /* by people */
    int64_t resumed;            /* the event of the last resume that counts already */
    int64_t step;               /* 1, 2, … */
    bool nudged;                /* asked once more, since its last tool call */
    bool warned;                /* told that its budget is nearly used up */
};

void conversation_init(struct conversation *conversation, struct arena *arena);
/* From a checkpoint. -ERR_INVALID: it is none of ours. */
int conversation_load(struct conversation *conversation, struct str state, struct err *err);
void conversation_write(const struct conversation *conversation, struct buf *out);
/* For data.conversation: how much there is, what it used, and the SHA-256 of its messages. */
int conversation_write_digest(const struct conversation *conversation, struct str agent,
                              struct str question, struct buf *out, struct err *err);

/* -ERR_TOO_LARGE, -ERR_MEMORY */
int conversation_add(struct conversation *conversation, const char *role, struct str text,
                     struct err *err);
int conversation_add_answer(struct conversation *conversation, const struct model_answer *answer,
                            struct err *err);
int conversation_add_result(struct conversation *conversation, uint32_t call, struct str text,
                            struct err *err);
/* Old results of tools make room until all of it has at most bytes_max. */
int conversation_trim(struct conversation *conversation, size_t bytes_max, struct err *err);

enum conversation_next conversation_next(const struct conversation *conversation);
/* The call of finalAnswer in the last answer; -1 = none. */
int64_t conversation_final(const struct conversation *conversation);
/* -ERR_INVALID: the sentence is for the model. *answer: any JSON. */
int conversation_final_read(const struct tool_call *call, struct arena *arena, struct str *answer,
                            bool *finished, struct err *err);

/* What a person said with :resume, data.resume. Counts once, whatever is repeated. */
enum resume_decision conversation_resume(struct conversation *conversation, struct str resume);

/* "messages":[…] of a request. */
void conversation_write_messages(const struct conversation *conversation, struct buf *out);

#endif
