/* Signed records about logs (log_heads.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_LOGS_LOG_HEADS_H
#define ENGINE_LOGS_LOG_HEADS_H

#include "base/hash.h"
#include "base/sign.h"
#include "base/uuid7.h"
#include "engine/audit/trail.h"
#include "engine/logs/anchor_file.h"

struct anchor_writer;
struct batch;
struct engine;
struct err;
struct log_mac;
struct sign_key;

/* Why lines of logs are removed. */
enum cut_reason { CUT_DELETE, CUT_RETENTION, CUT_PURGE, CUT_REASON_COUNT };

/* Records about logs and the audit trail (log_heads.c). */
struct log_heads {
    int64_t next_us;      /* when the next one is due; INT64_MAX = no line waits for one */
    struct sign_key *key; /* NULL = not loaded yet, or there is none */
    struct log_mac *mac;  /* of the key */
    struct log_memory *memory; /* of the lines that this node wrote; the first writer's */
    struct trail trail;   /* the audit trail */
    bool ready;           /* the first record is there, and the store has the key's code */
    int64_t begin;        /* records before this one are of the time before the key, ... */
    int64_t since_us;     /* ... which ended then */
    struct uuid doubted;  /* the execution that the log named last */
    bool key_missed;      /* the log says that there is none */
    char newest[HASH_HEX_BYTES + 1]; /* the record this node wrote or checked last */
    struct anchor_writer *writer;    /* of the anchor file; NULL = there is none */
    int64_t strange;                 /* a row that was kept out of it; 0 = the log named none */
    bool regressed;                  /* the file was ahead of the store at the start, ... */
    struct anchor_file_end ahead;    /* ... this far */
    uint8_t file_key[SIGN_PUBLIC_BYTES]; /* the file's last record named it then */
};

/* signed records about logs */
int log_heads_open(struct engine *engine, struct err *err);
void log_heads_begin(struct batch *batch);
void log_heads_reason(struct batch *batch, enum cut_reason reason); /* of what is removed now */
void log_heads_note(struct batch *batch);                           /* lines were written */
/* Loads the key and makes the first record; called before lines are written or stored ones
 * trusted. */
int log_heads_ready(struct batch *batch, struct err *err);
int log_heads_write(struct batch *batch, bool timers, struct err *err); /* last in a transaction */
void log_heads_trim(struct batch *batch, int64_t before_us); /* records older than logs are kept */
void log_heads_committed(struct engine *engine, const struct batch *batch);
void log_heads_forget(struct engine *engine); /* the store may lack the last of what it knows */
int log_heads_stop(struct engine *engine, struct err *err);
void log_heads_close(struct engine *engine);

#endif
