/* What people plan with: categories, jobs, schedules, recurring patterns, and what jobs wait for
 * each other. Pure data, the columns of the tables of the same names; engine/ changes it, store/
 * stores it. Texts are borrowed from the arena it was loaded into. */
#ifndef CORE_PLAN_CATALOG_H
#define CORE_PLAN_CATALOG_H

#include "calendar/recurrence.h"
#include "core/task/task.h"

#define CATEGORY_GENERAL "general" /* where a job without a category is */
#define SCHEDULE_DEFAULT_GRACE_MS 60000
#define SCHEDULE_DEFAULT_CAP 100

enum schedule_type {
    SCHEDULE_CRON,
    SCHEDULE_INTERVAL,
    SCHEDULE_ONCE,
    SCHEDULE_IMMEDIATE,
    SCHEDULE_TYPE_COUNT
};
enum misfire { MISFIRE_SKIP, MISFIRE_FIRE_ONCE, MISFIRE_FIRE_ALL, MISFIRE_COUNT };
enum overlap { OVERLAP_ALLOW, OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_REPLACE, OVERLAP_COUNT };
enum dependency_mode { DEPENDENCY_GATE, DEPENDENCY_TRIGGER, DEPENDENCY_MODE_COUNT };

const char *schedule_type_word(enum schedule_type type);
bool schedule_type_parse(struct str word, enum schedule_type *type);
const char *misfire_word(enum misfire misfire);
bool misfire_parse(struct str word, enum misfire *misfire);
const char *overlap_word(enum overlap overlap);
bool overlap_parse(struct str word, enum overlap *overlap);
const char *dependency_mode_word(enum dependency_mode mode);
bool dependency_mode_parse(struct str word, enum dependency_mode *mode);

/* Times of 0 are not set, nil ids are none, absent texts are null. */
struct category {
    struct uuid id;
    struct str namespace_name;
    struct str name;
    struct str description;
    int64_t default_priority;
    int64_t default_timeout_s;
    int64_t default_max_retries;
    struct str configuration; /* JSON object: queue, allowed_windows, timezone, batch_size,
                               * batch_processing, and what else its users put there */
    bool is_active;
    int64_t created_at_us;
    int64_t updated_at_us;
};

struct job {
    struct uuid id;
    struct str namespace_name;
    struct str name;
    struct str description;
    struct uuid category_id; /* nil: general */
    struct str task_type;    /* absent: its name */
    struct str queue;        /* absent: the category's */
    struct str target_service;
    struct str target_method;
    struct str payload; /* JSON or absent */
    bool has_priority, has_max_retries, has_timeout; /* else the category's */
    int64_t priority;
    int64_t max_retries;
    int64_t timeout_s;
    int64_t max_concurrent; /* runs at once; 0 = no limit */
    struct str callback_url;
    struct str callback_events; /* callback_events.h */
    bool is_active;
    struct str created_by; /* the user its runs belong to; absent = no user */
    struct str principal;  /* whose rights they run with: who made or changed it last; absent = no
                            * credential */
    int64_t created_at_us;
    int64_t updated_at_us;
    int64_t deleted_at_us;
    /* Of its runs, kept by the queue: */
    struct uuid last_task_id;   /* the run that ended last */
    enum status last_status;    /* STATUS_NONE = none has ended yet */
    int64_t last_ended_at_us;
};

struct schedule {
    struct uuid id;
    struct str namespace_name;
    struct uuid job_id;
    enum schedule_type type;
    struct str cron_expression;
    int64_t interval_s;
    int64_t scheduled_at_us;
    struct str timezone; /* "UTC" where none was given */
    int64_t starts_at_us;
    int64_t ends_at_us;
    bool is_active;
    enum misfire misfire;
    int64_t misfire_grace_ms;
    int64_t misfire_cap;
    enum overlap overlap;
    enum dst_policy dst;
    int64_t jitter_ms;
    struct str callback_url;    /* absent: the job's */
    struct str callback_events; /* absent: the job's */
    int64_t next_fire_at_us; /* the planned instant; 0 = none any more */
    int64_t last_fire_at_us; /* the last planned instant that was fired */
    struct str error;        /* why it cannot be planned (its zone vanished), else absent */
    struct str principal;    /* as in a job; it counts, too */
    int64_t created_at_us;
    int64_t updated_at_us;
};

struct recurring {
    struct uuid id;
    struct str namespace_name;
    struct str name;
    enum recurrence_type type;
    struct str pattern_config; /* JSON object, recurrence.h */
    struct uuid template_job_id;
    int64_t last_generated_us;
    int64_t next_generation_us;
    bool is_active;
    struct str error;     /* as in a schedule */
    struct str principal;
    int64_t created_at_us;
    int64_t updated_at_us;
};

struct job_dependency {
    struct uuid id;
    struct str namespace_name;
    struct uuid job_id;            /* this one ... */
    struct uuid depends_on_job_id; /* ... waits for that one, or is started by its end */
    enum dependency kind;
    struct str config;             /* JSON object as given; the two below are read from it */
    enum dependency_mode mode;
    int64_t within_ms;             /* gate: an end longer ago does not count; 0 = any does */
    int64_t created_at_us;
};

/* A run of a job that has not ended. */
struct job_run {
    struct uuid task_id;
    struct uuid job_id;
    struct uuid schedule_id;      /* nil where not made by one, here and below */
    struct uuid recurring_job_id;
    bool waits_slot;              /* too many others are open: one of its open_dependencies */
    int64_t created_at_us;
};

/* A run that waits for another job to end as required (gate). */
struct job_wait {
    struct uuid task_id;
    struct uuid depends_on_job_id;
    enum dependency kind;
};

/* A delayed task, as a walk through them meets it. */
struct delayed {
    struct uuid id;
    int64_t at_us;  /* when it is due */
    int64_t key;
    bool has_state; /* it shows the state that was asked for */
};

/* A planned instant that was fired: there is one row for it, whatever happens. */
struct fire {
    struct uuid owner_id; /* a schedule or a recurring job */
    int64_t instant_us;
    struct uuid task_id;  /* nil: passed over (overlap) */
    bool taken;           /* out: it was there before */
};

/* How a category's configuration is read; what is missing or not understood is off. */
struct category_rules {
    struct str queue;           /* absent: default */
    struct str service;         /* of jobs with a target_method alone; absent: they need one */
    struct str allowed_windows; /* JSON array or absent; window_parse */
    struct str timezone;        /* for tasks without a schedule; absent: UTC */
    int64_t batch_size;         /* tasks per claim; 0 = as many as asked for */
};
int category_rules_read(struct str configuration, struct arena *arena,
                        struct category_rules *rules, struct err *err);

/* Reads mode and within_ms of a dependency's config; ERR_INVALID names the member. */
int job_dependency_read(struct job_dependency *dependency, struct err *err);

/* Whether both are planned for the same instants; a pattern written otherwise counts as another. */
bool schedule_same_times(const struct schedule *a, const struct schedule *b);
bool recurring_same_times(const struct recurring *a, const struct recurring *b);

/* The categories a namespace begins with (catalog_first.c), without ids and times. */
const struct category *categories_first(uint32_t *count);

#endif
