/* The stored fields of categories, jobs, schedules, recurring patterns, what jobs depend on, and
 * their open runs: one row each, as column, member, kind, flags and the rest by name
 * (core/field.h). Both stores and copies are made of these lists. Pure data; any thread. */
#ifndef CORE_PLAN_CATALOG_FIELDS_H
#define CORE_PLAN_CATALOG_FIELDS_H

#include "core/field.h"
#include "core/plan/catalog.h"

#define CATEGORY_FIELDS(FIELD)                                                                     \
    FIELD(id, id, UUID, 0)                                                                         \
    FIELD(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE)      \
    FIELD(name, name, TEXT, 0)                                                                     \
    FIELD(description, description, TEXT, 0)                                                       \
    FIELD(default_priority, default_priority, PRIORITY, 0)                                         \
    FIELD(default_timeout, default_timeout_s, INT, 0)                                              \
    FIELD(default_max_retries, default_max_retries, INT, 0)                                        \
    FIELD(configuration, configuration, JSON, FIELD_ALWAYS, .otherwise = "{}")                     \
    FIELD(is_active, is_active, BOOL, 0)                                                           \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)                                           \
    FIELD(updated_at, updated_at_us, TIME, FIELD_ALWAYS)

#define JOB_FIELDS(FIELD)                                                                          \
    FIELD(id, id, UUID, 0)                                                                         \
    FIELD(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE)      \
    FIELD(name, name, TEXT, 0)                                                                     \
    FIELD(description, description, TEXT, 0)                                                       \
    FIELD(category_id, category_id, UUID, 0)                                                       \
    FIELD(task_type, task_type, TEXT, 0)                                                           \
    FIELD(queue, queue, TEXT, 0)                                                                   \
    FIELD(target_service, target_service, TEXT, 0)                                                 \
    FIELD(target_method, target_method, TEXT, 0)                                                   \
    FIELD(payload, payload, TEXT, FIELD_LONG)                                                      \
    FIELD(priority, priority, PRIORITY, 0, .has = offsetof(struct job, has_priority))              \
    FIELD(max_retries, max_retries, INT, 0, .has = offsetof(struct job, has_max_retries))          \
    FIELD(timeout_seconds, timeout_s, INT, 0, .has = offsetof(struct job, has_timeout))            \
    FIELD(max_concurrent, max_concurrent, INT, 0)                                                  \
    FIELD(callback_url, callback_url, TEXT, 0)                                                     \
    FIELD(callback_events, callback_events, TEXT, FIELD_LIST)                                      \
    FIELD(is_active, is_active, BOOL, 0)                                                           \
    FIELD(created_by, created_by, TEXT, 0)                                                         \
    FIELD(created_by_principal, principal, TEXT, 0)                                                \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)                                           \
    FIELD(updated_at, updated_at_us, TIME, FIELD_ALWAYS)                                           \
    FIELD(deleted_at, deleted_at_us, TIME, 0)

/* Of its runs; who puts a job leaves these as they are. */
#define JOB_LAST_FIELDS(FIELD)                                                                     \
    FIELD(last_task_id, last_task_id, UUID, 0)                                                     \
    FIELD(last_status, last_status, WORD, FIELD_EMPTY, .empty = STATUS_NONE,                       \
          .words = &status_words)                                                                  \
    FIELD(last_ended_at, last_ended_at_us, TIME, 0)

#define SCHEDULE_FIELDS(FIELD)                                                                     \
    FIELD(id, id, UUID, 0)                                                                         \
    FIELD(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE)      \
    FIELD(job_id, job_id, UUID, 0)                                                                 \
    FIELD(schedule_type, type, WORD, 0, .words = &schedule_type_words)                             \
    FIELD(cron_expression, cron_expression, TEXT, 0)                                               \
    FIELD(interval_seconds, interval_s, INT, FIELD_EMPTY)                                          \
    FIELD(scheduled_at, scheduled_at_us, TIME, 0)                                                  \
    FIELD(timezone, timezone, TEXT, FIELD_ALWAYS, .otherwise = "UTC")                              \
    FIELD(starts_at, starts_at_us, TIME, 0)                                                        \
    FIELD(ends_at, ends_at_us, TIME, 0)                                                            \
    FIELD(is_active, is_active, BOOL, 0)                                                           \
    FIELD(misfire, misfire, WORD, 0, .words = &misfire_words)                                      \
    FIELD(misfire_grace_ms, misfire_grace_ms, INT, 0)                                              \
    FIELD(misfire_cap, misfire_cap, INT, 0)                                                        \
    FIELD(overlap, overlap, WORD, 0, .words = &overlap_words)                                      \
    FIELD(dst, dst, WORD, 0, .words = &dst_policy_words)                                           \
    FIELD(jitter_ms, jitter_ms, INT, 0)                                                            \
    FIELD(callback_url, callback_url, TEXT, 0)                                                     \
    FIELD(callback_events, callback_events, TEXT, FIELD_LIST)                                      \
    FIELD(next_fire_at, next_fire_at_us, TIME, 0)                                                  \
    FIELD(last_fire_at, last_fire_at_us, TIME, 0)                                                  \
    FIELD(error, error, TEXT, 0)                                                                   \
    FIELD(created_by_principal, principal, TEXT, 0)                                                \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)                                           \
    FIELD(updated_at, updated_at_us, TIME, FIELD_ALWAYS)

#define RECURRING_FIELDS(FIELD)                                                                    \
    FIELD(id, id, UUID, 0)                                                                         \
    FIELD(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE)      \
    FIELD(name, name, TEXT, 0)                                                                     \
    FIELD(pattern_type, type, WORD, 0, .words = &recurrence_type_words)                            \
    FIELD(pattern_config, pattern_config, JSON, FIELD_ALWAYS, .otherwise = "{}")                   \
    FIELD(template_job_id, template_job_id, UUID, 0)                                               \
    FIELD(last_generated, last_generated_us, TIME, 0)                                              \
    FIELD(next_generation, next_generation_us, TIME, 0)                                            \
    FIELD(is_active, is_active, BOOL, 0)                                                           \
    FIELD(error, error, TEXT, 0)                                                                   \
    FIELD(created_by_principal, principal, TEXT, 0)                                                \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)                                           \
    FIELD(updated_at, updated_at_us, TIME, FIELD_ALWAYS)

#define JOB_DEPENDENCY_FIELDS(FIELD)                                                               \
    FIELD(id, id, UUID, 0)                                                                         \
    FIELD(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE)      \
    FIELD(job_id, job_id, UUID, 0)                                                                 \
    FIELD(depends_on_job_id, depends_on_job_id, UUID, 0)                                           \
    FIELD(dependency_type, kind, WORD, 0, .words = &dependency_words)                              \
    FIELD(dependency_config, config, JSON, FIELD_ALWAYS, .otherwise = "{}")                        \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)

#define JOB_RUN_FIELDS(FIELD)                                                                      \
    FIELD(task_id, task_id, UUID, 0)                                                               \
    FIELD(job_id, job_id, UUID, 0)                                                                 \
    FIELD(schedule_id, schedule_id, UUID, 0)                                                       \
    FIELD(recurring_job_id, recurring_job_id, UUID, 0)                                             \
    FIELD(waits_slot, waits_slot, BOOL, 0)                                                         \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)

#define JOB_WAIT_FIELDS(FIELD)                                                                     \
    FIELD(task_id, task_id, UUID, 0)                                                               \
    FIELD(depends_on_job_id, depends_on_job_id, UUID, 0)                                           \
    FIELD(dependency_type, kind, WORD, 0, .words = &dependency_words)

extern const struct field_table category_table;       /* alias c */
extern const struct field_table job_table;            /* alias j */
extern const struct field_table job_put_table;        /* without what is of its runs */
extern const struct field_table schedule_table;       /* alias h */
extern const struct field_table recurring_table;      /* alias r */
extern const struct field_table job_dependency_table; /* alias d */
extern const struct field_table job_run_table;        /* alias n */
extern const struct field_table job_wait_table;       /* alias w */

#endif
