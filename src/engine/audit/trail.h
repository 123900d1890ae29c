/* The audit trail (trail.c): what callers change is noted while it is decided and written last in
 * the same transaction. What a request of the program itself changes is not noted. Belongs to the
 * thread that has the turn (inbox.c). */
#ifndef ENGINE_AUDIT_TRAIL_H
#define ENGINE_AUDIT_TRAIL_H

#include "core/log/audit.h"

struct batch;
struct engine;
struct request;

struct trail {
    struct log_head head; /* of the newest entry this writer made; seq 0 = none yet */
};

/* What the caller of a request did to an object; change may be absent. */
int trail_note(struct batch *batch, const struct request *request, const char *action,
               const char *object_kind, struct str object_id, struct str change, struct err *err);
/* The same in a namespace that is not the request's; "*" = it concerns all of them. */
int trail_note_in(struct batch *batch, const struct request *request, struct str namespace_name,
                  const char *action, const char *object_kind, struct str object_id,
                  struct str change, struct err *err);
int trail_note_id(struct batch *batch, const struct request *request, const char *action,
                  const char *object_kind, const struct uuid *id, struct str change,
                  struct err *err);
/* REQUEST_AUDIT: entries that others made, such as refusals at the door. */
int trail_apply(struct batch *batch, struct request *base);

/* Last in a transaction, before records are written. */
int trail_write(struct batch *batch, struct err *err);
void trail_committed(struct engine *engine, const struct batch *batch);

/* What of the chain no record names yet: *any is false where there is nothing. An end that was not
 * made with the log key is refused. */
int trail_unsigned(struct batch *batch, struct log_part *head, bool *any, struct err *err);
int trail_signed(struct batch *batch, const struct log_part *head, struct err *err);

/* Removes entries that are too old, a chunk of them. *more: there may be others. */
int trail_prune(struct batch *batch, int64_t before_us, int64_t window_ms, bool *more,
                struct err *err);

#endif
