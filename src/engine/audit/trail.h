/* The audit trail (trail.c): each change of a caller is noted when the engine decides it, and
 * written last in the same transaction. Requests of the program itself are not noted. Belongs to
 * the thread that has the turn (inbox.c). */
#ifndef ENGINE_AUDIT_TRAIL_H
#define ENGINE_AUDIT_TRAIL_H

#include "core/log/audit.h"

struct batch;
struct engine;
struct request;

struct trail {
    struct log_head head; /* of the newest entry this writer made; seq 0 = none yet */
};

/* Notes what the caller of a request did to an object; change may be absent. */
int trail_note(struct batch *batch, const struct request *request, const char *action,
               const char *object_kind, struct str object_id, struct str change, struct err *err);
/* The same in a namespace that is not the request's; "*" = it concerns all of them. */
int trail_note_in(struct batch *batch, const struct request *request, struct str namespace_name,
                  const char *action, const char *object_kind, struct str object_id,
                  struct str change, struct err *err);
int trail_note_id(struct batch *batch, const struct request *request, const char *action,
                  const char *object_kind, const struct uuid *id, struct str change,
                  struct err *err);
/* That it was refused, and why. */
int trail_note_refused(struct batch *batch, const struct request *request, const char *action,
                       const struct uuid *task_id, const struct err *why, struct err *err);
/* What the configuration of this node changed. */
int trail_note_configured(struct batch *batch, const char *action, const char *object_kind,
                          struct str object_id, struct err *err);
/* REQUEST_AUDIT: entries that others made, such as refusals at the door. */
int trail_apply(struct batch *batch, struct request *base);

/* Last in a transaction, before records are written. */
int trail_write(struct batch *batch, struct err *err);
void trail_committed(struct engine *engine, const struct batch *batch);

/* A key begins: it signs where the chain stands. */
int trail_adopt(struct batch *batch, struct log_part *part, bool *any, struct err *err);
/* The end of the chain that no record names yet; *any is false if there is none. Refuses an end
 * that was not made with the log key. */
int trail_unsigned(struct batch *batch, struct log_part *part, bool *any, struct err *err);
int trail_named(struct batch *batch, struct log_head *named, struct err *err); /* seq 0 = none is */
int trail_signed(struct batch *batch, const struct log_part *part, struct err *err);

/* Removes a chunk of the entries that are too old. *more: there may be more. */
int trail_prune(struct batch *batch, int64_t before_us, int64_t window_ms, bool *more,
                struct err *err);

#endif
