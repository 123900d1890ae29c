/* Dependencies, outcomes of parents and children, and what a task leaves behind, on rows
 * (rows_relatives.c). */
#ifndef STORE_ROWS_ROWS_RELATIVES_H
#define STORE_ROWS_ROWS_RELATIVES_H

#include "store/rows/rows.h"

int rows_dependencies_insert(struct store *, const struct uuid *, const struct task_dependency *,
                             uint32_t, struct err *);
int rows_dependents_find(struct store *, const struct uuid *, const struct uuid *, uint32_t,
                         struct arena *, struct dependent **, uint32_t *, struct err *);
int rows_dependents_decide(struct store *, const struct uuid *, const struct uuid *, uint32_t,
                           bool, struct err *);
int rows_dependencies_undecide(struct store *, const struct uuid *, struct err *);
int rows_outputs_find(struct store *, const struct uuid *, bool, int64_t, uint32_t, struct arena *,
                      struct output **, uint32_t *, struct err *);
int rows_result_drop(struct store *, const struct uuid *, struct err *);
int rows_read_dependencies(struct store_reader *, const struct uuid *, struct arena *,
                           struct task_dependency **, uint32_t *, struct err *);
int rows_read_dependents(struct store_reader *, const struct uuid *, struct arena *,
                         struct task_dependency **, uint32_t *, struct err *);
int rows_read_outputs(struct store_reader *, const struct uuid *, bool, int64_t, uint32_t,
                      struct arena *, struct output **, uint32_t *, struct err *);
int rows_read_result(struct store_reader *, const struct uuid *, struct arena *, struct str *,
                     int64_t *, struct err *);
int rows_read_events(struct store_reader *, const struct uuid *, int64_t, uint32_t, struct arena *,
                     struct task_event **, uint32_t *, struct err *);

#endif
