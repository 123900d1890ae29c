/* From a task object of a request to what the engine enqueues: parsing, defaults, checks, hashes.
 * Pure; runs on the caller's thread, so that the engine's thread has nothing left to parse. */
#ifndef CORE_SPEC_SPEC_H
#define CORE_SPEC_SPEC_H

#include "base/arena.h"
#include "base/err.h"
#include "core/settings.h"
#include "core/task/task.h"

struct input_dependency {
    struct uuid task_id;  /* nil where ref is given */
    struct str ref;       /* another element of the same array */
    enum dependency kind;
    uint32_t element;     /* of the array, where ref is given */
};

/* A task to be enqueued. */
struct principal;

struct task_input {
    struct task_spec spec;
    struct str data;     /* JSON or absent */
    struct task_about about;
    struct str category; /* name, absent = none */
    int64_t priority;
    bool has_priority;
    bool ruled_priority; /* a rule of the configuration gave it */
    bool has_queue;
    int64_t delay_ms;    /* 0 = none */
    struct input_dependency *depends_on;
    uint32_t depends_on_count;
    bool has_timeout, has_max_retries, has_retry_policy, has_retry_delay, has_max_retry_delay;
    bool hash_input;
    bool no_hash;        /* "hash_input": false beats the type's setting */
    struct str *hash_fields; /* JSON pointers */
    uint32_t hash_fields_count;
    struct uuid forked_from;             /* nil = it is no fork (core/spec/fork.h) */
    bool had_begun;                      /* its original: the parents had ended, and may be gone */
    const struct checkpoint *checkpoint; /* of a fork: where its first attempt resumes, or NULL */
    const struct principal *maker; /* whose rights it needs; NULL = the program's own */
    int64_t given_key;             /* of one enqueued with SQL: its key and id ... */
    struct uuid given_id;
    int64_t given_at_us;           /* ... and when that was; given_key 0 = it gets them now */
};

/* Parses one task object (text that json_check accepted). ERR_INVALID (422) or ERR_TOO_LARGE (413)
 * with the field at fault. Texts point into `object` or arena. Members that are null count as not
 * given, but for payload and data. */
int spec_parse(struct str object, const struct settings *settings, struct arena *arena,
               struct task_input *input, struct err *err);

/* Parses an array of task objects or a single one; *is_array tells. Checks the bounds, links refs
 * and refuses cycles with their path. */
int spec_parse_all(struct str json, const struct settings *settings, struct arena *arena,
                   struct task_input **inputs, uint32_t *count, bool *is_array, struct err *err);

/* Fills type defaults (handler rules, priority rules) and the input hash. Called by the two above;
 * callers who fill inputs by hand start with spec_init and end with this. By hand, texts are only
 * checked for type, queue and sizes, and JSON not at all. settings may be NULL. */
void spec_init(struct task_input *input);
int spec_finish(struct task_input *input, const struct settings *settings, struct arena *arena,
                struct err *err);

/* Idempotency keys that begin like this are the engine's own: a request may not take them. */
#define SPEC_OWN_KEYS "perdura:"

/* low, medium, high, critical or a number in bounds. */
bool priority_parse(struct str text, int64_t *priority);
const char *priority_level(int64_t priority); /* the word for it; NULL = it has none */
/* The JSON of one: a number in bounds, or the text of a level. Text of digits is neither. */
int spec_read_priority(struct str value, const char *field, struct arena *arena, int64_t *to,
                       struct err *err);

#endif
