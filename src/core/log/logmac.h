/* What the store notes of a chain between its lines and its records (table log_heads), and the code
 * (HMAC) that only the log key makes of it. An attacker who writes to the store cannot make such a
 * note without the key, so no server continues or signs his lines (D9, F-J5). The code covers the
 * line that the noted lines follow, so notes of one chain do not fit another. Pure. */
#ifndef CORE_LOG_LOGMAC_H
#define CORE_LOG_LOGMAC_H

#include "base/sign.h"
#include "core/log/logchain.h"

#define LOGMAC_HEX_BYTES HASH_HEX_BYTES

/* In place of how an execution ended: the lines up to there were removed; the chain continues. */
#define LOG_NOTE_CUT "cut"
/* The same of the audit trail, which never ends: a record names its entries up to there. */
#define LOG_NOTE_NAMED "named"
/* What a request made the row of a namespace say; of no execution (log_namespaces.c). */
#define LOG_NOTE_NAMESPACE "namespace"

struct log_note {
    struct log_part part;     /* where the chain stands; lines that no record names yet */
    struct uuid task_id;      /* of its execution, */
    struct str task_type;     /* and what type that is: retention goes by it */
    int64_t logged_at_us;     /* of the line at which it stands */
    struct str closed;        /* how the execution ended, once that is signed; else empty */
    char mac[LOGMAC_HEX_BYTES + 1]; /* "" = none */
    struct str ended;         /* how it has ended by now; absent = it is under way */
};

/* The newest line of an execution as it is stored, and the note of it if there is one. */
struct log_last {
    struct uuid execution_id;
    int64_t seq; /* 0 = there is no line */
    struct str chain_hash;
    int64_t logged_at_us;
    bool lost; /* lines that this process wrote are not among those before it */
    bool noted;
    struct log_note note;
};

/* The code of one key. NULL: out of memory. Belongs to one thread. */
struct log_mac;
struct log_mac *logmac_new(const struct sign_key *key);
void logmac_free(struct log_mac *mac);

/* -ERR_MEMORY; -ERR_INVALID for a type longer than any. */
int logmac_make(struct log_mac *mac, const struct log_note *note, char out[LOGMAC_HEX_BYTES + 1]);
bool logmac_good(struct log_mac *mac, const struct log_note *note);

/* Is the newest line the one that a note by the key names? */
bool logmac_trusts(struct log_mac *mac, const struct log_last *last);
/* Was it there before the key was (since_us, 0 = nothing was)? By its time, which an attacker can
 * set: only for stores of versions that left such lines without a note. */
bool logmac_adopted(const struct uuid *execution_id, int64_t logged_at_us, int64_t since_us);

#endif
