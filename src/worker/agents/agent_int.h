/* What the parts of worker/agents share: the pool, its models, and one run of a task. The pool's
 * lock guards what it says; a run belongs to its slot's thread. */
#ifndef WORKER_AGENTS_AGENT_INT_H
#define WORKER_AGENTS_AGENT_INT_H

#include <curl/curl.h>
#include <pthread.h>

#include "base/clock.h"
#include "core/agent/toolbox.h"
#include "worker/agents/agent_pool.h"
#include "worker/handler.h"
#include "worker/process/identity.h"

#define AGENT_HANDLES_KEPT 8 /* connections of a model that wait for their next call */

/* What is known of a model's name; lives as long as the pool. */
struct model_line {
    struct model_line *next;
    char name[AGENT_ID_BYTES + 1];
    uint32_t running;
    int64_t not_before_us; /* boot time */
    uint32_t waits;        /* in a row, told by its API */
    CURLM *idle[AGENT_HANDLES_KEPT];
    uint32_t idle_count;
};

struct agent_known {
    struct agent_known *next;
    struct agent_figures figures;
};

/* A tool with what its command needs to be started. */
struct agent_tool {
    const struct tool_rule *rule;
    struct identity identity;
    char *const *environment;
    struct service_rule service; /* of a url */
};

struct agent_line {
    struct agent_pool *pool;
    struct agent_set *set;
    const struct agent_rule *rule;
    const struct model_rule *model;
    struct model_line *model_line;
    struct service_rule service; /* the model's API */
    struct service_header key;
};

/* One configuration's; earlier ones stay until the pool ends. */
struct agent_set {
    struct agent_set *older;
    struct arena arena;
    const struct settings *settings;
    struct agent_line *lines;
    uint32_t lines_count;
    struct agent_tool *tools;
};

/* What other processes used of an agent's day. */
struct agent_share {
    struct agent_share *next;
    struct agent_day others; /* its agent is in `id` */
    char id[AGENT_ID_BYTES + 1];
};

struct agent_pool {
    const struct log *log;
    struct worker_agents agents;
    struct agent_spans spans;
    _Atomic(struct service_pool *) *services; /* beside it; may be NULL, and point to NULL */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t room_come;
    struct agent_set *set;
    struct model_line *models;
    struct agent_known *known;
    struct agent_share *shares;
    struct source_days days;
    char process[AGENT_PROCESS_CHARS + 1]; /* stands for this one, in what it tells of days */
};

struct agent_run {
    const struct agent_line *line;
    struct handler_run *base;
    const struct handler *handler;
    struct arena *arena;
    struct conversation talk;
    struct toolbox box;
    enum resume_decision decision;
    int64_t deadline_us;  /* INT64_MAX = none */
    int64_t counted_us;   /* time up to here is in talk.usage */
    uint32_t tries;       /* of the call under way */
    bool over;            /* base->outcome is set */
    struct err err;
};

/* agent_pool.c */
/* Waits for room at the model. 0 = call it now; else milliseconds until it makes sense to ask
 * again, or -1: the run shall stop. */
int64_t model_enter(struct agent_run *run, CURLM **multi);
void model_leave(struct agent_run *run, CURLM *multi, bool keep);
/* The API asked to be left alone, or not any more (wait_ms 0). */
void model_limit(struct agent_run *run, int64_t retry_after_s);
void model_fine(struct agent_run *run);
void agent_count(struct agent_run *run, enum agent_outcome outcome,
                 const struct agent_usage *usage);

/* agent_shares.c: what all processes used today. Waits a little where no node has said yet. */
struct agent_usage agent_today(struct agent_run *run);
void agent_shares_init(struct agent_pool *pool);
void agent_shares_free(struct agent_pool *pool);
/* Under the pool's lock: what this process used of it today. */
struct agent_usage agent_own_day(const struct agent_pool *pool, struct str agent);

/* agent_run.c */
extern const struct handler_verbs agent_verbs;
bool agent_stopped(const struct agent_run *run);
void agent_end(struct agent_run *run, struct report report);
void agent_fail(struct agent_run *run, const char *code, bool retryable, struct str message);
void agent_ask(struct agent_run *run, struct str question);
void agent_state(struct agent_run *run, struct str state);
void agent_count_time(struct agent_run *run); /* of the run up to here */
/* Stores the conversation; `wait`: until it is stored. False: the run is over. */
bool agent_keep(struct agent_run *run, bool digest, bool wait);
/* err is turned into the end of the run; true = there was none. */
bool agent_fine(struct agent_run *run, int rc);

/* agent_model.c: one call of the model, from the budget to the answer in the conversation. */
void agent_call_model(struct agent_run *run);

/* agent_tools.c: all calls of the last answer. */
void agent_call_tools(struct agent_run *run);

#endif
