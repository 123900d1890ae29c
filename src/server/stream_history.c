/* Records one behind the other; the older half goes when there is no room. */
#include "server/stream_history.h"

#include "base/str.h"

#include <stdio.h>

static void read_record(const struct buf *records, size_t at, struct stream_record *record)
{
    memcpy(record, records->data + at, sizeof *record);
}

/* The first record at or behind a place. */
static size_t record_from(const struct buf *records, size_t place)
{
    struct stream_record record;
    size_t at = 0;

    while (at < records->len && at < place) {
        read_record(records, at, &record);
        at += record.bytes;
    }
    return at;
}

void stream_history_begin(struct stream_history *history, uint32_t epoch, uint64_t last)
{
    history->epoch = epoch;
    history->last = history->forgotten = last;
    history->records.max_bytes = STREAM_HISTORY_BYTES_MAX;
    buf_reset(&history->records);
}

void stream_history_add(struct stream_history *history, const struct buf *added, uint64_t last)
{
    struct buf *records = &history->records;
    size_t from = 0;
    struct stream_record record = {.number = history->last};

    for (size_t at = 0; at < added->len; at += record.bytes)
        read_record(added, at, &record);
    if (added->len > STREAM_HISTORY_BYTES_MAX / 2) {
        buf_reset(records);
        from = record_from(added, added->len - STREAM_HISTORY_BYTES_MAX / 2);
    } else if (records->len + added->len > STREAM_HISTORY_BYTES_MAX) {
        buf_drop_front(records, record_from(records, records->len / 2));
    }
    buf_append(records, added->data + from, added->len - from);
    if (records->failed || record.number != last) { /* no memory, or some did not come */
        buf_reset(records);
        records->failed = false;
    }
    history->last = last;
    history->forgotten = last;
    if (records->len) {
        read_record(records, 0, &record);
        history->forgotten = record.number - 1;
    }
}

void stream_history_id(const struct stream_history *history, char out[STREAM_ID_BYTES])
{
    snprintf(out, STREAM_ID_BYTES, "%08x-%llu", history->epoch,
             (unsigned long long)history->last);
}

bool stream_history_find(const struct stream_history *history, struct str id, size_t *at)
{
    char epoch[16];
    int64_t number;
    struct stream_record record;

    snprintf(epoch, sizeof epoch, "%08x-", history->epoch);
    if (!str_starts(id, str_of(epoch)) || !str_to_int64(str_span(id.data + 9, id.len - 9), &number))
        return false;
    if (number < 0 || (uint64_t)number < history->forgotten || (uint64_t)number > history->last)
        return false;
    for (*at = 0; *at < history->records.len; *at += record.bytes) {
        read_record(&history->records, *at, &record);
        if (record.number > (uint64_t)number)
            break;
    }
    return true;
}
