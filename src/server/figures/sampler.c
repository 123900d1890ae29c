/* Looks at the queue while the server runs: every step for the history (GET /v1/stats/history), and
 * every second while a client follows (GET /v1/stream?stats=1). How many tasks there are is read
 * from the store, on a reader's thread, so that no number of queues and types holds up the queue;
 * what it did comes from its measures. At most one read is under way; one that fails leaves a gap.
 * Loop thread, but for read_counts. */
#include "server/api.h"
#include "core/queue_name.h"
#include "server/figures/sampler.h"
#include "server/stream.h"

#include "core/render.h"
#include "store/measure_store.h"

#include <stdlib.h>

#define EARLY_US (10 * CLOCK_MS_US) /* timers may come a little early */

struct sampler {
    struct server *server;
    struct history *history;
    struct loop_timer *timer;
    int64_t wall_us, boot_us;    /* at the start: time continues from there, whatever the wall
                                  * does */
    struct reader_job job;
    struct arena arena;          /* of what is under way */
    struct queue_count *rows;    /* as they were read; NULL = they could not be */
    uint32_t rows_count;
    bool under_way;
    bool was_read;               /* the second before was sent, too */
    struct measured *now;
    struct measured *second;     /* a second ago */
    struct measured *open;       /* for one who asks for the step under way */
    struct history_now *counts;  /* by queue; NULL = not known */
    uint32_t counts_count;
    struct map by_queue;
};

static int64_t time_us(const struct sampler *sampler)
{
    return sampler->wall_us + clock_boot_us() - sampler->boot_us;
}

/* The next second while a client follows, else the next step. */
static void plan(struct sampler *sampler)
{
    int64_t every_us = stream_wants_stats(sampler->server->stream) ? CLOCK_SECOND_US
                                                                   : HISTORY_STEP_US;

    loop_timer_set(sampler->timer, every_us - time_us(sampler) % every_us + EARLY_US);
}

void sampler_hurry(struct sampler *sampler)
{
    plan(sampler);
}

/* ---- what is sent every second ---- */

/* now NULL: what it did is not known. */
static void write_queue(struct buf *out, struct str name, const struct history_now *counts,
                        const struct measured_queue *now, const struct measured_queue *before,
                        bool first)
{
    static const struct {
        const char *word;
        enum measure_count what, also;
    } figures[] = {{"completed", MEASURE_COMPLETED, MEASURE_COUNTS},
                   {"failed", MEASURE_FAILED, MEASURE_DEAD_LETTER},
                   {"enqueued", MEASURE_ENQUEUED, MEASURE_COUNTS}};

    buf_text(out, first ? "{" : ",{");
    render_text(out, "queue", queue_name_plain(name));
    render_int(out, "waiting", counts->waiting);
    render_int(out, "running", counts->running);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        int64_t figure = now ? now->counts[figures[i].what] - before->counts[figures[i].what] : 0;

        if (now && figures[i].also != MEASURE_COUNTS)
            figure += now->counts[figures[i].also] - before->counts[figures[i].also];
        if (now)
            render_int(out, figures[i].word, figure);
        else
            render_json(out, figures[i].word, STR_NONE);
    }
    buf_byte(out, '}');
}

static const struct history_now *counts_of(const struct sampler *sampler, struct str name)
{
    static const struct history_now none = {0};

    const struct history_now *counts = map_get(&sampler->by_queue, name);

    return counts ? counts : &none;
}

static bool is_measured(struct sampler *sampler, struct str name)
{
    return measured_queue(sampler->now, name) != &sampler->now->queues[0];
}

/* Queues in which nothing happened since the start, but where tasks are; those beyond the bound are
 * summed up. */
static void write_quiet(struct sampler *sampler, struct str within, struct history_now *others,
                        bool *first, struct buf *out)
{
    static const struct measured_queue none = {0};
    uint32_t shown = sampler->now->queues_count - 1;

    for (uint32_t i = 0; i < sampler->counts_count; i++) {
        const struct history_now *counts = &sampler->counts[i];

        if (counts->waiting + counts->running == 0 || is_measured(sampler, counts->queue) ||
            (within.data && !queue_name_in(counts->queue, within)))
            continue;
        if (!measure_is_other(counts->queue) && shown++ < HISTORY_QUEUES_MAX) {
            write_queue(out, counts->queue, counts, &none, &none, *first);
            *first = false;
            continue;
        }
        others->waiting += counts->waiting;
        others->running += counts->running;
    }
}

static void write_measured(struct sampler *sampler, const struct measured_queue *now, bool first,
                           struct buf *out)
{
    static const struct measured_queue none = {0};
    const struct measured_queue *before = measured_queue(sampler->second, now->name);

    write_queue(out, now->name, counts_of(sampler, now->name), now,
                before->name.data ? before : &none, first);
}

/* A queue without changes did nothing; a queue without a place has no figures. */
static void write_one(struct sampler *sampler, struct str name, struct buf *out)
{
    static const struct measured_queue none = {0};
    const struct measured_queue *now = measured_queue(sampler->now, name);
    const struct history_now *counts = counts_of(sampler, name);
    bool known = sampler->now->queues_count < MEASURE_QUEUES_ALL && !measure_is_other(name);

    if (now != &sampler->now->queues[0])
        write_measured(sampler, now, true, out);
    else if (counts->waiting + counts->running)
        write_queue(out, name, counts, known ? &none : NULL, &none, true);
}

static bool has_done(const struct measured_queue *queue)
{
    for (int what = 0; what < MEASURE_COUNTS; what++)
        if (queue->counts[what])
            return true;
    return false;
}

static void write_all(struct sampler *sampler, struct str within, struct buf *out)
{
    const struct measured_queue *rest = &sampler->now->queues[0];
    struct history_now others = {0};
    bool first = true;

    for (uint32_t i = 1; i < sampler->now->queues_count; i++) {
        if (within.data && !queue_name_in(sampler->now->queues[i].name, within))
            continue;
        write_measured(sampler, &sampler->now->queues[i], first, out);
        first = false;
    }
    write_quiet(sampler, within, &others, &first, out);
    if (others.waiting || others.running || (!within.data && has_done(rest)))
        write_queue(out, STR("*"), &others, within.data ? NULL : rest,
                    &sampler->second->queues[0], first);
}

/* Only of one queue when it is named. */
void sampler_write_second(struct server *server, struct str within, struct str only,
                          struct buf *out)
{
    struct sampler *sampler = server->sampler;

    buf_text(out, "event: stats\ndata: {");
    render_time(out, "at", time_us(sampler));
    buf_text(out, ",\"queues\":[");
    if (only.data)
        write_one(sampler, only, out);
    else
        write_all(sampler, within, out);
    buf_text(out, "]}\n\n");
}

/* ---- looking ---- */

static void add_row(struct history_now *counts, const struct queue_count *row)
{
    if (row->status == STATUS_PENDING || row->status == STATUS_DELAYED ||
        row->status == STATUS_BLOCKED)
        counts->waiting += row->tasks;
    else if (row->status == STATUS_CLAIMED || row->status == STATUS_RUNNING)
        counts->running += row->tasks;
    else if (row->status == STATUS_DEAD_LETTER)
        counts->dead += row->tasks;
}

/* A queue has a row per status, and of every store it has tasks in. */
static void take_counts(struct sampler *sampler)
{
    sampler->counts_count = 0;
    sampler->counts = sampler->rows ? arena_alloc_array(&sampler->arena, sampler->rows_count + 1,
                                                        sizeof *sampler->counts)
                                    : NULL;
    for (uint32_t i = 0; sampler->counts && i < sampler->rows_count; i++) {
        const struct queue_count *row = &sampler->rows[i];
        struct history_now *counts = map_get(&sampler->by_queue, row->queue);

        if (!counts) {
            counts = &sampler->counts[sampler->counts_count++];
            counts->queue = row->queue;
            if (map_put(&sampler->by_queue, row->queue, counts) < 0)
                sampler->counts = NULL;
        }
        if (sampler->counts)
            add_row(counts, row);
    }
}

static void look_at_queue(struct sampler *sampler)
{
    struct measured *swap = sampler->second;
    bool read = stream_wants_stats(sampler->server->stream);

    sampler->second = sampler->now;
    sampler->now = swap;
    memset(sampler->now, 0, sizeof *sampler->now);
    engine_measure(sampler->server->engine, sampler->now);
    take_counts(sampler);
    history_add(sampler->history, time_us(sampler), sampler->now, sampler->counts,
                sampler->counts_count);
    if (read && sampler->was_read && sampler->counts)
        stream_stats(sampler->server->stream);
    sampler->was_read = read;
}

static void sampled(struct reader_job *job)
{
    struct sampler *sampler =
        (struct sampler *)(void *)((char *)job - offsetof(struct sampler, job));

    sampler->under_way = false;
    if (!sampler->server->stopping)
        look_at_queue(sampler);
    map_deinit(&sampler->by_queue);
    sampler->counts = NULL;
    sampler->counts_count = 0;
    arena_reset(&sampler->arena);
    server_work_ended(sampler->server);
}

/* On a reader's thread. */
static void read_counts(struct reader_job *job, struct store_reader *reader, struct arena *scratch)
{
    struct sampler *sampler =
        (struct sampler *)(void *)((char *)job - offsetof(struct sampler, job));
    struct err err = {0};

    (void)scratch; /* what is read is needed on the loop */
    if (sampler->server->store->verbs->measures->read_counts(reader, &sampler->arena,
                                                             &sampler->rows, &sampler->rows_count,
                                                             &err) < 0)
        sampler->rows = NULL;
    else if (sampler->rows_count == 0)
        sampler->rows = arena_alloc(&sampler->arena, sizeof *sampler->rows); /* known: none */
}

static void tick(void *ctx)
{
    struct sampler *sampler = ctx;
    struct server *server = sampler->server;

    if (server->stopping)
        return;
    plan(sampler);
    if (sampler->under_way || (!stream_wants_stats(server->stream) &&
                               !history_is_due(sampler->history, time_us(sampler))))
        return;
    sampler->under_way = true;
    server->calls_open++;
    sampler->rows = NULL;
    sampler->job.run = read_counts;
    sampler->job.done = sampled;
    if (!readers_submit(server->readers, READERS_SHORT, &sampler->job))
        sampled(&sampler->job); /* too many read: a gap */
}

/* ---- its life ---- */

struct sampler *sampler_open(struct server *server, struct err *err)
{
    struct sampler *sampler = calloc(1, sizeof *sampler);

    if (!sampler)
        goto failed;
    sampler->server = server;
    sampler->wall_us = clock_wall_us();
    sampler->boot_us = clock_boot_us();
    sampler->history = history_new(sampler->wall_us);
    sampler->timer = loop_timer_new(server->loop, tick, sampler);
    sampler->now = calloc(1, sizeof *sampler->now);
    sampler->second = calloc(1, sizeof *sampler->second);
    sampler->open = calloc(1, sizeof *sampler->open);
    if (!sampler->history || !sampler->timer || !sampler->now || !sampler->second ||
        !sampler->open)
        goto failed;
    plan(sampler);
    return sampler;
failed:
    sampler_free(sampler);
    err_no_memory(err);
    return NULL;
}

void sampler_free(struct sampler *sampler)
{
    if (!sampler)
        return;
    loop_timer_free(sampler->timer);
    history_free(sampler->history);
    map_deinit(&sampler->by_queue);
    arena_deinit(&sampler->arena);
    free(sampler->now);
    free(sampler->second);
    free(sampler->open);
    free(sampler);
}

const struct history *sampler_history(const struct sampler *sampler)
{
    return sampler->history;
}

/* Whose figures a call gets: absent = all there are, as no other namespace has any. */
struct str sampler_within(const struct api_call *call)
{
    return engine_namespaces(call->server->engine) > 1 ? call_namespace(call) : STR_NONE;
}

int api_stats_history(struct api_call *call)
{
    struct sampler *sampler = call->server->sampler;
    struct str word = call_parameter(call, "window"), open = call_parameter(call, "open");
    enum history_window window = WINDOW_1H;

    if (word.data && !history_window_parse(word, &window))
        return err_set_field(&call->err, ERR_INVALID, "window",
                             "window is one of 15m, 1h, 6h, 24h");
    if (open.data && !str_is(open, "true") && !str_is(open, "false"))
        return err_set_field(&call->err, ERR_INVALID, "open", "open is true or false");
    if (str_is(open, "true")) {
        memset(sampler->open, 0, sizeof *sampler->open);
        engine_measure(sampler->server->engine, sampler->open);
        history_look(sampler->history, sampler->open);
    }
    history_render(sampler->history, window, str_is(open, "true"), sampler_within(call),
                   &call->out);
    return call_reply(call, 200);
}
