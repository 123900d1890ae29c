/* The audit trail (D18): what people and tokens changed outside the normal life of tasks, and what
 * was refused to them. Entries are one chain, made and proven like the lines of an execution
 * (logchain.h, logmac.h): each entry carries a hash over itself and the hash of the entry before,
 * and a code that only the log key makes. Pure; any thread. */
#ifndef CORE_LOG_AUDIT_H
#define CORE_LOG_AUDIT_H

#include "base/arena.h"
#include "core/access/principal.h"
#include "core/field.h"
#include "core/log/logmac.h"

#define AUDIT_CHANGE_BYTES_MAX (16 * 1024)
#define AUDIT_TEXT_BYTES_MAX 512 /* of any other text of an entry */
#define AUDIT_DONE "done"
#define AUDIT_REFUSED "refused"

struct audit_entry {
    int64_t seq;
    struct uuid id;
    int64_t at_us;
    struct str namespace_name; /* "*" = it concerns all of them */
    struct str principal;      /* principal_write_label */
    struct str token_id;       /* absent = it was no token */
    struct str address;        /* absent = unknown */
    struct str request_id;     /* absent = none was given */
    struct str action;         /* "queue.pause", "access.refused", … */
    struct str object_kind;
    struct str object_id;
    struct str change;         /* JSON: before and after; absent = nothing to show */
    struct str outcome;        /* AUDIT_DONE or AUDIT_REFUSED */
    struct str chain_hash, mac;
};

extern const struct field_table audit_table; /* alias u */

/* In place of an execution's id: the chain of the audit trail. No execution can have it. */
extern const struct uuid audit_chain;
bool audit_is_chain(const struct uuid *execution_id);

/* The entry as a line of its chain; text keeps what the line points to. -ERR_MEMORY. */
int audit_line(const struct audit_entry *entry, struct buf *text, struct log_line *line);
/* What proves the entry: where the chain stands with it. Of a damaged hash the head is not
 * hashed. */
void audit_note(const struct audit_entry *entry, struct log_note *note);
/* Of 16 bytes as struct caller has them; absent: the arena is full. */
struct str audit_address(const uint8_t bytes[16], struct arena *arena);
/* Fills what is known of the caller. Texts point to it or live in the arena. */
void audit_by(struct audit_entry *entry, const struct caller *caller, struct arena *arena);

void audit_render(struct buf *out, const struct audit_entry *entry);

#endif
