/* What the files about records of logs share: log_heads.c, log_key.c, log_sign.c, log_adopt.c,
 * log_recall.c, log_trim.c, anchor_export.c.
 * Runs on the thread that has the turn. */
#ifndef ENGINE_LOGS_LOG_HEADS_INT_H
#define ENGINE_LOGS_LOG_HEADS_INT_H

#include "engine/batch.h"
#include "engine/engine_state.h"

#define LOG_PATH_BYTES 4096

/* What the records of one transaction have in common. */
struct pen {
    const struct sign_key *key; /* NULL = they are not signed */
    bool foreign;               /* the newest record is gone or not by our key */
    bool adopts;                /* what is there was written before our key was, ... */
    bool again;                 /* ... and adopted by its time, by an older version */
    int64_t since_us;           /* lines from before are taken as they were found, */
    int64_t begin;              /* and named behind this record; 0 = they are not */
    struct anchor_row last;     /* the record before, */
    struct anchor before;       /* and what it says */
    struct buf text;
};

int pen_take(struct batch *batch, struct pen *pen, struct err *err);
int pen_write(struct batch *batch, struct pen *pen, struct anchor *anchor,
              const struct log_part *items, uint32_t count, struct err *err);
/* As many records as it takes. */
int pen_write_parts(struct batch *batch, struct pen *pen, enum anchor_kind kind,
                    struct str reason, const struct log_part *items, uint32_t count,
                    struct err *err);
/* log_key.c */
int log_key_take(struct batch *batch, struct pen *pen, struct err *err); /* the one to sign with */
/* Fills in the record's content if our key signed it; without a key every record is accepted. */
bool log_record_trusted(const struct log_heads *heads, const struct anchor_row *row,
                        struct anchor *anchor);
void log_tell_foreign(struct engine *engine, int64_t serial); /* such a record is none of ours */
/* waits: the store has a key and this process does not; whatever can wait for it waits. */
int log_key_look(struct batch *batch, bool *waits, struct err *err);
/* log_sign.c: chains that continued, checked and signed */
struct log_taken {
    struct log_note *notes;
    struct log_part *parts; /* the lines that come with each */
    uint32_t count;
};
int log_sign_heads(struct batch *batch, struct pen *pen, const struct log_taken *taken,
                   struct err *err);
int log_sign_cuts(struct batch *batch, struct pen *pen, struct err *err);
/* log_recall.c: what this node wrote and these parts do not name */
int log_recall(struct batch *batch, const struct log_part *const *named, const uint32_t *counts,
               uint32_t lists, struct err *err);
/* log_adopt.c: signs all there is */
int log_adopt(struct batch *batch, struct pen *pen, struct err *err);
void log_tell_doubt(struct batch *batch);
/* log_trim.c */
int log_trim(struct batch *batch, struct err *err);
/* anchor_export.c */
int anchor_export_open(struct engine *engine, struct err *err);
void anchor_export(struct engine *engine,
                   int64_t now_us);             /* after a commit that may have records */
void anchor_export_stop(struct engine *engine); /* all of it, as far as the file system lets us */
void anchor_export_close(struct engine *engine);

#endif
