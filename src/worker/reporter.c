/* Two batches take turns: slots fill one under the lock, the thread sends the other without it.
 * What was not answered is sent again until it is, together with what came meanwhile: the order of
 * each task holds, nothing is lost while the server is away, and tasks of a store it cannot reach
 * do not hold up the others. Leases are fenced by their tokens and repeats by their seq, so late is
 * safe. */
#include "worker/reporter.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"

#define ELEMENTS_FIRST 64
#define START_LINGER_MS 3      /* a lone `start` waits this long for the outcome of a quick task */
#define BACK_OFF_FIRST_MS 50
#define BACK_OFF_MS_MAX 5000
#define ROOM_WAIT_MS 100       /* look again even without a signal: memory may have come back */
#define STACK_BYTES (512 * 1024) /* the source may speak TLS on it */

struct batch {
    struct report *reports;
    struct reporter_entry *entries;
    struct report_result *results;
    uint32_t count;
    uint32_t cap;
    struct arena arena;
    bool urgent; /* holds more than starts, which can wait */
};

enum waiting { NOT_WAITING, WAITING_ANY, WAITING_URGENT };

struct reporter {
    struct source *source;
    struct reporter_hooks hooks;
    const struct log *log;
    int64_t lease_ms;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    pthread_cond_t emptied;
    struct batch batches[2];
    struct batch *gathering;
    enum waiting waiting;
    bool stopping;
    int64_t give_up_us; /* INT64_MAX while running */
    bool failing;       /* the last call reached no server; the thread only */
};

/* ---- filling ---- */

static bool batch_grow(struct batch *batch)
{
    uint32_t cap = batch->cap ? batch->cap * 2 : ELEMENTS_FIRST;
    void *reports = realloc(batch->reports, cap * sizeof *batch->reports);
    void *entries;
    void *results;

    if (reports)
        batch->reports = reports;
    entries = realloc(batch->entries, cap * sizeof *batch->entries);
    if (entries)
        batch->entries = entries;
    results = realloc(batch->results, cap * sizeof *batch->results);
    if (results)
        batch->results = results;
    if (!reports || !entries || !results)
        return false;
    batch->cap = cap;
    return true;
}

static size_t texts_bytes(const struct report *report)
{
    return report->state.len + report->data.len + report->metadata.len + report->detail.len +
           report->name.len + report->description.len + report->database_state.len +
           report->file_state.len + report->message.len + report->context.len +
           report->tasks.len + report->result.len + report->error.len + report->details.len +
           report->reason.len + report->question.len;
}

static void copy_text(struct arena *arena, struct str *text, bool *failed)
{
    if (!text->data)
        return;
    *text = arena_str(arena, *text);
    if (!text->data)
        *failed = true;
}

static bool copy_texts(struct arena *arena, struct report *report)
{
    bool failed = false;

    copy_text(arena, &report->state, &failed);
    copy_text(arena, &report->data, &failed);
    copy_text(arena, &report->metadata, &failed);
    copy_text(arena, &report->detail, &failed);
    copy_text(arena, &report->name, &failed);
    copy_text(arena, &report->description, &failed);
    copy_text(arena, &report->database_state, &failed);
    copy_text(arena, &report->file_state, &failed);
    copy_text(arena, &report->message, &failed);
    copy_text(arena, &report->context, &failed);
    copy_text(arena, &report->tasks, &failed);
    copy_text(arena, &report->result, &failed);
    copy_text(arena, &report->error, &failed);
    copy_text(arena, &report->details, &failed);
    copy_text(arena, &report->reason, &failed);
    copy_text(arena, &report->question, &failed);
    return !failed;
}

static bool has_room(const struct batch *batch, size_t bytes)
{
    return batch->count == 0 || (batch->count < REPORTER_ELEMENTS_MAX &&
                                 batch->arena.used_bytes + bytes <= REPORTER_BYTES_MAX);
}

/* Without memory the batch counts as full: it will be sent and its memory come back. */
static bool batch_add(struct batch *batch, struct reporter_task *task, const struct report *report,
                      bool final)
{
    struct report *copy;
    size_t bytes = texts_bytes(report);

    if (!has_room(batch, bytes) || (batch->count == batch->cap && !batch_grow(batch)))
        return false;
    copy = &batch->reports[batch->count];
    *copy = *report;
    if (bytes && !copy_texts(&batch->arena, copy))
        return false;
    copy->task_id = task->id;
    copy->lease_token = task->lease_token;
    copy->seq = ++task->seq;
    batch->entries[batch->count++] = (struct reporter_entry){task, final, false};
    if (report->op != REPORT_START || task->start_awaited)
        batch->urgent = true;
    return true;
}

bool reporter_add(struct reporter *reporter, struct reporter_task *task,
                  const struct report *report, bool final, bool wait)
{
    bool added;
    bool wake;

    if (!final && atomic_load_explicit(&task->lost, memory_order_relaxed))
        return true;
    pthread_mutex_lock(&reporter->lock);
    while (!(added = batch_add(reporter->gathering, task, report, final)) && wait) {
        struct timespec at = thread_deadline(ROOM_WAIT_MS * CLOCK_MS_US);

        pthread_cond_timedwait(&reporter->emptied, &reporter->lock, &at);
    }
    wake = reporter->waiting == WAITING_ANY ||
           (reporter->waiting == WAITING_URGENT && reporter->gathering->urgent);
    if (wake)
        reporter->waiting = NOT_WAITING;
    pthread_mutex_unlock(&reporter->lock);
    if (wake)
        pthread_cond_signal(&reporter->filled);
    return added;
}

/* ---- sending ---- */

static bool try_again(int rc)
{
    switch (-rc) {
    case ERR_UNAVAILABLE:
    case ERR_IO:
    case ERR_NOT_FOUND:
    case ERR_UNAUTHORIZED: /* a token may be put right while we run */
    case ERR_FORBIDDEN:
    case ERR_REQUEST_TIMEOUT:
    case ERR_RATE:
    case ERR_INTERNAL:
    case ERR_MEMORY:
    case ERR_STORAGE:
    case ERR_STORAGE_READ:
    case ERR_STORAGE_FULL:
        return true;
    default:
        return false;
    }
}

/* False when it is time to give up. */
static bool back_off(struct reporter *reporter, int64_t *wait_ms)
{
    int64_t max_ms = reporter->lease_ms / 4 < BACK_OFF_MS_MAX ? reporter->lease_ms / 4
                                                              : BACK_OFF_MS_MAX;
    struct timespec at = thread_deadline(*wait_ms * CLOCK_MS_US);
    bool go_on;

    pthread_mutex_lock(&reporter->lock);
    if (clock_boot_us() < reporter->give_up_us)
        pthread_cond_timedwait(&reporter->filled, &reporter->lock, &at);
    go_on = clock_boot_us() < reporter->give_up_us;
    pthread_mutex_unlock(&reporter->lock);
    *wait_ms = *wait_ms * 2 < max_ms ? *wait_ms * 2 : max_ms;
    if (*wait_ms < 1)
        *wait_ms = 1;
    return go_on;
}

static void refuse_all(struct report_result *results, uint32_t count, enum err_code code,
                       const char *why)
{
    for (uint32_t i = 0; i < count; i++) {
        results[i] = (struct report_result){.code = code};
        snprintf(results[i].message, sizeof results[i].message, "%.*s",
                 (int)sizeof results[i].message - 1, why);
    }
}

/* Only of a server that is away: to one that answers, also late reports are sent. */
static bool give_up(struct reporter *reporter)
{
    LOCKED(&reporter->lock);

    return reporter->failing && clock_boot_us() >= reporter->give_up_us;
}

/* Returns 0, or the error for which the call as a whole is refused. */
static int send_once(struct reporter *reporter, const struct report *reports, uint32_t count,
                     struct report_result *results, struct err *err)
{
    int rc;

    *err = (struct err){0};
    memset(results, 0, count * sizeof *results);
    rc = give_up(reporter)
             ? err_set(err, ERR_UNAVAILABLE, "the worker is stopping")
             : reporter->source->verbs->report(reporter->source, reports, count, results, err);
    reporter->failing = rc < 0 && try_again(rc);
    if (rc == -ERR_NOT_FOUND && reporter->failing)
        reporter->hooks.unknown(reporter->hooks.ctx);
    return rc;
}

/* A call that is refused as a whole is sent report by report, so that one bad report does not take
 * the others with it; ERR_UNAVAILABLE is what may be sent again. */
static void send_all(struct reporter *reporter, const struct report *reports, uint32_t count,
                     struct report_result *results)
{
    struct err err;
    int rc = send_once(reporter, reports, count, results, &err);

    if (rc == 0)
        return;
    if (count == 1 || try_again(rc)) {
        refuse_all(results, count, try_again(rc) ? ERR_UNAVAILABLE : (enum err_code)-rc, err.text);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        send_all(reporter, &reports[i], 1, &results[i]);
        if (results[i].code != ERR_UNAVAILABLE)
            continue;
        /* What follows must not overtake it: it would be taken for a repeat. */
        refuse_all(results + i + 1, count - i - 1, ERR_UNAVAILABLE, results[i].message);
        return;
    }
}

/* Reports that shall be sent move to the front, in order; returns how many. The others follow. */
static uint32_t sort_out(struct batch *batch)
{
    uint32_t sent = 0;

    for (uint32_t i = 0; i < batch->count; i++) {
        bool lost = atomic_load(&batch->entries[i].task->lost);

        if (lost || batch->reports[i].op == REPORT_OP_COUNT)
            continue;
        if (i != sent) {
            struct report report = batch->reports[i];
            struct reporter_entry entry = batch->entries[i];

            batch->reports[i] = batch->reports[sent];
            batch->entries[i] = batch->entries[sent];
            batch->reports[sent] = report;
            batch->entries[sent] = entry;
        }
        sent++;
    }
    return sent;
}

static bool is_held_back(const struct batch *batch, const struct reporter_task *task)
{
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->entries[i].task == task && batch->results[i].code == ERR_UNAVAILABLE)
            return true;
    return false;
}

/* To its place in front; those between keep their order. */
static void move_entry(struct batch *batch, uint32_t from, uint32_t to)
{
    struct report report = batch->reports[from];
    struct reporter_entry entry = batch->entries[from];
    struct report_result result = batch->results[from];
    size_t between = from - to;

    memmove(&batch->reports[to + 1], &batch->reports[to], between * sizeof report);
    memmove(&batch->entries[to + 1], &batch->entries[to], between * sizeof entry);
    memmove(&batch->results[to + 1], &batch->results[to], between * sizeof result);
    batch->reports[to] = report;
    batch->entries[to] = entry;
    batch->results[to] = result;
}

/* Everything of tasks of which something could not be sent moves to the front, in order; returns
 * how much that is. */
static uint32_t hold_back(struct batch *batch)
{
    uint32_t held = 0;
    bool any = false;

    for (uint32_t i = 0; i < batch->count && !any; i++)
        any = batch->results[i].code == ERR_UNAVAILABLE;
    if (!any)
        return 0;
    for (uint32_t i = 0; i < batch->count; i++)
        batch->entries[i].held = is_held_back(batch, batch->entries[i].task);
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->entries[i].held)
            move_entry(batch, i, held++);
    return held;
}

/* Without the texts of those that were answered. */
static void shrink(struct batch *batch)
{
    struct arena fresh = ARENA_INIT(batch->arena.max_bytes);
    struct report *copies = arena_copy(&fresh, batch->reports,
                                       batch->count * sizeof *batch->reports);
    bool failed = !copies;

    for (uint32_t i = 0; i < batch->count && !failed; i++)
        failed = !copy_texts(&fresh, &copies[i]);
    if (failed) {
        arena_deinit(&fresh);
        return;
    }
    memcpy(batch->reports, copies, batch->count * sizeof *copies);
    arena_deinit(&batch->arena);
    batch->arena = fresh;
}

/* What came meanwhile goes along, as far as there is room. */
static void absorb(struct reporter *reporter, struct batch *batch)
{
    struct batch *more;
    uint32_t taken = 0;

    LOCKED(&reporter->lock);
    more = reporter->gathering;
    while (taken < more->count) {
        struct report report = more->reports[taken];
        size_t bytes = texts_bytes(&report);

        if (!has_room(batch, bytes) || (batch->count == batch->cap && !batch_grow(batch)) ||
            (bytes && !copy_texts(&batch->arena, &report)))
            break;
        batch->reports[batch->count] = report;
        batch->entries[batch->count++] = more->entries[taken++];
    }
    more->count -= taken;
    if (taken) { /* a batch that never had a report has no memory for any */
        memmove(more->reports, more->reports + taken, more->count * sizeof *more->reports);
        memmove(more->entries, more->entries + taken, more->count * sizeof *more->entries);
    }
    if (more->count == 0) {
        more->urgent = false;
        arena_reset(&more->arena);
    }
    if (taken)
        pthread_cond_broadcast(&reporter->emptied);
}

/* Those behind the first `held` are answered. */
static void answer(struct reporter *reporter, struct batch *batch, uint32_t held)
{
    uint32_t count = batch->count - held;

    if (count)
        reporter->hooks.answered(reporter->hooks.ctx, batch->reports + held, batch->entries + held,
                                 batch->results + held, count);
    batch->count = held;
}

static void send_batch(struct reporter *reporter, struct batch *batch)
{
    int64_t wait_ms = BACK_OFF_FIRST_MS;
    bool goes_on = true;
    uint32_t held;

    FAULT_POINT("worker.report");
    for (bool warned = false;; warned = true) {
        uint32_t sent = sort_out(batch);

        if (sent)
            send_all(reporter, batch->reports, sent, batch->results);
        for (uint32_t i = sent; i < batch->count; i++)
            batch->results[i] = (struct report_result){
                .code = batch->reports[i].op == REPORT_OP_COUNT ? ERR_NONE : ERR_STALE_LEASE};
        held = goes_on ? hold_back(batch) : 0;
        if (held && !warned)
            LOG(reporter->log, LOG_WARN, "report.unsent", KI("reports", held),
                KC("error", batch->results[0].message));
        if (held < batch->count)
            wait_ms = BACK_OFF_FIRST_MS; /* the server answers */
        answer(reporter, batch, held);
        if (!held)
            break;
        goes_on = back_off(reporter, &wait_ms);
        if (batch->arena.used_bytes > REPORTER_BYTES_MAX / 2)
            shrink(batch);
        absorb(reporter, batch);
    }
    FAULT_POINT("worker.reported");
    batch->urgent = false;
    arena_reset(&batch->arena);
}

/* The batch to send, or NULL at the end. */
static struct batch *next_batch(struct reporter *reporter)
{
    struct batch *batch;

    LOCKED(&reporter->lock);
    while (reporter->gathering->count == 0 && !reporter->stopping) {
        reporter->waiting = WAITING_ANY;
        pthread_cond_wait(&reporter->filled, &reporter->lock);
    }
    if (!reporter->gathering->urgent && !reporter->stopping) {
        struct timespec at = thread_deadline(START_LINGER_MS * CLOCK_MS_US);

        reporter->waiting = WAITING_URGENT;
        pthread_cond_timedwait(&reporter->filled, &reporter->lock, &at);
    }
    reporter->waiting = NOT_WAITING;
    batch = reporter->gathering;
    if (batch->count) {
        reporter->gathering = batch == &reporter->batches[0] ? &reporter->batches[1]
                                                             : &reporter->batches[0];
        pthread_cond_broadcast(&reporter->emptied);
    } else {
        batch = NULL;
    }
    return batch;
}

static void *run(void *ctx)
{
    struct reporter *reporter = ctx;
    struct batch *batch;

    while ((batch = next_batch(reporter)))
        send_batch(reporter, batch);
    return NULL;
}

/* ---- life ---- */

struct reporter *reporter_start(struct source *source, const struct reporter_hooks *hooks,
                                int64_t lease_ms, const struct log *log, struct err *err)
{
    struct reporter *reporter = err_calloc(sizeof *reporter, err);
    int rc;

    if (!reporter)
        return NULL;
    *reporter = (struct reporter){.source = source, .hooks = *hooks, .log = log,
                                  .lease_ms = lease_ms, .give_up_us = INT64_MAX};
    reporter->gathering = &reporter->batches[0];
    pthread_mutex_init(&reporter->lock, NULL);
    thread_cond_init(&reporter->filled);
    thread_cond_init(&reporter->emptied);
    rc = thread_start(&reporter->thread, STACK_BYTES, run, reporter);
    if (rc != 0) {
        err_set(err, ERR_UNAVAILABLE, "cannot start a thread: %s", strerror(rc));
        reporter_free(reporter);
        return NULL;
    }
    return reporter;
}

void reporter_limit(struct reporter *reporter, int64_t give_up_ms)
{
    int64_t at_us = clock_boot_us() + give_up_ms * CLOCK_MS_US;

    LOCKED(&reporter->lock);
    if (at_us < reporter->give_up_us)
        reporter->give_up_us = at_us;
    pthread_cond_broadcast(&reporter->filled);
}

void reporter_stop(struct reporter *reporter)
{
    pthread_mutex_lock(&reporter->lock);
    reporter->stopping = true;
    reporter->waiting = NOT_WAITING;
    pthread_cond_broadcast(&reporter->filled);
    pthread_mutex_unlock(&reporter->lock);
    pthread_join(reporter->thread, NULL);
}

void reporter_free(struct reporter *reporter)
{
    if (!reporter)
        return;
    for (int i = 0; i < 2; i++) {
        free(reporter->batches[i].reports);
        free(reporter->batches[i].entries);
        free(reporter->batches[i].results);
        arena_deinit(&reporter->batches[i].arena);
    }
    pthread_cond_destroy(&reporter->filled);
    pthread_cond_destroy(&reporter->emptied);
    pthread_mutex_destroy(&reporter->lock);
    free(reporter);
}
