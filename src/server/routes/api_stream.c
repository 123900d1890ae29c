/* GET /v1/stream: changes of tasks as server-sent events. Notes come from the queue's thread into a
 * bounded buffer below a mutex; the loop hands them to the readers. A client that asks for them
 * also gets figures once a second. A reader that does not keep up misses events, of both kinds, and
 * learns how many as soon as it has room again (F-H18); one that takes nothing at all is dropped by
 * the connection. A reader that comes back with the id of the last event it saw gets the later
 * ones, or learns that they are gone; for that, events are kept for a while after the last reader
 * has left. */
#include "server/api.h"
#include "core/queue_name.h"
#include "server/door/tokens.h"
#include "server/figures/sampler.h"
#include "server/visibility.h"
#include "server/stream.h"
#include "server/stream_history.h"

#include "base/hash.h"
#include "core/render.h"
#include "core/task/search.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define READERS_MAX 1000
#define PENDING_BYTES_MAX ((size_t)4 << 20) /* about 20,000 events between two turns of the loop */
#define KEEP_ALIVE_US (15 * CLOCK_SECOND_US) /* proxies cut silent connections after a minute */
#define NOTE_ON_US (60 * CLOCK_SECOND_US) /* how long a reader may take to come back */
#define GAP_CHECK_US (CLOCK_SECOND_US / 4)
#define PIECE_BYTES ((size_t)8 * 1024) /* of events that are sent together: about 50 */
#define EVENT_BYTES_MAX ((size_t)8 * 1024) /* names of 200 bytes, escaped, and the rest */
#define EVENT_ROOM_BYTES 1024 /* for a gap notice and one event */
#define STATS_BYTES_MAX ((size_t)128 * 1024) /* 66 queues with names of 200 bytes, escaped */

/* A reader lives in its exchange's arena. */
struct stream_reader {
    struct stream_reader *next, **link;
    struct api_call *call;
    struct str within;      /* its namespace */
    struct str queue, type; /* absent = any; the full name of the queue */
    struct uuid task_id;    /* nil = any */
    bool stats;             /* figures, too */
    bool stats_only;        /* figures and no changes of tasks */
    int64_t missed;
    bool lost; /* it came back, and what happened meanwhile is gone */
};

struct stream {
    struct server *server;
    struct stream_reader *readers;
    atomic_uint readers_count;
    atomic_bool notes; /* events are noted: there are readers, or were a moment ago */
    int64_t note_until_us; /* without readers */
    struct stream_history history; /* the loop's */
    uint32_t stats_count;    /* of them, those that want figures */
    struct loop_timer *timer;
    struct buf taken;        /* the loop's */
    struct buf piece;        /* and this */
    pthread_mutex_t mutex;   /* below it the rest */
    struct buf pending;
    uint32_t epoch;
    uint64_t number;         /* of the last event */
    int64_t dropped;         /* did not fit into pending */
    bool posted;
    struct loop_item item;
};

static bool reader_wants(const struct stream_reader *reader, const struct stream_record *record,
                         const char *names)
{
    struct str queue = str_span(names, record->queue_len);

    if (reader->queue.data ? !str_eq(reader->queue, queue) : !queue_name_in(queue, reader->within))
        return false;
    if (reader->type.data &&
        !str_eq(reader->type, str_span(names + record->queue_len, record->type_len)))
        return false;
    if (call_has_user(reader->call) && record->user_len > 0 &&
        !str_eq(reader->call->principal->user_id,
                str_span(names + record->queue_len + record->type_len, record->user_len)))
        return false;
    return uuid_is_nil(&reader->task_id) || uuid_eq(&reader->task_id, &record->task_id);
}

/* True when nothing is owed to the reader any more. */
static bool tell_gap(struct stream_reader *reader)
{
    char text[96];

    if (reader->missed == 0 && !reader->lost)
        return true;
    if (http_stream_backlog(reader->call->exchange) > EVENT_ROOM_BYTES)
        return false; /* it would only miss the next ones */
    if (reader->lost)
        snprintf(text, sizeof text, "event: gap\ndata: {\"missed\":null}\n\n");
    else
        snprintf(text, sizeof text, "event: gap\ndata: {\"missed\":%lld}\n\n",
                 (long long)reader->missed);
    if (!http_stream_send(reader->call->exchange, str_of(text)))
        return false;
    reader->missed = 0;
    reader->lost = false;
    return true;
}

static void send_piece(struct stream *stream, struct stream_reader *reader, uint32_t *events)
{
    if (*events && (stream->piece.failed || !tell_gap(reader) ||
                    !http_stream_send(reader->call->exchange, buf_view(&stream->piece))))
        reader->missed += *events;
    buf_reset(&stream->piece);
    *events = 0;
}

/* Records, as far as the reader wants them. In pieces: one by one, the events of a busy queue
 * would cost a call of the system for each of them and each reader, and the loop serves others. */
static void hand_out(struct stream *stream, struct stream_reader *reader, const struct buf *records,
                     size_t at)
{
    struct stream_record record;
    uint32_t events = 0;

    for (; at < records->len; at += record.bytes) {
        const char *names = records->data + at + sizeof record;
        size_t head_len;

        memcpy(&record, records->data + at, sizeof record);
        if (!reader_wants(reader, &record, names))
            continue;
        head_len = sizeof record + record.queue_len + record.type_len +
                   record.user_len;
        if (stream->piece.len + record.bytes - head_len > PIECE_BYTES)
            send_piece(stream, reader, &events);
        buf_append(&stream->piece, records->data + at + head_len, record.bytes - head_len);
        events++;
    }
    send_piece(stream, reader, &events);
}

static void plan(struct stream *stream)
{
    int64_t delay_us = KEEP_ALIVE_US;

    for (const struct stream_reader *reader = stream->readers; reader; reader = reader->next)
        if (reader->missed || reader->lost)
            delay_us = GAP_CHECK_US;
    if (stream->readers || atomic_load_explicit(&stream->notes, memory_order_relaxed))
        loop_timer_set(stream->timer, delay_us);
    else
        loop_timer_stop(stream->timer);
}

/* Changes that were not noted have no known numbers: earlier ids must not pass for later ones. */
static void begin_notes(struct stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    hash_random(&stream->epoch, sizeof stream->epoch);
    stream_history_begin(&stream->history, stream->epoch, stream->number);
    buf_reset(&stream->pending);
    stream->dropped = 0;
    pthread_mutex_unlock(&stream->mutex);
    atomic_store(&stream->notes, true);
}

static void end_notes(struct stream *stream)
{
    atomic_store(&stream->notes, false);
    buf_deinit(&stream->history.records);
    stream->history.records = BUF_INIT(STREAM_HISTORY_BYTES_MAX);
}

static void run_pending(struct loop_item *item)
{
    struct stream *stream = (struct stream *)(void *)((char *)item - offsetof(struct stream, item));
    struct buf swap = stream->taken;
    uint64_t number;
    int64_t dropped;

    pthread_mutex_lock(&stream->mutex);
    stream->taken = stream->pending;
    stream->pending = swap;
    number = stream->number;
    dropped = stream->dropped;
    stream->dropped = 0;
    stream->posted = false;
    pthread_mutex_unlock(&stream->mutex);
    for (struct stream_reader *reader = stream->readers; reader; reader = reader->next) {
        if (reader->stats_only)
            continue;
        hand_out(stream, reader, &stream->taken, 0);
        reader->missed += dropped;
    }
    if (atomic_load_explicit(&stream->notes, memory_order_relaxed))
        stream_history_add(&stream->history, &stream->taken, number);
    buf_reset(&stream->taken);
    plan(stream);
}

/* With the id to come back with: who wants few events would have an old one. */
static void send_id(struct stream *stream, struct stream_reader *reader, const char *words)
{
    char id[STREAM_ID_BYTES];
    char text[96];

    stream_history_id(&stream->history, id);
    snprintf(text, sizeof text, "%sid: %s\n\n", words, id);
    http_stream_send(reader->call->exchange, str_of(text));
}

static void keep_alive(void *ctx)
{
    struct stream *stream = ctx;

    if (!stream->readers && clock_boot_us() >= stream->note_until_us)
        end_notes(stream);
    for (struct stream_reader *reader = stream->readers; reader; reader = reader->next)
        if (tell_gap(reader))
            send_id(stream, reader, ": keep-alive\n");
    plan(stream);
}

bool stream_wants_stats(const struct stream *stream)
{
    return stream->stats_count > 0;
}

void stream_stats(struct stream *stream)
{
    struct buf all = BUF_INIT(STATS_BYTES_MAX), one = BUF_INIT(STATS_BYTES_MAX);
    struct str written = STR_NONE;

    for (struct stream_reader *reader = stream->readers; reader; reader = reader->next) {
        const struct buf *event = &one;

        if (!reader->stats)
            continue;
        if (!reader->queue.data && str_eq(reader->within, written) && all.len > 0) {
            event = &all; /* of the same namespace as the one before */
        } else if (reader->queue.data) {
            buf_reset(&one);
            sampler_write_second(stream->server, STR_NONE, reader->queue, &one);
        } else {
            buf_reset(&all);
            written = reader->within;
            sampler_write_second(stream->server, sampler_within(reader->call), STR_NONE, &all);
            event = &all;
        }
        if (event->failed || !tell_gap(reader) ||
            !http_stream_send(reader->call->exchange, buf_view(event)))
            reader->missed++;
    }
    buf_deinit(&all);
    buf_deinit(&one);
    plan(stream);
}

static void write_note(struct stream *stream, struct buf *out, const struct task_note *note)
{
    struct stream_record record = {.task_id = note->id, .number = stream->number,
                                   .queue_len = (uint16_t)note->queue.len,
                                   .type_len = (uint16_t)note->type.len,
                                   .user_len = (uint16_t)note->user_id.len};
    size_t start = out->len;

    buf_append(out, &record, sizeof record);
    buf_str(out, note->queue);
    buf_str(out, note->type);
    buf_str(out, note->user_id);
    buf_format(out, "id: %08x-%llu\nevent: task\ndata: {", stream->epoch,
               (unsigned long long)stream->number);
    render_uuid(out, "id", &note->id);
    render_text(out, "status", str_of(status_word(note->status)));
    render_text(out, "queue", queue_name_plain(note->queue));
    render_text(out, "type", note->type);
    render_int(out, "progress", note->progress);
    render_int(out, "version", note->version);
    buf_text(out, "}\n\n");
    if (out->failed) { /* whole events only */
        out->len = start;
        return;
    }
    record.bytes = (uint32_t)(out->len - start);
    memcpy(out->data + start, &record, sizeof record);
}

void stream_notes(struct stream *stream, const struct task_note *notes, uint32_t count)
{
    bool post;

    if (!atomic_load_explicit(&stream->notes, memory_order_relaxed) || count == 0)
        return;
    pthread_mutex_lock(&stream->mutex);
    for (uint32_t i = 0; i < count; i++) {
        stream->number++;
        if (!stream->pending.failed)
            write_note(stream, &stream->pending, &notes[i]);
        if (stream->pending.failed)
            stream->dropped++;
    }
    post = !stream->posted;
    stream->posted = true;
    pthread_mutex_unlock(&stream->mutex);
    if (post)
        loop_post(stream->server->loop, &stream->item);
}

static void end_reader(struct stream_reader *reader)
{
    struct api_call *call = reader->call;

    *reader->link = reader->next;
    if (reader->next)
        reader->next->link = reader->link;
    atomic_fetch_sub(&call->server->stream->readers_count, 1);
    call->server->stream->stats_count -= reader->stats;
    call->server->stream->note_until_us = clock_boot_us() + NOTE_ON_US;
    plan(call->server->stream);
    call_ended(call, 200);
    http_stream_end(call->exchange);
}

static void reader_left(void *ctx)
{
    end_reader(ctx);
}

/* The event says why: a client must not take it for a lost connection and come back with the same
 * token. */
void stream_end_credentials(struct stream *stream, int64_t now_us)
{
    struct stream_reader *next;

    for (struct stream_reader *reader = stream->readers; reader; reader = next) {
        struct api_call *call = reader->call;
        const char *ended = token_ended(call->credential.token, call->principal, now_us);
        char text[96];

        next = reader->next;
        if (!ended)
            continue;
        snprintf(text, sizeof text, "event: end\ndata: {\"reason\":\"token_%s\"}\n\n", ended);
        http_stream_send(call->exchange, str_of(text));
        end_reader(reader);
    }
}

static int check_reader(struct api_call *call, struct stream_reader *reader)
{
    struct stream *stream = call->server->stream;

    if (call->server->stopping)
        return err_set(&call->err, ERR_UNAVAILABLE, "the server is stopping; try again");
    if (stream_readers(stream) >= READERS_MAX)
        return err_set(&call->err, ERR_UNAVAILABLE, "%d streams are open already; try again later",
                       READERS_MAX);
    reader->call = call;
    reader->queue = call_parameter(call, "queue");
    reader->type = call_parameter(call, "type");
    reader->stats = call_parameter(call, "stats").data != NULL;
    reader->stats_only = str_is(call_parameter(call, "stats"), "only");
    if (reader->stats && !reader->stats_only && !str_is(call_parameter(call, "stats"), "1"))
        return err_set_field(&call->err, ERR_INVALID, "stats", "stats is 1, only, or left out");
    if (reader->stats)
        TRY(principal_check_all_users(call->principal, &call->err));
    TRY(search_read_exact("queue", &reader->queue, &call->err));
    TRY(search_read_exact("type", &reader->type, &call->err));
    reader->within = arena_str(call->arena, call_namespace(call));
    if (reader->queue.data)
        TRY(queue_name_enter(reader->within, &reader->queue, call->arena, &call->err));
    return call_parameter_uuid(call, "task_id", &reader->task_id);
}

/* The first words: what happened since the event it comes with, and the id to come back with. */
static void welcome(struct stream *stream, struct stream_reader *reader)
{
    struct str seen = http_header(reader->call->request, "Last-Event-ID");
    size_t at = 0;

    if (seen.len > 0 && !reader->stats_only) {
        if (stream_history_find(&stream->history, seen, &at))
            hand_out(stream, reader, &stream->history.records, at);
        else
            reader->lost = true;
    }
    if (tell_gap(reader))
        send_id(stream, reader, "retry: 2000\n");
}

int api_stream(struct api_call *call)
{
    struct stream *stream = call->server->stream;
    struct stream_reader *reader = CALL_NEW(call, sizeof *reader);

    TRY(check_reader(call, reader));
    http_stream_begin(call->exchange, "text/event-stream");
    if (call->request->method == HTTP_HEAD) {
        call_ended(call, 200);
        http_stream_end(call->exchange);
        return 0;
    }
    reader->next = stream->readers;
    reader->link = &stream->readers;
    if (stream->readers)
        stream->readers->link = &reader->next;
    stream->readers = reader;
    atomic_fetch_add(&stream->readers_count, 1);
    stream->stats_count += reader->stats;
    if (!atomic_load_explicit(&stream->notes, memory_order_relaxed))
        begin_notes(stream);
    welcome(stream, reader);
    http_on_gone(call->exchange, reader_left, reader);
    plan(stream);
    if (reader->stats)
        sampler_hurry(call->server->sampler);
    return 0;
}

uint32_t stream_readers(const struct stream *stream)
{
    return atomic_load_explicit(&stream->readers_count, memory_order_relaxed);
}

struct stream *stream_open(struct server *server, struct err *err)
{
    struct stream *stream = calloc(1, sizeof *stream);

    if (stream)
        stream->timer = loop_timer_new(server->loop, keep_alive, stream);
    if (!stream || !stream->timer) {
        free(stream);
        err_no_memory(err);
        return NULL;
    }
    stream->server = server;
    stream->item.run = run_pending;
    stream->pending = stream->taken = BUF_INIT(PENDING_BYTES_MAX);
    stream->piece = BUF_INIT(PIECE_BYTES + EVENT_BYTES_MAX);
    stream->history.records = BUF_INIT(STREAM_HISTORY_BYTES_MAX);
    pthread_mutex_init(&stream->mutex, NULL);
    return stream;
}

void stream_stop(struct stream *stream)
{
    while (stream->readers)
        end_reader(stream->readers);
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    loop_timer_free(stream->timer);
    buf_deinit(&stream->pending);
    buf_deinit(&stream->taken);
    buf_deinit(&stream->piece);
    buf_deinit(&stream->history.records);
    pthread_mutex_destroy(&stream->mutex);
    free(stream);
}
