/* Decisions about jobs: what task a run of one is, whether it may run, which jobs may depend on
 * which. Pure. */
#ifndef CORE_PLAN_JOB_H
#define CORE_PLAN_JOB_H

#include "core/plan/catalog.h"
#include "core/spec/spec.h"

/* The task of a run. category is the job's (general where it has none), schedule may be NULL.
 * Values: the job's, else the handler's (settings), else the category's, else the default. The
 * payload is payload if given, else the job's. No input hash: two runs with the same input are
 * still two. Texts are borrowed from what was given; settings may be NULL. The caller adds the time
 * and, where a pattern made it, recurring_job_id. */
int job_task_input(const struct job *job, const struct category *category,
                   const struct schedule *schedule, struct str payload,
                   const struct settings *settings, struct arena *arena, struct task_input *input,
                   struct err *err);

/* Of a plain task with a category, after spec_finish: what neither it nor the configuration says is
 * the category's. */
void category_fill(const struct category *category, const struct category_rules *rules,
                   const struct settings *settings, struct task_input *input);

/* What the next run of a job gets, and who says so: "job", "handler" or "rule" of the
 * configuration, "category", "default". Texts live in arena or in what is handed in. */
struct job_values {
    struct str queue;
    struct str target_service; /* absent: none */
    int64_t priority;
    int64_t max_retries;
    int64_t timeout_ms;
    const char *queue_from;
    const char *priority_from;
    const char *max_retries_from;
    const char *timeout_from;
};
int job_values_read(const struct job *job, const struct category *category,
                    const struct settings *settings, struct arena *arena,
                    struct job_values *values, struct err *err);

/* What an overlap policy makes of an instant while runs of the same schedule are open. */
enum overlap_move { OVERLAP_RUN, OVERLAP_PASS, OVERLAP_WAIT, OVERLAP_CANCEL_OPEN };
enum overlap_move overlap_decide(enum overlap overlap, uint32_t open_runs);

/* May a run pass the gate now? `job` is the one it waits for: it passes when no run of that is open
 * and the last end was as required, and within_ms ago at most. */
bool job_gate_open(const struct job_dependency *gate, const struct job *job, uint32_t open_runs,
                   int64_t now_us);

/* Would the edge close a cycle? Then 1, and the path (a shortest one, ids from job_id back to
 * job_id) is in arena; 0 when not. Gates and triggers are one graph. */
int job_graph_cycle(const struct job_dependency *edges, uint32_t count, const struct uuid *job_id,
                    const struct uuid *depends_on_job_id, struct arena *arena, struct uuid **path,
                    uint32_t *path_count, struct err *err);

#endif
