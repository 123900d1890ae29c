#include "core/plan/catalog_fields.h"

FIELD_WORDS(status, status, STATUS_NONE);
FIELD_WORDS(schedule_type, schedule_type, SCHEDULE_CRON);
FIELD_WORDS(misfire, misfire, MISFIRE_SKIP);
FIELD_WORDS(overlap, overlap, OVERLAP_ALLOW);
FIELD_WORDS(dst_policy, dst_policy, (enum dst_policy)0);
FIELD_WORDS(recurrence_type, recurrence_type, (enum recurrence_type)0);
FIELD_WORDS(dependency, dependency, (enum dependency)0);

#define CATEGORY(...) FIELD_ROW(category, __VA_ARGS__),
static const struct field categories[] = {CATEGORY_FIELDS(CATEGORY)};
const struct field_table category_table = FIELD_TABLE(category, "category", "c", categories);

#define JOB(...) FIELD_ROW(job, __VA_ARGS__),
static const struct field jobs[] = {JOB_FIELDS(JOB) JOB_LAST_FIELDS(JOB)};
const struct field_table job_table = FIELD_TABLE(job, "job", "j", jobs);

#define ONE(...) +1
const struct field_table job_put_table = {.name = "job_put", .alias = "j", .fields = jobs,
                                          .count = 0 JOB_FIELDS(ONE), .bytes = sizeof(struct job)};

#define SCHEDULE(...) FIELD_ROW(schedule, __VA_ARGS__),
static const struct field schedules[] = {SCHEDULE_FIELDS(SCHEDULE)};
const struct field_table schedule_table = FIELD_TABLE(schedule, "schedule", "h", schedules);

#define RECURRING(...) FIELD_ROW(recurring, __VA_ARGS__),
static const struct field recurring[] = {RECURRING_FIELDS(RECURRING)};
const struct field_table recurring_table = FIELD_TABLE(recurring, "recurring", "r", recurring);

#define DEPENDENCY(...) FIELD_ROW(job_dependency, __VA_ARGS__),
static const struct field dependencies[] = {JOB_DEPENDENCY_FIELDS(DEPENDENCY)};
const struct field_table job_dependency_table = FIELD_TABLE(job_dependency, "job_dependency", "d",
                                                            dependencies);

#define RUN(...) FIELD_ROW(job_run, __VA_ARGS__),
static const struct field runs[] = {JOB_RUN_FIELDS(RUN)};
const struct field_table job_run_table = FIELD_TABLE(job_run, "job_run", "n", runs);

#define WAIT(...) FIELD_ROW(job_wait, __VA_ARGS__),
static const struct field waits[] = {JOB_WAIT_FIELDS(WAIT)};
const struct field_table job_wait_table = FIELD_TABLE(job_wait, "job_wait", "w", waits);
