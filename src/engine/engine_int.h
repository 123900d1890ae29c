/* Inside of the queue; nobody outside this folder includes it. Everything here belongs to
 * whoever has the turn (queue.c): the queue's thread, or a caller that runs its own batch. */
#ifndef ENGINE_ENGINE_INT_H
#define ENGINE_ENGINE_INT_H

#include "base/heap.h"
#include "base/map.h"
#include "core/bounds.h"
#include "core/measure/measure.h"
#include "core/task/outcome.h"
#include "core/rate.h"
#include "engine/plans/planning_int.h"
#include "core/log/redact.h"
#include "engine/logs/anchor_file.h"
#include "engine/tasks/declined.h"
#include "engine/engine.h"
#include "store/log_store.h"

#include <pthread.h>
#include <stdatomic.h>

/* One limit that is counted: of a queue, of a type in it, of a key in it. */
struct limit {
    struct str name;        /* type or key; lives behind the struct */
    int64_t running;
    struct bucket bucket;
    struct heap_node wake;  /* keys with a rate: when parked tasks may come back */
    struct queue_state *state;
    uint64_t seen_in;       /* shared stores: the batch that read these figures */
    char kind;              /* q, t or k */
    bool rated;             /* shared stores: its bucket counts */
    struct limit *next_used; /* its bucket is to be written */
};

/* A queue with its rules and what runs of it. */
struct queue_state {
    struct queue_row row;   /* texts in arena */
    struct arena arena;
    struct limit whole;
    struct map types;       /* struct limit, only types with a limit */
    struct map keys;        /* struct limit, only while the queue limits keys */
    bool unpark_all;        /* every key of it gets its chance once */
    uint64_t wanted_in;     /* shared stores: the batch that may need its figures */
    uint64_t viewed_in;     /* the batch that asks for stats, and ... */
    struct queue_view *view; /* ... its place there */
    bool hot;               /* new ready tasks or free slots in this batch */
    bool has_older;         /* hot because of what may have been ready before this batch */
    struct queue_state *next_hot;
    bool heated;            /* the same, by this batch itself: other nodes are told */
    struct queue_state *next_heated;
    uint64_t followed;      /* the look at the store's rows that saw it last */
    struct queue_state *next_dropped;
};

/* A live worker. */
struct worker_state {
    struct worker_row row;  /* texts in arena */
    struct arena arena;
    struct str *queues;
    uint32_t queues_count;
    struct str *types;
    uint32_t types_count;
    struct str *categories;
    uint32_t categories_count;
    bool in_process;
    int64_t lease_written_us; /* the lease_until the store has */
    bool led;                 /* as its row says, of this node's own */
    int64_t known_us;         /* further writers: when its row was read, ... */
    unsigned known_gone;      /* ... how many workers had left this node by then, ... */
    int64_t told_us;          /* ... and when the first one was told that it lives */
    uint64_t followed;        /* the look at the store's rows that saw it last */
};

/* Why lines of logs are removed. */
enum cut_reason { CUT_DELETE, CUT_RETENTION, CUT_PURGE, CUT_REASON_COUNT };

/* Records about logs (log_heads.c). */
struct log_heads {
    int64_t next_us;        /* when the next one is due; INT64_MAX = no line waits for one */
    struct sign_key *key;   /* NULL = not loaded yet, or there is none */
    struct log_mac *mac;    /* of the key */
    bool ready;             /* the first record is there, and the store has the key's code */
    int64_t begin;          /* records before this one are of the time before the key, ... */
    int64_t since_us;       /* ... which ended then */
    struct uuid doubted;    /* the execution that was told of last */
    bool key_missed;        /* it was told that there is none */
    char newest[HASH_HEX_BYTES + 1]; /* the record this node wrote or checked last */
    struct anchor_writer *writer; /* of the anchor file; NULL = there is none */
    bool regressed;               /* the file was ahead of the store at the start, ... */
    struct anchor_file_end ahead; /* ... this far */
};

/* Something to be counted once it is committed (measured.c). */
struct measure_note {
    struct measure_lane *lane;
    struct measure_category *category; /* an execution ended; NULL = something else */
    enum measure_count what;           /* of an execution: completed or failed */
    int64_t us;             /* -1 = took no time that is known */
};

/* How executions ended, on its way to the store; of the first writer. */
struct hours_flush {
    atomic_bool dirty;      /* some ended since */
    int64_t next_us;        /* not before this */
    int64_t hour_us;        /* the one that is written */
    struct measured_categories *before;  /* what had been written when it began */
    struct measured_categories *written;
    struct measured_categories *sending; /* in the batch under way */
};

/* One transaction under way: tasks as they are to be, and what the store is owed. */
#define LOST_GROUPS_MAX 4 /* holders of lost tasks that one line names */
#define LOST_POISON_MAX 4 /* tasks that became poison, with a line each; others are counted */

/* Tasks that were taken back, for the log. */
struct lost_told {
    uint32_t tasks_count;
    struct lost_group {
        struct str worker_id;
        const char *reason;
        uint32_t tasks_count;
    } groups[LOST_GROUPS_MAX];
    uint32_t groups_count;
    uint32_t others_count; /* tasks of further workers */
    const struct task *poison[LOST_POISON_MAX];
    uint32_t poison_count;
};

struct batch {
    struct engine *engine;
    struct store *store;
    struct arena arena;
    int64_t now_us;
    int64_t wall_us;
    struct map tasks;              /* by id: struct task */
    struct task **owed;            /* dirty and fresh tasks */
    uint32_t owed_count, owed_cap;
    struct task_event *events;
    uint32_t events_count, events_cap;
    struct execution *executions;  /* new ones, then changed ones */
    uint32_t executions_count, executions_cap;
    struct execution *changed;
    uint32_t changed_count, changed_cap;
    struct log_entry *logs;
    uint32_t logs_count, logs_cap;
    struct log_cuts cuts[CUT_REASON_COUNT]; /* lines of logs that were removed */
    struct log_cuts blanks;        /* lines of logs that were emptied */
    struct log_cuts refused;       /* removed ones that were not by the key */
    struct log_checked log_checked; /* lines of these may be removed */
    bool log_ready;                /* heads.ready, once this is committed */
    bool anchored;                 /* the anchor file may lack records */
    int64_t trim_before_us;        /* records about logs that are older may go; 0 = none */
    bool sewn;                     /* the regression is written down */
    struct task **ended;           /* dependents, parents and callbacks are still to be told */
    uint32_t ended_count, ended_cap;
    uint32_t settled_count;        /* of `ended`: those told already */
    struct task_note *notes;
    uint32_t notes_count, notes_cap;
    struct span *spans;
    uint32_t spans_count, spans_cap;
    int64_t spans_boot_us;         /* when the first of them was gathered */
    struct queue_state *hot;
    struct queue_state *heated;
    bool delayed;                  /* something was put off */
    bool workers_gone;             /* further writers shall read their rows again */
    bool queues_changed;           /* other nodes are told to read them anew */
    struct freed_key {
        struct queue_state *state;
        struct str key;
    } *freed;
    uint32_t freed_count, freed_cap;
    uint32_t served_count;         /* waiting claims that got something */
    bool limits_held;              /* the rows of the limited queues it needs */
    const struct request *list;    /* what it decides */
    bool swept;                    /* the sweep has seen all that is held */
    bool outbox;                   /* a message was written */
    bool wrote;                    /* anything at all */
    uint64_t number;
    struct limit *buckets;         /* that were used */
    struct task **seen_ended;      /* ended on other nodes, and somebody waits here */
    uint32_t seen_ended_count, seen_ended_cap;
    struct err failed;             /* of a look at limits in the middle of a claim */
    struct map jobs;               /* struct batch_job, by id */
    bool jobs_ended;               /* last_... of some are to be written */
    bool runs_ended;               /* some of `ended` are runs of jobs */
    struct job_run *runs;          /* new ones */
    uint32_t runs_count, runs_cap;
    uint32_t waits_told;           /* runs that waited for other jobs and were let go */
    struct recovery_entry *recoveries; /* new ones */
    uint32_t recoveries_count, recoveries_cap;
    bool recovery_waits;           /* some of them are to be worked off */
    bool catalog_changed;          /* other nodes are told to read it anew */
    struct measure_note *measured; /* to be counted */
    uint32_t measured_count, measured_cap;
    const struct task *measured_task;   /* of the last one, and ... */
    struct measure_lane *measured_lane; /* ... where it counts */
    struct lost_told lost;
    bool hours_written;            /* figures per hour are part of it */
    int64_t committed_us;          /* boot time after the commit */
};

struct forget;

/* A worker some of whose tasks this pass of the sweep found lost. */
struct lost_worker {
    bool ran; /* it had started some of them */
    char id[];
};

#define WRITERS_MAX 5
#define RECOVERY_FAULTS_MAX 32

/* A recovery that failed unforeseen (recovery_faults.c). */
struct recovery_fault {
    struct uuid entry_id;
    int64_t fails;
    int64_t until_us; /* it is left out until then */
    bool told;        /* in its entry */
    char text[256];
};

/* Lines about refused reports that a lease has got: report_refused.c. */
#define REFUSALS_KNOWN 64
#define REFUSALS_TOLD_MAX 16
struct refusals_told {
    struct uuid task_id;
    int64_t lease_token;
    uint32_t count;
};

struct engine {
    struct routes *routes;   /* only of the one in front of several; then the rest is not used but
                              * for the settings (routes.c) */
    struct engine *main;     /* whose writer this is; itself, if it is the first */
    struct engine *writers[WRITERS_MAX]; /* of the first one: itself and the others */
    atomic_uint writers_count;          /* hints come before all are open */
    bool beats;                         /* heartbeats are its business */
    atomic_uint claims_waiting;         /* in here */
    atomic_uint gone;                   /* workers that left or were removed; of the first one */
    uint32_t workers_kept;              /* of a further writer: then silent ones are forgotten */
    struct engine_stats shown;          /* of the others, for the first one; under the mutex */
    struct store *store;
    const struct settings *settings; /* of the batch under way */
    _Atomic(const struct settings *) configured; /* those of the next one; any thread */
    struct engine_config config;
    const struct log *log;
    struct clock clock;
    struct uuid7 ids;
    pthread_t thread;

    pthread_mutex_t mutex; /* inbox, forgets, stop, whose turn it is */
    pthread_cond_t arrived;
    struct request *inbox_first, *inbox_last;
    uint32_t inbox_count;
    uint32_t wake_at;        /* so many in there end the gathering; 0 = nobody gathers */
    uint32_t batch_sizes[2]; /* requests in the last two batches */
    int64_t batch_us;        /* what the last one took */
    struct forget *forget_first;
    bool stop;
    bool busy;               /* a batch is under way, or something else that needs the store */
    bool thread_wants;       /* the thread waits until a caller is through */
    int64_t waits_until_us;  /* the thread, when nothing comes */
    uint32_t helped_batches; /* that callers ran themselves */
    bool failed;

    struct batch batch;
    struct map queues;       /* struct queue_state */
    uint64_t queues_followed; /* looks at the store's rows so far */
    struct queue_state *dropped; /* gone, freed when the next batch begins */
    int64_t next_idle_queues_us; /* when empty ones are looked for again */
    struct map workers;      /* struct worker_state */
    size_t workers_bytes;    /* of all of them */
    struct declined *declined; /* of the first writer: what workers gave back */
    struct map lost_workers; /* struct lost_worker, of one pass of the sweep */
    struct heap wakes;       /* of limits */
    struct request *claims_first, *claims_last; /* waiting claims, oldest first */
    size_t claim_task_bytes; /* what a task of the last claim took */
    int64_t claims_next_us;  /* none of them has an earlier deadline; may be too early */
    struct map waits;        /* by task id: struct wait_list */
    atomic_uint waits_count; /* of them, for whoever hears of ends elsewhere */
    uint32_t waits_cursor;   /* where the next look for ends elsewhere begins */
    uint32_t waiting_count;
    bool any_dependencies;
    bool unpark_some;        /* a queue with unpark_all is there */
    struct engine_stats stats;
    struct measures *measures; /* written by whoever has the turn, read by anybody */
    struct measure_names *own_names; /* of what is measured; NULL = somebody else's */
    struct hours_flush hours;
    struct catalog_cache catalog;
    struct uuid late_end;    /* only of a seeded bug */
    uint64_t zones_seen;     /* the generation that plans are made of ... */
    struct uuid zones_after[2]; /* ... up to this schedule, and this pattern */
    bool zones_known;        /* of all of them */
    bool zones_faulty;       /* some could not be planned */
    int64_t zones_checked_us;
    int64_t wall_seen_us;    /* by the last look at zones; earlier now: the clock was set back */
    int64_t fired_version;   /* of the catalog, as firing has looked at it */
    bool fired;              /* this transaction has to do with what is planned */
    bool fire_fails;         /* the last one that had failed: now it goes alone */
    int64_t fire_held_us;    /* and not before this */
    bool recovered;          /* the same three of recoveries */
    bool recovery_fails;
    int64_t recovery_held_us;
    struct recovery_fault recovery_faults[RECOVERY_FAULTS_MAX];
    uint32_t recovery_faults_count;
    int64_t due_held_us;     /* delayed tasks are looked at not before this: that failed */

    uint64_t windows_seen;   /* a sum of the windows that put tasks off ... */
    struct delayed windows_after; /* ... up to this one */
    bool windows_known;      /* of all of them */
    bool windows_walk;       /* not at the end yet */
    struct uuid waiting_after; /* the last job whose waiting runs were looked at */

    int64_t next_sweep_us;
    int64_t sweep_after;     /* key of the last held task the sweep has seen; 0 = a new pass */
    int64_t next_due_us;     /* when the next delayed task may come */
    int64_t next_fire_us;    /* when the next planned instant comes; INT64_MAX = none */
    int64_t next_recovery_us; /* when the next recovery is due */
    int64_t next_retry_us;   /* when a rate limit lets go */
    int64_t next_prune_us;
    int64_t expected_us;     /* when the thread meant to go on */
    int64_t last_now_us;     /* of the database's clock: ours never goes back */
    int64_t next_poll_us;    /* shared stores: when to look for work nobody told of */
    bool leads;              /* as it was in the last turn */
    struct buf hints;        /* queues where other nodes made work, and ... */
    bool hint_all;           /* ... more than fit; all three under the mutex */
    bool hinted;             /* there is more to it than work for claims that wait */
    bool reload_queues;      /* another node made or changed some */
    bool stale;              /* what memory knows is to be read anew */
    bool look_at_waits;      /* tasks ended on other nodes */
    uint64_t follows;        /* looks at the rows of all workers */
    int64_t followed_us;     /* the last one */
    int64_t last_time_saved_us;
    int64_t prune_cursor[STATUS_COUNT];
    int64_t history_cursor;
    struct redact *redact;   /* rules for log lines; NULL = none */
    struct refusals_told refusals[REFUSALS_KNOWN];
    struct log_heads heads;
    struct store_reader *reader; /* of the archive, opened when needed */
    bool archive_checked;        /* nothing half written is at its end */
    int64_t heard_since_us;  /* before this nobody could give a sign: a start, a stall, a loss */
    bool restarted;          /* the first sweep has not run yet, ... */
    bool awaits_worker;      /* ... and waits until there is a worker, or a lease is over */
    int64_t lease_base;      /* lease tokens are above this; others are of before a restore */
    struct str dead_node;    /* the node of the run before: what it held is lost */
    uint32_t pools;          /* in-process workers beside the node's own */
    char node_id[128];       /* this node among the workers (host-pid-random); it leads */
};

/* What is planned is looked at at once, or when it may be tried again. */
static inline void fire_soon(struct engine *engine)
{
    engine->next_fire_us = engine->fire_held_us;
}

/* Entries are looked at then, or when they may be tried again. */
static inline void recovery_soon(struct engine *engine, int64_t at_us)
{
    if (at_us < engine->recovery_held_us)
        at_us = engine->recovery_held_us;
    if (at_us < engine->next_recovery_us)
        engine->next_recovery_us = at_us;
}

/* A lease the original of a restored copy granted: it holds nothing here (F-D14). */
static inline bool lease_is_void(const struct engine *engine, int64_t lease_token)
{
    return lease_token <= engine->lease_base;
}

/* queue.c */
void *engine_run(void *queue); /* the thread */
int64_t engine_clock_us(
    struct engine *engine); /* the engine's, or the database's; whose turn it is */
void engine_hint(void *queue, struct str name); /* store_watch.on_hint */
/* writers.c: several of them in one node */
int writers_open(struct engine *engine, struct err *err);
void writers_stop_others(struct engine *engine); /* one of them failed: none goes on */
void writers_end(struct engine *engine);         /* their threads, ... */
void writers_close(struct engine *engine); /* ... and when nobody tells them anything any more */
struct engine *writers_choose(struct engine *engine, const struct request *request);
int writers_find_worker(struct batch *batch, struct str id, struct worker_state **worker,
                        struct err *err);
void writers_add_stats(struct engine *engine, struct engine_stats *stats);
static inline bool is_main(const struct engine *engine)
{
    return engine->main == engine;
}
/* Of several stores in one node each has queues of its own. */
static inline bool lives_here(const struct engine *engine, struct str name)
{
    return !engine->config.lives_here || engine->config.lives_here(engine->config.ctx, name);
}
/* routes.c: what is asked of the queue in front of several */
void routes_submit(struct engine *front, struct request *request);
void routes_forget(struct engine *front, enum request_kind kind, struct request *request);
void routes_close(struct engine *front);
int64_t routes_now_us(struct engine *front);
/* engine_open.c */
struct engine *engine_new(struct store *store, const struct engine_config *config, struct err *err);
void engine_end_thread(struct engine *engine);
void engine_free(struct engine *engine);
/* nodes.c: what other nodes do */
void nodes_tell_alive(struct engine *engine, struct str worker_id);
int nodes_follow(struct batch *batch, struct err *err);
void nodes_tell(struct engine *engine, const struct batch *batch);
bool nodes_hinted(const struct engine *engine); /* under the mutex */
void nodes_forget_hints(struct engine *engine);
/* transact.c: all of the list in one commit, or each alone when that fails; then the answers. */
void engine_run_batch(struct engine *engine, struct request *list, bool timers);
int engine_reload(struct engine *engine, struct err *err); /* what memory knows, from the store */
int engine_read_lease_base(struct engine *engine,
                           struct err *err); /* after a restore, by whomever */
/* enqueue.c: the trace of what a task brings about, unless it was given one */
void inherit_trace(const struct batch *batch, const struct task *parent, struct arena *arena,
                   struct task_spec *spec);
/* spans.c */
void spans_enqueued(struct batch *batch, const struct task *task);
int64_t spans_ready_since(const struct task *task); /* before the claim changes it */
void spans_claimed(struct batch *batch, const struct task *task, int64_t since_us);
void spans_ended(struct batch *batch, const struct task *task, enum execution_status outcome);
void spans_tell(struct engine *engine, struct batch *batch);
/* batch.c */
void batch_begin(struct batch *batch, struct engine *engine, int64_t now_us);

/* Time has passed while the batch waited for another node: what follows happens now, and not before
 * the given time of another node, whose clock may differ a little. */
void batch_catch_up(struct batch *batch, int64_t other_us);
void batch_reset(struct batch *batch);
void batch_deinit(struct batch *batch);
int batch_flush(struct batch *batch, struct err *err);
/* The task, or NULL when there is none; always with its spec. */
int batch_task(struct batch *batch, const struct uuid *id, struct task **task, struct err *err);
/* Loads those that are not there yet at once, where each alone would be a way to the database. */
int batch_prefetch(struct batch *batch, const struct uuid *ids, uint32_t count, struct err *err);
/* Those this node knows to be held under these leases; to be followed by a write of each. */
int batch_recall(struct batch *batch, const struct uuid *ids, const int64_t *lease_tokens,
                 uint32_t count, struct err *err);
int batch_adopt(struct batch *batch, struct task *task, struct err *err); /* loaded elsewhere */
int batch_add(struct batch *batch, struct task *task, struct err *err);   /* new */
int batch_touch(struct batch *batch, struct task *task, struct err *err); /* it changed visibly */
int batch_owe(struct batch *batch, struct task *task, struct err *err);   /* it changed inside */
int batch_event(struct batch *batch, struct task *task, enum actor actor, struct str detail,
                struct err *err);
/* Where a task goes that was paused, blocked or is new, and what it says then. */
static inline int batch_waiting_status(struct batch *batch, struct task *task, enum status *to,
                                       const char **state, struct err *err)
{
    *to = outcome_waiting_status(task, task->by_wall ? batch->wall_us : batch->now_us);
    *state = "Queued";
    return *to != STATUS_PENDING || uuid_is_nil(&task->spec.category_id)
               ? 0 : windows_hold(batch, task, to, state, err);
}
/* The one way a task changes its status. */
int batch_move(struct batch *batch, struct task *task, enum status to, enum move move,
               const char *state, enum actor actor, struct str detail, struct err *err);
int batch_log(struct batch *batch, const struct log_entry *entry, struct err *err);
int batch_execution_new(struct batch *batch, struct task *task,
                        const struct execution *execution, struct err *err);
/* The execution under way, to be changed; what is not set stays as it is in the store. */
struct execution *batch_execution(struct batch *batch, struct task *task, struct err *err);
int batch_execution_end(struct batch *batch, struct task *task, enum execution_status status,
                        struct str result, struct str error_data, struct err *err);
void batch_heat(struct batch *batch, struct queue_state *state);
void batch_heat_here(struct batch *batch, struct queue_state *state); /* for waiting claims only */
void batch_heat_freed(struct batch *batch, const struct task *task); /* its slot is free */
struct str batch_text(struct batch *batch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* ended.c: tells relatives, callbacks; and takes an end back before a retry or a recovery. */
int batch_settle(struct batch *batch, struct err *err);
int batch_reopen(struct batch *batch, const struct task *task, struct err *err);
/* A blocked task that waits for nobody any more. */
int batch_let_go_on(struct batch *batch, struct task *task, struct err *err);

/* enqueue.c */
int enqueue_apply(struct batch *batch, struct enqueue_request *request);
int enqueue_tasks(struct batch *batch, struct task_input *inputs, uint32_t count,
                  enum actor actor, struct task *parent, struct arena *arena, struct task **tasks,
                  bool *duplicate, bool *differs, struct err *err);
/* Of a run: what could refuse it, and the task itself, which waits for so many. */
int enqueue_check(struct batch *batch, struct task_input *input, struct err *err);
int enqueue_run(struct batch *batch, struct task_input *input, const struct run_wish *wish,
                uint32_t waits, struct arena *arena, struct task **task, struct err *err);
/* forked.c: tasks that begin behind a checkpoint of another */
struct str forked_detail(struct batch *batch, const struct task_input *input);
int forked_begin(struct batch *batch, struct task *task, const struct checkpoint *from,
                 struct arena *arena, struct err *err);
/* unsatisfied.c */
struct culprit { /* a parent that ended otherwise than required; STATUS_NONE = not known */
    struct uuid task_id;
    enum status status;
    enum dependency kind;
};
/* Ends a blocked task as `to`, with the culprit named in error, error_details and event. */
int unsatisfied_end(struct batch *batch, struct task *task, enum status to,
                    const struct culprit *culprit, struct err *err);
int unsatisfied_find(struct batch *batch, const struct task *task, struct culprit *culprit,
                     struct err *err);
/* Of a task that is to be retried: how many parents are open. ERR_TRANSITION, naming them, when
 * some ended otherwise than it needs. */
int unsatisfied_check_retry(struct batch *batch, const struct task *task, int64_t *open,
                            struct err *err);
/* After it was put back: none of its dependencies is decided but by what its parents are now. */
int unsatisfied_wait_again(struct batch *batch, struct task *task, int64_t open, struct err *err);
/* claim.c */
int claim_apply(struct batch *batch, struct claim_request *request);
int claim_serve_waiting(struct batch *batch, struct err *err);
int claim_take(struct batch *batch, struct claim_request *request, struct worker_state *worker,
               struct task *task, struct err *err);
bool claim_wants(const struct batch *batch, const struct claim_request *request,
                 const struct worker_state *worker, struct str queue, struct str type);
bool claim_wants_hot(const struct batch *batch, const struct claim_request *request,
                     const struct worker_state *worker);
/* hand_over.c: new tasks to waiting claims, before the first flush */
int claim_hand_over(struct batch *batch, struct err *err);
/* report_apply.c, report_outcome.c */
int report_apply(struct batch *batch, struct report_request *request);
int report_outcome(struct batch *batch, struct task *task, const struct report *report,
                   struct err *err);
/* What checkpoint_data of a task shows of its newest valid checkpoint. */
struct str checkpoint_short(const struct checkpoint *row, struct arena *arena);
int report_release(struct batch *batch, struct task *task, struct str reason, struct err *err);
/* report_refused.c: the line that tells of it; false = there is none. */
bool report_refusal_line(struct batch *batch, const struct task *task, const struct report *report,
                         const struct report_result *result, struct report *line);
void task_let_go(struct task *task); /* no longer held */
int task_pause_if_asked(struct batch *batch, struct task *task, bool asked, struct err *err);
/* control.c */
int control_apply(struct batch *batch, struct control_request *request);
int control_cancel(struct batch *batch, struct task *task, enum actor actor, const char *state,
                   struct str detail, struct err *err);
int control_purge(struct batch *batch, struct purge_request *request);
/* Has another task the key that was free when this one ended? */
int control_key_taken(struct batch *batch, const struct task *task, bool *taken, struct err *err);
/* Of an orphaned or partial task: recovering -> pending; or -> completed, when found done. */
int control_put_back(struct batch *batch, struct task *task, bool clean, struct err *err);
int control_found_done(struct batch *batch, struct task *task, struct err *err);
/* recoveries.c */
bool recovery_validates(const struct engine *engine, struct str type);
/* The sweep took it back (or gave it up) by itself; its entry is written as ended. */
int recovery_note_lost(struct batch *batch, struct task *task, const char *reason,
                       struct err *err);
/* The sweep lost it, and before it is put back its validator is asked or its holder stops it. */
int recovery_wait(struct batch *batch, struct task *task, struct err *err);
/* Its holder has stopped it: who waits for that need not wait any longer. */
int recovery_hurry(struct batch *batch, struct task *task, struct err *err);
/* Asked for by a user: at once, but where a validator has to be asked. */
int recovery_now(struct batch *batch, struct task *task, struct control_request *request);
int recovery_apply(struct batch *batch, struct recovery_request *request);
int recovery_work(struct batch *batch, struct recovery_work_request *request);
int recovery_run(struct batch *batch, int64_t *next_us, struct err *err); /* the timer */
/* recovery_faults.c */
void recovery_fault_note(struct batch *batch, const struct recovery_entry *entry,
                         const struct err *err);
/* Is it left out still? Then *next_us is not later than the end of that. */
bool recovery_fault_holds(struct batch *batch, const struct recovery_entry *entry,
                          int64_t *next_us);
void recovery_fault_forget(struct engine *engine, const struct uuid *entry_id);
int recovery_faults_tell(struct batch *batch, struct err *err);
/* workers.c */
int workers_load(struct engine *engine, struct err *err);
int workers_adopt(struct engine *engine, const struct worker_row *row, struct worker_state **out,
                  struct err *err);
void workers_forget(struct engine *engine, struct worker_state *worker); /* in memory only */
void workers_deinit(struct engine *engine);
struct worker_state *workers_get(struct engine *engine, struct str id);
/* The same; one that registered at another node is looked up. */
int workers_find(struct batch *batch, struct str id, struct worker_state **worker,
                 struct err *err);
int workers_follow(struct batch *batch, struct err *err); /* leases as the store has them */
int workers_register(struct batch *batch, struct register_request *request);
int workers_heartbeat(struct batch *batch, struct heartbeat_request *request);
int workers_leave(struct batch *batch, struct leave_request *request);
bool workers_serve(const struct worker_state *worker, struct str queue);
/* A live worker that would be given a task of this queue and type. */
bool workers_take(const struct batch *batch, const struct worker_state *worker, struct str queue,
                  struct str type);
int workers_list(struct batch *batch, struct workers_request *request);
/* The lease goes on in memory, which is what counts; the row is left to workers_renew. */
void workers_touch(struct batch *batch, struct worker_state *worker);
int workers_renew(struct batch *batch, struct worker_state *worker, struct err *err);
void workers_grant_grace(struct engine *engine, int64_t now_us); /* after a stall or a start */
int workers_drop(struct batch *batch, struct worker_state *worker, struct err *err);
/* The node's own row: made at the start, renewed by the sweep, gone after a clean stop. */
void workers_name_node(struct engine *engine);
int workers_enter_node(struct batch *batch, struct err *err);
int workers_renew_node(struct batch *batch, struct err *err);
int workers_leave_node(struct engine *engine, struct err *err);
/* limits.c */
int limits_load(struct engine *engine, struct err *err); /* queues, and what runs of them */
void limits_deinit(struct engine *engine);
int limits_follow(struct batch *batch, struct err *err); /* queues other nodes made or changed */
struct queue_state *limits_queue(struct engine *engine, struct str name); /* NULL = not there */
void limits_drop(struct engine *engine, struct queue_state *state);       /* out of the map */
void limits_bury(struct engine *engine); /* frees what was dropped */
/* queues_gone.c */
int queues_remove(struct batch *batch, struct queue_patch_request *request);
int queues_remove_idle(struct batch *batch, struct err *err); /* empty and without settings */
int queues_follow_gone(struct batch *batch, struct err *err); /* that others removed */
int limits_queue_room(const struct batch *batch, uint32_t more, struct err *err);
int limits_queue_make(struct batch *batch, struct str name, struct queue_state **state,
                      struct err *err);
enum admit limits_admit(void *batch, struct str queue, struct str type, struct str limit_key,
                        const struct uuid *category_id);
/* It was admitted, but is not taken after all. */
void limits_take_back(struct batch *batch, const struct task *task);
/* False when no task of the queue could be admitted just now; the claim is tried again in time. */
bool limits_open(struct batch *batch, struct queue_state *state);
/* limits_shared.c: figures of the database, for this batch */
bool limits_any(const struct queue_state *state);
int limits_look(struct batch *batch, struct queue_state *state, struct err *err);
int limits_look_key(struct batch *batch, struct limit *limit, struct err *err);
int limits_save(struct batch *batch, struct err *err); /* buckets, before the commit */
/* How full a limit is, for looking only: nobody is kept waiting, and what is seen may be over.
 * `kind` is q, t or k; name the type or the key. */
int limits_peek(struct batch *batch, struct queue_state *state, char kind, struct str name,
                const struct rate_rule *rate, int64_t *running, struct bucket *bucket,
                struct err *err);
const struct type_limit *limits_type_rule(const struct queue_state *state, struct str type);
struct limit *limits_type(struct queue_state *state, struct str type);
/* Tasks admitted and really taken, or held no longer. */
void limits_note(struct batch *batch, const struct task *task, int64_t by);
int limits_unpark(struct batch *batch, struct err *err);
int64_t limits_order_key(struct engine *engine, const struct task *task, int64_t eligible_us);
int64_t limits_eligible_us(struct engine *engine, const struct task *task); /* by its order key */
/* For queue_rules.c: */
int limits_count_all(struct engine *engine, struct err *err); /* what runs, anew from the store */
int limits_replace_row(struct engine *engine, struct queue_state *state,
                       const struct queue_row *row, struct err *err);
/* The queue as the store has it now, made or changed by whom ever. */
int limits_follow_one(struct batch *batch, struct str name, struct queue_state **state,
                      struct err *err);
/* queue_rules.c */
int limits_list(struct batch *batch, struct queues_request *request);
int limits_patch(struct batch *batch, struct queue_patch_request *request);
/* The settings are others: what only they know of a queue is taken from them. */
void limits_configured(struct engine *engine);

/* configure.c */
int configure_apply(struct batch *batch, struct configure_request *request);
int configure_queues(struct engine *engine, struct err *err); /* in the transaction under way */
int limits_view(struct batch *batch, struct queue_state *state, struct arena *arena,
                struct queue_view *view, struct err *err);
/* sweep.c */
int sweep_run(struct batch *batch, int64_t *next_us, struct err *err);
int sweep_due(struct batch *batch, int64_t *next_us, struct err *err);
/* Whoever holds it is gone or silent: orphaned, or dead_letter when that was too often. */
int sweep_orphan(struct batch *batch, struct task *task, const char *reason, bool to_blame,
                 struct err *err);
/* The same of one that stalled; its holder lives, and keeps it until it has stopped it
 * (sweep_stopped) or has had the time for that. */
int sweep_orphan_held(struct batch *batch, struct task *task, struct err *err);
/* A cancelled or stalled one that its holder has stopped, or nobody will: its slot is free, and who
 * waits for that goes on. */
int sweep_stopped(struct batch *batch, struct task *task, struct err *err);
void sweep_forget_lost(struct engine *engine);
/* unclaimed.c: fails what no live worker can take, where that is wanted */
int unclaimed_fail(struct batch *batch, bool *more, struct err *err);
/* lost_tell.c: what the log says of lost tasks once they are committed. */
void lost_note(struct batch *batch, const struct task *task, const char *reason);
void lost_note_poison(struct batch *batch, const struct task *task);
void lost_tell(const struct engine *engine, const struct batch *batch);
/* log_ages.c: are the logs of these tasks as old as the tasks say? Others stay. keep_ms: windows by
 * what the store says, moved along. */
int log_ages_keep(struct batch *batch, struct task **tasks, int64_t *keep_ms, uint32_t *count,
                  struct err *err);
/* Of tasks that somebody wants gone: what is not by the key goes without a signed record. */
int log_ages_refuse(struct batch *batch, struct task *const *tasks, uint32_t count,
                    struct err *err);
int log_ages_ready(struct batch *batch, struct err *err); /* where there are lines */
/* The time that logs are old by: never ahead of this machine's clock, as that of the queue may be,
 * which begins at the newest time in the store. */
int64_t log_now_us(const struct batch *batch);

/* log_retention.c */
int log_retention_run(struct batch *batch, bool *more, struct err *err);
/* retention.c */
int retention_run(struct batch *batch, bool *more, struct err *err);
int retention_remove(struct batch *batch, struct task **tasks, uint32_t count, struct err *err);
/* log_heads.c: signed records about logs */
int log_heads_open(struct engine *engine, struct err *err);
void log_heads_begin(struct batch *batch);
void log_heads_reason(struct batch *batch, enum cut_reason reason); /* of what is removed now */
void log_heads_note(struct batch *batch); /* lines were written */
/* Before lines are written, or those that are there are believed: the key is loaded, and the first
 * record made. */
int log_heads_ready(struct batch *batch, struct err *err);
int log_heads_write(struct batch *batch, bool timers, struct err *err); /* last in a transaction */
void log_heads_trim(struct batch *batch, int64_t before_us); /* records older than logs are kept */
void log_heads_committed(struct engine *engine, const struct batch *batch);
int log_heads_stop(struct engine *engine, struct err *err);
void log_heads_close(struct engine *engine);
/* wake.c */
int wait_apply(struct batch *batch, struct wait_request *request);
void waits_answer(struct engine *engine, struct batch *batch); /* after the commit */
int waits_look(struct batch *batch, struct err *err); /* what ended on other nodes */
void waits_expire(struct engine *engine, int64_t now_us, int64_t *next_us);
void waits_forget(struct engine *engine, struct request *request);
void waits_fail_all(struct engine *engine, const struct err *err);
void claims_park(struct engine *engine, struct claim_request *request);
void claims_unpark(struct engine *engine, struct claim_request *request);
/* explain.c, explain_blocked.c, explain_chain.c: why a task does not run */
int explain_apply(struct batch *batch, struct why_request *request);
int explain_task(struct batch *batch, struct task *task, struct arena *arena,
                 struct why_facts *facts, struct err *err);
int explain_chain(struct batch *batch, struct arena *arena, struct why_facts *facts,
                  struct err *err);
int explain_blocked(struct batch *batch, struct task *task, struct arena *arena,
                    struct why_facts *facts, struct err *err);
/* measured.c */
int measured_open(struct engine *engine, struct err *err);
void measured_close(struct engine *engine);
void measured_count(struct batch *batch, const struct task *task, enum measure_count what);
void measured_move(struct batch *batch, const struct task *task, enum move move);
void measured_execution(struct batch *batch, const struct task *task,
                        enum execution_status status);
void measured_committed(struct engine *engine, const struct batch *batch);
void measured_undone(struct engine *engine);
void measured_enqueue(struct engine *engine, const struct request *request, int64_t committed_us);
int64_t measured_next_us(const struct engine *engine); /* when figures are due in the store */
int measured_flush(struct batch *batch, struct err *err);
int measured_stop(struct engine *engine, struct err *err);
/* stats.c */
int stats_apply(struct batch *batch, struct stats_request *request);
int outbox_take(struct batch *batch, struct outbox_take_request *request);
int outbox_done(struct batch *batch, struct outbox_done_request *request);

/* Does anybody depend on the task, does it depend on anybody? On a store of our own one flag for
 * all tasks is enough; other nodes would not see it. */
static inline bool task_has_dependents(const struct batch *batch, const struct task *task)
{
    return batch->store->shared ? task->has_dependents : batch->engine->any_dependencies;
}

static inline bool task_has_dependencies(const struct batch *batch, const struct task *task)
{
    return batch->store->shared ? task->has_dependencies : batch->engine->any_dependencies;
}

/* Grows an array kept in the batch's arena; false when memory is used up. */
bool batch_grow(struct batch *batch, void *items, uint32_t *cap, uint32_t count,
                size_t item_bytes);

#endif
