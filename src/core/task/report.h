/* What a worker tells of the tasks it holds: one struct per element of a report. Pure data, filled
 * by the API's parser, by the in-process pool or by the library; applied by
 * engine/tasks/report_apply.c. */
#ifndef CORE_TASK_REPORT_H
#define CORE_TASK_REPORT_H

#include "base/err.h"
#include "base/uuid7.h"
#include "core/task/status.h"

struct task_input; /* core/spec/spec.h */

enum report_op {
    REPORT_START,
    REPORT_PROGRESS,
    REPORT_CHECKPOINT,
    REPORT_LOG,
    REPORT_SPAWN,
    REPORT_COMPLETE,
    REPORT_CONTINUE,
    REPORT_FAIL,
    REPORT_PARTIAL,
    REPORT_RELEASE,
    REPORT_AWAIT, /* another party works on it now, and says how it ends (call_keys.h) */
    REPORT_OP_COUNT
};

enum log_severity {
    SEVERITY_DEBUG,
    SEVERITY_INFO,
    SEVERITY_WARN,
    SEVERITY_ERROR,
    SEVERITY_FATAL,
    SEVERITY_COUNT
};

const char *report_op_word(enum report_op op);
bool report_op_parse(struct str word, enum report_op *op);
const char *severity_word(enum log_severity severity);
bool severity_parse(struct str word, enum log_severity *severity); /* any case; WARNING too */

/* Absent texts are STR_NONE; JSON values were checked by json_check. */
struct report {
    struct uuid task_id;
    int64_t lease_token;
    int64_t seq; /* 0 = none given */
    enum report_op op;

    int64_t progress;          /* progress, checkpoint; -1 = absent */
    struct str state;          /* progress */
    struct str data;           /* JSON: progress, continue, checkpoint */
    struct str metadata;       /* JSON object: progress */
    struct str detail;         /* JSON: progress */
    struct str name;           /* checkpoint; await: the service */
    struct str description;    /* checkpoint */
    struct str database_state; /* JSON: checkpoint */
    struct str file_state;     /* JSON: checkpoint */
    enum log_severity level;   /* log */
    struct str message;        /* log */
    struct str context;        /* JSON: log */
    struct str tasks;          /* JSON array of task objects: spawn */
    struct task_input *inputs; /* the same, parsed by engine_prepare_reports */
    uint32_t inputs_count;
    struct str result;         /* JSON: complete, partial; absent = no value */
    int64_t delay_ms;          /* continue; -1 = absent */
    bool wait_children;        /* continue */
    struct str question;       /* continue: the task is paused until a person answers */
    struct str error;          /* fail */
    struct str details;        /* JSON: fail */
    bool retryable;            /* fail: default true */
    bool timed_out;            /* fail: the worker stopped it at its timeout */
    bool by_sql;               /* a program said so in its own transaction (intake.c) */
    struct str reason;         /* release: REPORT_REASON_NO_HANDLER or absent */
};

enum report_field_kind {
    REPORT_IS_ID,
    REPORT_IS_OP,
    REPORT_IS_LEVEL,
    REPORT_IS_INT,  /* less than `min` = absent */
    REPORT_IS_TEXT,
    REPORT_IS_JSON,
    REPORT_IS_OBJECT,
    REPORT_IS_ARRAY,
    REPORT_IS_BOOL
};

/* The fields of an element, as workers send them and as the API takes them. */
struct report_field {
    const char *name;
    enum report_field_kind kind;
    unsigned ops;      /* that take it */
    unsigned required; /* that need it */
    size_t offset;
    int64_t min, max;
};

#define REPORT_FIELDS 26
#define REPORT_FIELD_TASK 0
#define REPORT_FIELD_OP 3
extern const struct report_field report_fields[REPORT_FIELDS];

/* A release by a worker that cannot run the type: it does not get the type again at once. */
#define REPORT_REASON_NO_HANDLER "no_handler"

#define REPORT_MESSAGE_BYTES sizeof((struct err){0}.text) /* nothing of a reason is cut */

struct report_result {
    enum err_code code; /* ERR_NONE = ok */
    char message[REPORT_MESSAGE_BYTES];
    bool cancel; /* the task was cancelled or is no longer held: stop its handler */
    bool pause;
};

#endif
