/* Recomputes the chains of all logs and compares them with what signed records say (D9, F-J5 to
 * F-J8, V7). Fed in this order: lines of the anchor file, records of the store by serial, heads
 * that wait for their record, then all log lines by execution and seq. Pure: it reads nothing
 * itself. One thread. */
#ifndef CORE_LOG_LOGVERIFY_H
#define CORE_LOG_LOGVERIFY_H

#include "core/log/loganchor.h"
#include "core/log/logmac.h"

#define LOGVERIFY_KEYS_MAX 8
#define LOGVERIFY_HEADS_MAX 100000000u /* 16 GB of them */

struct logverify;

struct logverify_finding {
    const char *kind; /* "log", "anchor" or "regression" */
    struct str subject;
    struct str detail;
    const struct uuid *execution_id; /* whose line it is; NULL = it is of a record */
};

struct logverify_options {
    /* Keys that are trusted, from outside the store; count 0: the store's own word is taken, and
     * where it has none the key of the first record. */
    uint8_t keys[LOGVERIFY_KEYS_MAX][SIGN_PUBLIC_BYTES];
    uint32_t keys_count;
    bool has_key;         /* the store says that it has one: there are records signed by it */
    uint8_t key[SIGN_PUBLIC_BYTES];
    int64_t since_us;     /* lines from before may lack hashes and records; 0 = none. Only where no
                             record says it: this is the store's own word */
    struct log_mac *mac;  /* of the key, where it is known; NULL = notes cannot be checked, */
    int64_t fresh_us;     /* and count only for lines written from then on, */
    int64_t ahead_us;     /* and until then: no line of tomorrow waits for a record; 0 = any time */
    void (*tell)(void *ctx, const struct logverify_finding *finding);
    void *ctx;
};

struct logverify_counts {
    int64_t lines;
    int64_t emptied;        /* of the lines */
    int64_t adopted;        /* from before the key: only as good as the key found them */
    int64_t waiting;        /* not in a record yet, and there was no key to check them */
    int64_t executions;
    int64_t records;        /* in the store */
    int64_t unsigned_records;
    int64_t anchor_records; /* in the file */
    int64_t findings;
};

/* NULL: out of memory. */
struct logverify *logverify_new(const struct logverify_options *options);
void logverify_free(struct logverify *verify);

void logverify_anchor_line(struct logverify *verify, struct str line);
void logverify_record(struct logverify *verify, const struct anchor_row *row);
void logverify_note(struct logverify *verify, const struct log_note *note);
void logverify_line(struct logverify *verify, const struct log_line *line, struct str chain_hash);
/* After the last line; -ERR_MEMORY or -ERR_TOO_LARGE when not everything could be looked at. */
int logverify_end(struct logverify *verify, struct logverify_counts *counts, struct err *err);

#endif
