/* From a JSON object of a request to what it asks of a category, job, schedule, recurring pattern
 * or dependency, and which of its fields it names. Pure; on the caller's thread. The engine checks
 * later what depends on other rows, on zones or on the time. */
#ifndef CORE_PLAN_CATALOG_PARSE_H
#define CORE_PLAN_CATALOG_PARSE_H

#include "core/plan/catalog.h"

/* One bit for each field, in the order of the struct. */
enum {
    CATEGORY_FIELD_NAME = 1,
    CATEGORY_FIELD_DESCRIPTION = 2,
    CATEGORY_FIELD_DEFAULT_PRIORITY = 4,
    CATEGORY_FIELD_DEFAULT_TIMEOUT = 8,
    CATEGORY_FIELD_DEFAULT_MAX_RETRIES = 16,
    CATEGORY_FIELD_CONFIGURATION = 32,
    CATEGORY_FIELD_IS_ACTIVE = 64
};

enum {
    JOB_FIELD_NAME = 1,
    JOB_FIELD_DESCRIPTION = 2,
    JOB_FIELD_CATEGORY = 4,
    JOB_FIELD_TASK_TYPE = 8,
    JOB_FIELD_QUEUE = 16,
    JOB_FIELD_TARGET_SERVICE = 32,
    JOB_FIELD_TARGET_METHOD = 64,
    JOB_FIELD_PAYLOAD = 128,
    JOB_FIELD_PRIORITY = 256,
    JOB_FIELD_MAX_RETRIES = 512,
    JOB_FIELD_TIMEOUT = 1024,
    JOB_FIELD_MAX_CONCURRENT = 2048,
    JOB_FIELD_CALLBACK_URL = 4096,
    JOB_FIELD_IS_ACTIVE = 8192,
    JOB_FIELD_CREATED_BY = 16384,
    JOB_FIELD_CALLBACK_EVENTS = 32768
};

enum {
    SCHEDULE_FIELD_JOB_ID = 1,
    SCHEDULE_FIELD_TYPE = 2,
    SCHEDULE_FIELD_CRON_EXPRESSION = 4,
    SCHEDULE_FIELD_INTERVAL = 8,
    SCHEDULE_FIELD_SCHEDULED_AT = 16,
    SCHEDULE_FIELD_TIMEZONE = 32,
    SCHEDULE_FIELD_STARTS_AT = 64,
    SCHEDULE_FIELD_ENDS_AT = 128,
    SCHEDULE_FIELD_IS_ACTIVE = 256,
    SCHEDULE_FIELD_MISFIRE = 512,
    SCHEDULE_FIELD_MISFIRE_GRACE = 1024,
    SCHEDULE_FIELD_MISFIRE_CAP = 2048,
    SCHEDULE_FIELD_OVERLAP = 4096,
    SCHEDULE_FIELD_DST = 8192,
    SCHEDULE_FIELD_JITTER = 16384,
    SCHEDULE_FIELD_CALLBACK_URL = 32768,
    SCHEDULE_FIELD_CALLBACK_EVENTS = 65536,
    /* those that decide when it fires */
    SCHEDULE_FIELDS_OF_TIME = SCHEDULE_FIELD_TYPE | SCHEDULE_FIELD_CRON_EXPRESSION |
                              SCHEDULE_FIELD_INTERVAL | SCHEDULE_FIELD_SCHEDULED_AT |
                              SCHEDULE_FIELD_TIMEZONE | SCHEDULE_FIELD_STARTS_AT |
                              SCHEDULE_FIELD_ENDS_AT | SCHEDULE_FIELD_IS_ACTIVE |
                              SCHEDULE_FIELD_DST
};

enum {
    RECURRING_FIELD_NAME = 1,
    RECURRING_FIELD_TYPE = 2,
    RECURRING_FIELD_CONFIG = 4,
    RECURRING_FIELD_TEMPLATE = 8,
    RECURRING_FIELD_IS_ACTIVE = 16
};

enum {
    DEPENDENCY_FIELD_JOB = 1,
    DEPENDENCY_FIELD_DEPENDS_ON = 2,
    DEPENDENCY_FIELD_TYPE = 4,
    DEPENDENCY_FIELD_CONFIG = 8
};

/* Fills the struct with the defaults of a new one. */
void category_init(struct category *category);
void job_init(struct job *job);
void schedule_init(struct schedule *schedule);
void recurring_init(struct recurring *recurring);
void job_dependency_init(struct job_dependency *dependency);

/* `object` is text that json_check accepted; what it names is put into the struct, and into *set.
 * ERR_INVALID (422; unknown members too) or ERR_TOO_LARGE with the field. Texts point into object
 * or arena. null sets a field back to its default. A new one begins with its _init. */
int category_read(struct str object, struct arena *arena, struct category *category, uint64_t *set,
                  struct err *err);
/* *category is the name of the job's category where `set` has JOB_FIELD_CATEGORY; absent = none. */
int job_read(struct str object, struct arena *arena, struct job *job, struct str *category,
             uint64_t *set, struct err *err);
/* With extra members of a preview: count and from, else NULL. */
#define PREVIEW_DEFAULT_COUNT 10
struct preview_wish {
    int64_t count;
    int64_t from_us; /* 0 = now */
};
int schedule_read(struct str object, struct arena *arena, struct schedule *schedule, uint64_t *set,
                  struct preview_wish *preview, struct err *err);
int recurring_read(struct str object, struct arena *arena, struct recurring *recurring,
                   uint64_t *set, struct err *err);
int job_dependency_parse(struct str object, struct arena *arena,
                         struct job_dependency *dependency, uint64_t *set, struct err *err);

/* Changed fields from one into the other: JOB_FIELD_CATEGORY takes category_id, which the caller
 * has found by the name. A schedule that changes its type loses what belonged to the other one. */
void category_take(struct category *to, const struct category *from, uint64_t set);
void job_take(struct job *to, const struct job *from, uint64_t set);
void schedule_take(struct schedule *to, const struct schedule *from, uint64_t set);
void recurring_take(struct recurring *to, const struct recurring *from, uint64_t set);

/* The first fault of the thing as a whole: cron without an expression, ends before it starts. What
 * plan.h refuses (an expression, a pattern, an unknown zone) is left to it. */
int category_check(const struct category *category, struct err *err);
int job_check(const struct job *job, struct err *err);
int schedule_check(const struct schedule *schedule, struct err *err);
int recurring_check(const struct recurring *recurring, struct err *err);
int job_dependency_check(const struct job_dependency *dependency, struct err *err);

#endif
