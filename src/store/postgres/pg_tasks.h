/* The verbs of the PostgreSQL store on tasks, their keys and what they wait for, by file. */
#ifndef STORE_POSTGRES_PG_TASKS_H
#define STORE_POSTGRES_PG_TASKS_H

#include "store/postgres/pg_int.h"

/* pg_tasks.c */
int pg_tasks_load(struct store *, const struct uuid *, uint32_t, unsigned, struct arena *,
                  struct task **, struct err *);
int pg_tasks_insert(struct store *, struct task *const *, uint32_t, struct err *);
int pg_tasks_save(struct store *, struct task *const *, uint32_t, struct err *);
int pg_tasks_delete(struct store *, struct task *const *, uint32_t, struct err *);
/* One task of a result whose columns are @state@ and, with LOAD_SPEC, @spec@ or @lean@. */
int pg_task_from_row(struct pg_store *store, const PGresult *result, int row, unsigned parts,
                     struct arena *arena, struct task **task, struct err *err);
/* Treats the task as what is stored, although it was not just read from the table. */
int pg_task_remember(struct pg_store *store, struct task *task, struct arena *arena,
                     struct err *err);
/* pg_keys.c */
struct pg_keyring *pg_keyring_new(void);
void pg_keyring_free(struct pg_keyring *ring);
void pg_keys_forget(struct pg_store *store); /* of all writers of the node */
int64_t pg_task_key_next(struct store *);
int64_t pg_execution_key_next(struct store *, int64_t above);
/* pg_held.c */
struct pg_held *pg_held_new(void);
void pg_held_free(struct pg_held *held);
void pg_held_note(struct pg_store *store, const struct task *task); /* as it was just written */
void pg_held_commit(struct pg_store *store);
void pg_held_forget(struct pg_store *store); /* after a rollback, or an unknown commit */
int pg_held_recall(struct store *, const struct uuid *, const int64_t *, uint32_t, struct arena *,
                   struct task **, struct err *);
/* pg_uniques.c */
int pg_uniques_reserve(struct store *, struct unique *, uint32_t, struct err *);
/* pg_find.c */
int pg_ready_take(struct store *, const struct ready_want *, struct arena *, struct task **,
                  uint32_t *, struct err *);
int64_t pg_ready_count(struct store *, struct str);
int pg_ready_reorder(struct store *, struct str,
                     int64_t (*)(void *, int64_t, int64_t), void *, struct err *);
int pg_held_find(struct store *, struct str, int64_t, uint32_t, struct arena *, struct task **,
                 uint32_t *, struct err *);
int pg_status_find(struct store *, enum status, int64_t, uint32_t, struct arena *, struct task **,
                   uint32_t *, struct err *);
/* pg_places.c: the row that says what a task waits for */
int places_change(struct pg_store *store, struct task *const *tasks, uint32_t count,
                  struct err *err);

#endif
