/* Domain objects as JSON, the same for every way out: API replies, handlers' stdin, webhooks,
 * archive. User JSON passes byte for byte; times are RFC 3339 in UTC; absent values are null. */
#ifndef CORE_RENDER_H
#define CORE_RENDER_H

#include "base/buf.h"
#include "core/task/report.h"
#include "core/task/task.h"

/* Members of a task that only some replies have; zeros and NULLs leave them out. */
struct render_extra {
    bool single;               /* show `result` (null when none) and `depends_on` */
    struct str result;         /* JSON or absent */
    const struct task_dependency *dependencies;
    uint32_t dependencies_count;
    struct str verdict;        /* JSON: `recovery`, of one that only validates */
    bool duplicate;            /* "duplicate":true */
    bool payload_differs;      /* "payload_differs":true */
    bool claimed;              /* a claim's reply: lease_token, lease_ms, attempt, checkpoint */
    int64_t lease_ms;
    const struct checkpoint *checkpoint;
    struct str data;           /* instead of the task's own (dependencies and children put in) */
    bool redacted;             /* without what payloads:read is needed for; "redacted":true */
    struct str event;          /* of a callback: what it tells of ... */
    int64_t attempt;           /* ... and of which attempt; 0 = of the whole task */
    struct str traceparent;    /* instead of the task's own: what comes after it passes this on */
};

/* One JSON object, no line break inside unless the user's own JSON has one. extra may be NULL. */
void render_task(struct buf *out, const struct task *task, const struct render_extra *extra);
void render_event(struct buf *out, const struct task_event *event, const struct uuid *task_id,
                  struct str correlation_id, bool redacted);
void render_execution(struct buf *out, const struct execution *execution, bool redacted);
void render_checkpoint(struct buf *out, const struct checkpoint *checkpoint,
                       const struct uuid *task_id, bool redacted);
/* {"name","progress","data","database_state","file_state"}: what the next attempt gets. */
void render_checkpoint_short(struct buf *out, const struct checkpoint *checkpoint);

/* Members: `"key":value`, with a comma before it unless it is the first. */
void render_time(struct buf *out, const char *key, int64_t time_us);  /* null when 0 */
void render_text(struct buf *out, const char *key, struct str text);  /* null when absent */
void render_json(struct buf *out, const char *key, struct str json);  /* null when absent */
void render_int(struct buf *out, const char *key, int64_t value);
void render_bool(struct buf *out, const char *key, bool value);
void render_uuid(struct buf *out, const char *key, const struct uuid *id); /* null when nil */

/* {"error":{"code","message","field"?}} */
void render_error(struct buf *out, const struct err *err);

#endif
