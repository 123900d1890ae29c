/* How old logs are, by their chains (log_ages.c), and their removal by age (log_retention.c).
 * Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_LOGS_LOG_AGES_H
#define ENGINE_LOGS_LOG_AGES_H

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct err;
struct task;

/* are the logs of these tasks as old as the tasks say? Others stay. keep_ms: windows by
 * what the store says, moved along. */
int log_ages_keep(struct batch *batch, struct task **tasks, int64_t *keep_ms, uint32_t *count,
                  struct err *err);
/* For tasks that a user deletes: removes lines that the key did not make, without a signed
 * record. */
int log_ages_refuse(struct batch *batch, struct task *const *tasks, uint32_t count,
                    struct err *err);
int log_ages_ready(struct batch *batch, struct err *err); /* where there are lines */
/* The time by which the age of logs is measured. It is never ahead of this machine's clock; the
 * engine's may be, because it begins at the newest time in the store. */
int64_t log_now_us(const struct batch *batch);
int log_retention_run(struct batch *batch, bool *more, struct err *err);

#endif
