/* The last events of /v1/stream, so that a reader that comes back gets what it missed. Events are
 * numbered from 1 on within an epoch; "EPOCH-NUMBER" is the id that readers see. Pure; loop
 * thread. */
#ifndef SERVER_STREAM_HISTORY_H
#define SERVER_STREAM_HISTORY_H

#include "base/buf.h"
#include "base/uuid7.h"

#define STREAM_HISTORY_BYTES_MAX ((size_t)1 << 20) /* about 4,000 events */
#define STREAM_ID_BYTES 40

/* An event in a buffer: this head, queue, type and user as they are, then the text that is sent. */
struct stream_record {
    struct uuid task_id;
    uint64_t number;
    uint32_t bytes; /* with the head */
    uint16_t queue_len;
    uint16_t type_len;
    uint16_t user_len; /* 0 = it has no owner */
};

struct stream_history {
    uint32_t epoch;
    uint64_t last;      /* number of the newest event there was */
    uint64_t forgotten; /* of the newest that is no longer here */
    struct buf records;
};

/* A new epoch: ids of before mean nothing any more. */
void stream_history_begin(struct stream_history *history, uint32_t epoch, uint64_t last);
/* Records in their order; `last` may be higher than theirs: the rest did not come. */
void stream_history_add(struct stream_history *history, const struct buf *records, uint64_t last);
void stream_history_id(const struct stream_history *history, char out[STREAM_ID_BYTES]);
/* The records behind the event with that id: true, and *at is where they begin. False: some of them
 * are not here, or the id is none of this epoch. */
bool stream_history_find(const struct stream_history *history, struct str id, size_t *at);

#endif
