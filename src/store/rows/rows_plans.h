/* Schedules, recurring patterns and what they fired, on rows (rows_plans.c). */
#ifndef STORE_ROWS_ROWS_PLANS_H
#define STORE_ROWS_ROWS_PLANS_H

#include "store/catalog_store.h"

int rows_schedules_load(struct store *, const struct uuid *, uint32_t, struct arena *,
                        struct schedule **, struct err *);
int rows_schedule_put(struct store *, const struct schedule *, struct err *);
int rows_schedule_delete(struct store *, const struct uuid *, struct err *);
int rows_schedules_due(struct store *, int64_t, uint32_t, struct arena *, struct schedule **,
                       uint32_t *, int64_t *, struct err *);
int rows_schedules_step(struct store *, struct plan_step *, uint32_t, struct err *);
int rows_schedules_scan(struct store *, const struct uuid *, uint32_t, struct arena *,
                        struct schedule **, uint32_t *, struct err *);
int rows_recurring_load(struct store *, const struct uuid *, uint32_t, struct arena *,
                        struct recurring **, struct err *);
int rows_recurring_put(struct store *, const struct recurring *, struct err *);
int rows_recurring_delete(struct store *, const struct uuid *, struct err *);
int rows_recurring_due(struct store *, int64_t, uint32_t, struct arena *, struct recurring **,
                       uint32_t *, int64_t *, struct err *);
int rows_recurring_step(struct store *, struct plan_step *, uint32_t, struct err *);
int rows_recurring_scan(struct store *, const struct uuid *, uint32_t, struct arena *,
                        struct recurring **, uint32_t *, struct err *);
int rows_fires_insert(struct store *, bool, struct fire *, uint32_t, struct err *);
int rows_fires_prune(struct store *, int64_t, uint32_t, uint32_t *, struct err *);

#endif
