/* What the files about records of logs share: log_heads.c, log_key.c, log_trim.c, anchor_export.c.
 * Belongs to whoever has the turn. */
#ifndef QUEUE_LOG_HEADS_INT_H
#define QUEUE_LOG_HEADS_INT_H

#include "queue/queue_int.h"

#define LOG_PATH_BYTES 4096

/* What the records of one transaction have in common. */
struct pen {
    const struct sign_key *key; /* NULL = they are not signed */
    bool foreign;               /* the newest record is gone or not by our key */
    struct anchor_row last;     /* the record before, */
    struct anchor before;       /* and what it says */
    struct buf text;
};

/* log_heads.c */
int log_no_memory(struct err *err);
int pen_take(struct batch *batch, struct pen *pen, struct err *err);
int pen_write(struct batch *batch, struct pen *pen, struct anchor *anchor,
              const struct log_part *items, uint32_t count, struct err *err);
/* log_key.c */
int log_key_take(struct batch *batch, struct pen *pen, struct err *err); /* the one to sign with */
/* *waits: the store has a key, and we do not; what can wait for it does. */
int log_key_look(struct batch *batch, bool *waits, struct err *err);
/* log_trim.c */
int log_trim(struct batch *batch, struct err *err);
/* anchor_export.c */
int anchor_export_open(struct queue *queue, struct err *err);
void anchor_export(struct queue *queue, int64_t now_us); /* after a commit that may have records */
void anchor_export_stop(struct queue *queue); /* all of it, as far as the file system lets us */
void anchor_export_close(struct queue *queue);

#endif
