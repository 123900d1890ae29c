/* The verbs of the SQLite store on tasks and what they leave behind, by file. */
#ifndef STORE_SQLITE_SQLITE_TASKS_H
#define STORE_SQLITE_SQLITE_TASKS_H

#include "store/sqlite/sqlite_int.h"

/* sqlite_tasks.c */
int sqlite_tasks_load(struct store *, const struct uuid *, uint32_t, unsigned, struct arena *,
                      struct task **, struct err *);
int sqlite_tasks_insert(struct store *, struct task *const *, uint32_t, struct err *);
int sqlite_tasks_save(struct store *, struct task *const *, uint32_t, struct err *);
int sqlite_tasks_delete(struct store *, struct task *const *, uint32_t, struct err *);
int sqlite_uniques_reserve(struct store *, struct unique *, uint32_t, struct err *);
int sqlite_task_from_row(struct sqlite_store *, sqlite3_stmt *, unsigned, struct arena *,
                         struct task *, struct err *);
int sqlite_task_by_key(struct sqlite_store *, int64_t, unsigned, struct arena *, struct task **,
                       struct err *);
/* sqlite_find.c */
int sqlite_ready_take(struct store *, const struct ready_want *, struct arena *, struct task **,
                      uint32_t *, struct err *);
int64_t sqlite_ready_count(struct store *, struct str);
int sqlite_ready_reorder(struct store *, struct str,
                         int64_t (*)(void *, int64_t, int64_t), void *, struct err *);
int sqlite_held_find(struct store *, struct str, int64_t, uint32_t, struct arena *, struct task **,
                     uint32_t *, struct err *);
int sqlite_status_find(struct store *, enum status, int64_t, uint32_t, struct arena *,
                       struct task **, uint32_t *, struct err *);
/* sqlite_history.c: what a task leaves behind */
int sqlite_events_insert(struct store *, const struct task_event *, uint32_t, struct err *);
int sqlite_executions_insert(struct store *, const struct execution *, uint32_t, struct err *);
int sqlite_executions_save(struct store *, const struct execution *, uint32_t, struct err *);
int sqlite_result_put(struct store *, const struct uuid *, struct str, int64_t, struct err *);
int sqlite_checkpoint_insert(struct store *, const struct uuid *, struct checkpoint *,
                             struct err *);
/* sqlite_prune.c */
int sqlite_history_prune(struct store *, int64_t, int64_t, int64_t, uint32_t, int64_t *,
                         uint32_t *, struct err *);

#endif
