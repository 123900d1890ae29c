/* The two ends of a lease: claims come in here as slots get free, answers to reports end runs here.
 * A claim is asked for whenever there is room, also while others are being run; what a long-poll
 * brings wakes exactly as many slots. Claimer's thread, and the reporter's for answers. */
#include <errno.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"
#include "core/bounds.h"
#include "worker/process/control_line.h"
#include "worker/worker_int.h"

#define PAUSE_FIRST_MS 50
#define PAUSE_MS_MAX 5000
#define RARE_US (2 * CLOCK_MS_US)
#define EMPTY_CLAIM_MS 10 /* a long-poll that ends sooner without a task did not wait */

/* ---- claiming ---- */

bool worker_is_stopping(struct worker *worker)
{
    LOCKED(&worker->lock);

    return worker->end.stopping;
}

static void wait_room_come(struct worker *worker)
{
    int64_t look_ms = worker_ahead_look_ms(worker);

    if (look_ms < INT64_MAX) {
        struct timespec at = thread_deadline(look_ms * CLOCK_MS_US);

        pthread_cond_timedwait(&worker->claims.room_come, &worker->lock, &at);
    } else {
        pthread_cond_wait(&worker->claims.room_come, &worker->lock);
    }
}

/* Waits for room. 0 = stop. */
static uint32_t wait_for_room(struct worker *worker)
{
    uint32_t room = 0;

    LOCKED(&worker->lock);
    while (!worker->end.stopping) {
        uint32_t used;

        worker_ahead_give_back(worker);
        used = worker->line.count + worker->line.running_count;
        room = worker->ahead.capacity > used ? worker->ahead.capacity - used : 0;
        if (room > worker->runs.max - worker->runs.held_count)
            room = worker->runs.max - worker->runs.held_count;
        if (atomic_load(&worker->handlers)->count == 0)
            room = 0; /* whatever it got it could not run */
        if (room && (worker->ahead.capacity == worker->config.slots || worker->line.count == 0 ||
                     room * 2 >= worker->ahead.capacity))
            break;
        wait_room_come(worker);
    }
    if (worker->end.stopping)
        room = 0;
    return room < BOUND_CLAIM_MAX ? room : BOUND_CLAIM_MAX;
}

/* False when stopping. */
static bool rest(struct worker *worker, int64_t wait_ms)
{
    struct timespec at = thread_deadline(wait_ms * CLOCK_MS_US);

    LOCKED(&worker->lock);
    while (!worker->end.stopping &&
           pthread_cond_timedwait(&worker->claims.room_come, &worker->lock, &at) != ETIMEDOUT)
        ;
    return !worker->end.stopping;
}

bool worker_claim_end(struct worker *worker, int rc, uint64_t seen, bool early, int64_t *pause_ms,
                      struct err *err)
{
    bool first = *pause_ms == 0;

    if (rc == -ERR_NOT_FOUND)
        rc = worker_register(worker, seen, err);
    if (rc == 0) {
        *pause_ms = 0;
        return !early || rest(worker, PAUSE_FIRST_MS);
    }
    if (first && !worker_is_stopping(worker))
        LOG(worker->log, LOG_WARN, "claim.failed", KC("error", err->text));
    *pause_ms = first ? PAUSE_FIRST_MS : *pause_ms * 2;
    if (*pause_ms > PAUSE_MS_MAX)
        *pause_ms = PAUSE_MS_MAX;
    return rest(worker, *pause_ms);
}

static void push(struct worker *worker, struct run *run)
{
    if (worker->line.last)
        worker->line.last->next = run;
    else
        worker->line.first = run;
    worker->line.last = run;
    worker->line.count++;
}

static void log_dropped(const struct worker *worker, const struct work *work)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&work->id, id);
    LOG(worker->log, LOG_ERROR, "task.dropped", KC("task", id),
        KS("correlation_id", work->correlation_id), KC("reason", "out of memory"));
}

/* What came after worker_stop began is given back unstarted, by the slots like everything else.
 * Returns how many slots are to be woken. */
static uint32_t accept(struct worker *worker, const struct work *works, uint32_t count)
{
    struct claim *claim = worker->claims.asking;
    int64_t now_us = clock_boot_us();

    worker->claims.asking = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct run *run = worker_run_new(worker);

        if (!run) {
            log_dropped(worker, &works[i]);
            break; /* not held, so not in a heartbeat: the server takes it back */
        }
        run->work = works[i];
        run->task.id = works[i].id;
        run->task.lease_token = works[i].lease_token;
        run->claim = claim;
        run->sent_us = worker->claims.asked_us;
        run->accepted_us = now_us;
        if (run->work.lease_ms <= 0)
            run->work.lease_ms = worker->beats.lease_ms;
        if (worker->end.stopping)
            atomic_store(&run->stop, STOP_SHUTDOWN);
        claim->users++;
        if (worker->config.dispatch)
            worker_dispatch_accept(worker, run);
        else
            push(worker, run);
    }
    if (claim->users == 0)
        worker_claim_release(worker, claim);
    worker->line.arrived_us = now_us;
    count -= count < worker->line.watching_count ? count : worker->line.watching_count;
    return count < worker->line.idle_count ? count : worker->line.idle_count;
}

/* The claimer's thread, or the one whose commit brought the tasks. */
void worker_arrived(void *ctx, const struct work *works, uint32_t count)
{
    struct worker *worker = ctx;
    uint32_t wakes;

    if (count)
        FAULT_POINT("worker.claimed");
    pthread_mutex_lock(&worker->lock);
    wakes = accept(worker, works, count);
    pthread_mutex_unlock(&worker->lock);
    atomic_fetch_add(&worker->line.arrivals, 1);
    for (uint32_t i = 0; i < wakes; i++) /* after the lock: else they wake only to wait for it */
        pthread_cond_signal(&worker->line.come);
}

/* Called by the thread that is about to commit. Waking a thread takes a good part of the time of a
 * commit: when tasks are rare and all slots sleep, one slot is woken before. */
void worker_coming(void *ctx)
{
    struct worker *worker = ctx;
    bool wake;

    pthread_mutex_lock(&worker->lock);
    wake = worker->line.idle_count > 0 && !worker->line.first &&
           clock_boot_us() - worker->line.arrived_us > RARE_US;
    worker->line.coming = wake;
    pthread_mutex_unlock(&worker->lock);
    if (wake)
        pthread_cond_signal(&worker->line.come);
}

/* A lease is counted from when the claim was sent, since the worker does not know when it was
 * granted: a long-poll as long as the lease would bring only tasks that look lost. With tasks that
 * wait here it is short, so that the worker notices when they get stuck. Under the lock. */
static int64_t claim_wait_ms(const struct worker *worker)
{
    int64_t half_ms = worker->beats.lease_ms / 2;
    int64_t look_ms = worker_ahead_look_ms(worker);
    int64_t wait_ms = worker->config.claim_wait_ms;

    if (half_ms > 0 && half_ms < wait_ms)
        wait_ms = half_ms;
    return look_ms < wait_ms ? look_ms : wait_ms;
}

/* One claim. Returns what the source said; *count tasks came. */
static int claim_once(struct worker *worker, uint32_t max, uint32_t *count, struct err *err)
{
    struct source *source = worker->source;
    struct work *works = NULL;
    struct source_want want = {.max = max};
    struct claim *claim;
    int rc;

    *count = 0;
    pthread_mutex_lock(&worker->lock);
    claim = worker->claims.asking = worker_claim_new(worker);
    worker->claims.asked_us = clock_boot_us();
    want.wait_ms = claim_wait_ms(worker);
    pthread_mutex_unlock(&worker->lock);
    TRY_MEMORY(claim);
    want.json = atomic_load(&worker->handlers)->wants_json;
    rc = source->verbs->claim(source, &want, &claim->arena, &works, count, err);
    if (rc < 0 || *count == 0 || works) /* else they have arrived already */
        worker_arrived(worker, works, rc < 0 ? 0 : *count);
    return rc;
}

void *worker_claimer_main(void *ctx)
{
    struct worker *worker = ctx;
    int64_t pause_ms = 0;
    uint32_t room;

    while ((room = wait_for_room(worker))) {
        int64_t began_us = clock_boot_us();
        uint64_t seen = worker_registrations(worker);
        struct err err = {0};
        uint32_t count;
        int rc = claim_once(worker, room, &count, &err);
        bool early = !count && clock_boot_us() - began_us < EMPTY_CLAIM_MS * CLOCK_MS_US;

        if (!worker_claim_end(worker, rc, seen, early, &pause_ms, &err))
            break;
    }
    return NULL;
}

/* ---- answers to reports ---- */

static void obey(struct run *run, const struct report_result *result)
{
    if (result->code == ERR_STALE_LEASE || result->code == ERR_NOT_FOUND)
        worker_run_stop(run, STOP_LOST);
    else if (result->cancel)
        worker_run_stop(run, STOP_CANCEL);
    else if (result->pause)
        worker_run_stop(run, STOP_PAUSE);
}

/* An outcome the server would not have (too large a result, say) must not leave the task held for
 * ever: it is reported as a failure instead, once. */
static bool replace_outcome(struct worker *worker, struct run *run, const struct report *report,
                            const struct report_result *result)
{
    struct report failure = worker_report(REPORT_FAIL);

    if (run->replaced || report->op == REPORT_OP_COUNT || result->code == ERR_NONE ||
        result->code == ERR_STALE_LEASE || result->code == ERR_NOT_FOUND ||
        result->code == ERR_CONFLICT || result->code == ERR_UNAVAILABLE)
        return false;
    run->replaced = true;
    failure.error = str_of(result->message);
    failure.retryable = false;
    return reporter_add(worker->reporter, &run->task, &failure, true, false);
}

/* The front of a sentence, up to what it quotes: names and values are the task's business and not
 * the log's. */
static struct str without_names(const char *sentence)
{
    size_t len = strcspn(sentence, "\"'");
    const char *arrow = memmem(sentence, len, " -> ", 4); /* a cycle, as a path of names */
    const char *colon = arrow ? memrchr(sentence, ':', (size_t)(arrow - sentence)) : NULL;

    return str_span(sentence, colon ? (size_t)(colon - sentence) : len);
}

static void log_refused(const struct worker *worker, const struct run *run,
                        const struct report *report, const struct report_result *result)
{
    char id[UUID_TEXT_BYTES];

    if (report->op == REPORT_OP_COUNT || result->code == ERR_NONE ||
        result->code == ERR_UNAVAILABLE)
        return;
    uuid_format(&report->task_id, id);
    LOG(worker->log, LOG_WARN, "report.refused", KC("task", id),
        KC("op", report_op_word(report->op)), KC("code", err_word(result->code)),
        KS("correlation_id", run->work.correlation_id),
        KS("reason", without_names(result->message)));
}

/* A server that waits until a task it took back has stopped learns it from the next heartbeat,
 * which does not name the task. Under the lock. */
static void end_run(struct worker *worker, struct run *run)
{
    if (atomic_load(&run->task.lost)) {
        worker->beats.soon = true;
        pthread_cond_signal(&worker->beats.due);
    }
    worker_run_end(worker, run);
}

/* What the end of the worker did to its tasks, as far as the source has it. Under the lock. */
static void count_end(struct worker *worker, const struct report *report,
                      const struct report_result *result)
{
    if (!worker->end.stopping || report->op == REPORT_OP_COUNT || result->code != ERR_NONE)
        return;
    if (report->op == REPORT_RELEASE)
        worker->end.handed_back++;
    else
        worker->end.finished++;
}

/* Two passes: a run ends only after everything of it was looked at. */
void worker_answered(void *ctx, const struct report *reports, const struct reporter_entry *entries,
                     const struct report_result *results, uint32_t count)
{
    struct worker *worker = ctx;

    LOCKED(&worker->lock);
    for (uint32_t i = 0; i < count; i++) {
        if (!entries[i].final)
            obey((struct run *)entries[i].task, &results[i]);
        ((struct run *)entries[i].task)->answered_seq = reports[i].seq;
        if (results[i].code != ERR_NONE && reports[i].op == REPORT_CHECKPOINT)
            ((struct run *)entries[i].task)->refused = true;
        if (reports[i].op == REPORT_START)
            worker_start_answered(worker, (struct run *)entries[i].task);
        if (results[i].code != ERR_NONE)
            log_refused(worker, (struct run *)entries[i].task, &reports[i], &results[i]);
    }
    if (worker->runs.awaiting_count)
        pthread_cond_broadcast(&worker->runs.answers_come);
    for (uint32_t i = 0; i < count; i++) {
        struct run *run = (struct run *)entries[i].task;

        if (!entries[i].final || replace_outcome(worker, run, &reports[i], &results[i]))
            continue;
        count_end(worker, &reports[i], &results[i]);
        end_run(worker, run);
    }
    if (worker->end.stopping)
        pthread_cond_broadcast(&worker->end.calm);
}
