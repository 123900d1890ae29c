/* A source in memory for the worker's tests: hands out tasks that a test adds, applies reports to
 * them, and misbehaves as the test wishes. Everything is under one lock and one condition. */
#ifndef TESTS_UNIT_FAKE_SOURCE_H
#define TESTS_UNIT_FAKE_SOURCE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "core/bounds.h"
#include "worker/sources/source.h"

#define TASKS_MAX 60000
#define DEADLINE_S 60 /* only ever reached when a test fails */

enum task_status { WAITING, HELD, STARTED, COMPLETED, CONTINUED, FAILED, PARTIAL, RELEASED, LOST };

struct fake_task {
    struct uuid id;
    const char *type;
    const char *payload;
    int64_t lease_token;
    int64_t timeout_ms;
    int64_t attempt;     /* 0 = the first */
    int64_t crash_count;
    int64_t last_seq;
    enum task_status status;
    bool cancel;
    bool pause;
    bool lose;   /* the next report or heartbeat finds the lease gone */
    bool timed_out;
    bool retryable;
    int starts;
    int logs;
    int64_t log_bytes; /* of messages and contexts */
    int states;        /* progress with a state */
    int64_t progress;
    int64_t delay_ms;
    char error[256];
    char details[128];
    char result[128];
    char log[2048]; /* messages, each with level and newline */
};

/* A source as a test needs it: one lock, one condition for everything that changes. */
struct fake {
    struct source base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fake_task *tasks;
    uint32_t count;
    uint32_t next;
    int64_t lease_ms;
    int64_t heartbeat_ms;
    int registered;
    int left;
    int heartbeats;
    int reports_calls;
    int reports_count;
    int claims;
    bool types_given; /* a list, be it empty */
    uint32_t types_count; /* that were registered, and the first of them */
    char type[64];
    uint32_t largest_claim;
    int64_t reply_delay_ms; /* a claim's answer is held up this long after its lease began */
    bool unknown;     /* answers NOT_FOUND until registered again */
    bool down;        /* answers UNAVAILABLE */
    bool interrupted;
    bool unordered;   /* a seq came twice or backwards */
    bool wanted_json;
    bool gate_open;   /* for handlers that wait for the test */
};

static struct fake *fake_of(struct source *source)
{
    return (struct fake *)source;
}

static struct timespec soon(int64_t wait_ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(wait_ms / 1000);
    at.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static int fake_register(struct source *source, const struct source_worker *worker,
                         struct arena *arena, struct source_registration *registered,
                         struct err *err)
{
    struct fake *fake = fake_of(source);

    pthread_mutex_lock(&fake->lock);
    if (fake->down) {
        pthread_mutex_unlock(&fake->lock);
        return err_set(err, ERR_UNAVAILABLE, "down");
    }
    fake->registered++;
    fake->unknown = false;
    fake->types_given = worker->types != NULL;
    fake->types_count = worker->types_count;
    if (worker->types_count)
        snprintf(fake->type, sizeof fake->type, STR_FMT, STR_ARG(worker->types[0]));
    *registered = (struct source_registration){
        .id = worker->id.data ? arena_str(arena, worker->id) : STR("worker-1"),
        .heartbeat_ms = fake->heartbeat_ms,
        .lease_ms = fake->lease_ms};
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return 0;
}

static void fill_work(struct fake *fake, struct fake_task *task, struct work *work)
{
    task->lease_token++;
    task->status = HELD;
    *work = (struct work){.id = task->id,
                          .lease_token = task->lease_token,
                          .lease_ms = fake->lease_ms,
                          .attempt = task->attempt ? task->attempt : 1,
                          .crash_count = task->crash_count,
                          .timeout_ms = task->timeout_ms,
                          .retry_delay_ms = 1234,
                          .type = str_of(task->type),
                          .queue = STR("default"),
                          .payload = str_of(task->payload ? task->payload : "null"),
                          .data = STR("null"),
                          .metadata = STR("{}"),
                          .json = STR("{\"type\":\"test\"}")};
}

static int fake_claim(struct source *source, const struct source_want *want,
                      struct arena *arena, struct work **works, uint32_t *count, struct err *err)
{
    struct fake *fake = fake_of(source);
    struct timespec at = soon(want->wait_ms);
    int64_t delay_ms;
    int rc = 0;

    *count = 0;
    pthread_mutex_lock(&fake->lock);
    fake->claims++;
    fake->wanted_json = want->json;
    while (fake->next == fake->count && !fake->interrupted && !fake->unknown && !fake->down)
        if (pthread_cond_timedwait(&fake->changed, &fake->lock, &at) != 0)
            break;
    if (fake->down || fake->interrupted)
        rc = err_set(err, ERR_UNAVAILABLE, "down");
    else if (fake->unknown)
        rc = err_set(err, ERR_NOT_FOUND, "unknown");
    if (rc == 0) {
        *works = arena_alloc_array(arena, want->max, sizeof **works);
        while (*count < want->max && fake->next < fake->count)
            fill_work(fake, &fake->tasks[fake->next++], &(*works)[(*count)++]);
        if (*count > fake->largest_claim)
            fake->largest_claim = *count;
        pthread_cond_broadcast(&fake->changed);
    }
    delay_ms = fake->reply_delay_ms;
    pthread_mutex_unlock(&fake->lock);
    if (rc == 0 && *count && delay_ms)
        nanosleep(&(struct timespec){delay_ms / 1000, (delay_ms % 1000) * 1000000}, NULL);
    return rc;
}

static uint32_t index_of(const struct uuid *id)
{
    uint32_t index;

    memcpy(&index, id->bytes, sizeof index);
    return index;
}

static void keep_text(char *out, size_t cap, struct str text)
{
    size_t len = text.len < cap - 1 ? text.len : cap - 1;

    if (len)
        memcpy(out, text.data, len);
    out[len] = '\0';
}

static void apply(struct fake_task *task, const struct report *report)
{
    static const enum task_status ends[REPORT_OP_COUNT] = {
        [REPORT_COMPLETE] = COMPLETED, [REPORT_CONTINUE] = CONTINUED, [REPORT_FAIL] = FAILED,
        [REPORT_PARTIAL] = PARTIAL,    [REPORT_RELEASE] = RELEASED,
    };

    if (report->op == REPORT_START) {
        task->starts++;
        task->status = STARTED;
    } else if (report->op == REPORT_PROGRESS) {
        task->progress = report->progress;
        task->states += report->state.data != NULL;
    } else if (report->op == REPORT_LOG) {
        size_t len = strlen(task->log);

        task->logs++;
        task->log_bytes += (int64_t)(report->message.len + report->context.len);
        snprintf(task->log + len, sizeof task->log - len, "%s " STR_FMT "\n",
                 severity_word(report->level), STR_ARG(report->message));
    } else if (ends[report->op] != WAITING) {
        task->status = ends[report->op];
        task->timed_out = report->timed_out;
        task->retryable = report->retryable;
        task->delay_ms = report->delay_ms;
        keep_text(task->error, sizeof task->error,
                  report->reason.data ? report->reason : report->error);
        keep_text(task->details, sizeof task->details, report->details);
        keep_text(task->result, sizeof task->result, report->result);
    }
}

static int fake_report(struct source *source, const struct report *reports, uint32_t count,
                       struct report_result *results, struct err *err)
{
    struct fake *fake = fake_of(source);
    int rc = 0;

    pthread_mutex_lock(&fake->lock);
    fake->reports_calls++;
    if (fake->down)
        rc = err_set(err, ERR_UNAVAILABLE, "down");
    else if (fake->unknown)
        rc = err_set(err, ERR_NOT_FOUND, "unknown");
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct fake_task *task = &fake->tasks[index_of(&reports[i].task_id)];

        fake->reports_count++;
        if (task->lose || reports[i].lease_token != task->lease_token) {
            results[i].code = ERR_STALE_LEASE;
            if (task->lose && task->status != RELEASED)
                task->status = LOST;
            continue;
        }
        if (reports[i].result.len > BOUND_RESULT_BYTES) {
            results[i].code = ERR_TOO_LARGE;
            snprintf(results[i].message, sizeof results[i].message, "too large a result");
            continue;
        }
        if (reports[i].seq <= task->last_seq)
            fake->unordered = true;
        task->last_seq = reports[i].seq;
        apply(task, &reports[i]);
        results[i].cancel = task->cancel;
        results[i].pause = task->pause;
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return rc;
}

static int fake_heartbeat(struct source *source, const struct held *held, uint32_t count,
                          struct arena *arena, struct heartbeat_answer *answer, struct err *err)
{
    struct fake *fake = fake_of(source);
    int rc = 0;

    answer->cancel = arena_alloc_array(arena, count + 1, sizeof(uint32_t));
    answer->pause = arena_alloc_array(arena, count + 1, sizeof(uint32_t));
    answer->lost = arena_alloc_array(arena, count + 1, sizeof(uint32_t));
    pthread_mutex_lock(&fake->lock);
    fake->heartbeats++;
    if (fake->down)
        rc = err_set(err, ERR_UNAVAILABLE, "down");
    else if (fake->unknown)
        rc = err_set(err, ERR_NOT_FOUND, "unknown");
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct fake_task *task = &fake->tasks[index_of(&held[i].task_id)];

        if (task->cancel)
            answer->cancel[answer->cancel_count++] = i;
        if (task->pause)
            answer->pause[answer->pause_count++] = i;
        if (task->lose)
            answer->lost[answer->lost_count++] = i;
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return rc;
}

static int fake_leave(struct source *source, struct err *err)
{
    (void)err;
    fake_of(source)->left++;
    return 0;
}

static void fake_interrupt(struct source *source)
{
    struct fake *fake = fake_of(source);

    pthread_mutex_lock(&fake->lock);
    fake->interrupted = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

static const struct source_verbs fake_verbs = {fake_register,  fake_claim, fake_report,
                                               fake_heartbeat, fake_leave,
                                               fake_interrupt, NULL, NULL};

static struct fake *fake_new(void)
{
    struct fake *fake = calloc(1, sizeof *fake);
    pthread_condattr_t attr;

    fake->base.verbs = &fake_verbs;
    fake->lease_ms = 30000;
    fake->heartbeat_ms = 10000;
    fake->tasks = calloc(TASKS_MAX, sizeof *fake->tasks);
    pthread_mutex_init(&fake->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&fake->changed, &attr);
    pthread_condattr_destroy(&attr);
    return fake;
}

static void fake_free(struct fake *fake)
{
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->lock);
    free(fake->tasks);
    free(fake);
}

static struct fake_task *add_task(struct fake *fake, const char *type)
{
    struct fake_task *task;

    pthread_mutex_lock(&fake->lock);
    task = &fake->tasks[fake->count];
    memcpy(task->id.bytes, &fake->count, sizeof fake->count);
    task->type = type;
    task->timeout_ms = 60000;
    fake->count++;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return task;
}

#define WAIT_FOR(fake, condition)                                                          \
    do {                                                                                   \
        struct timespec at_ = soon(DEADLINE_S * 1000);                                     \
        bool in_time_ = true;                                                              \
        pthread_mutex_lock(&(fake)->lock);                                                 \
        while (!(condition) && in_time_)                                                   \
            in_time_ = pthread_cond_timedwait(&(fake)->changed, &(fake)->lock, &at_) == 0; \
        in_time_ = (condition);                                                            \
        pthread_mutex_unlock(&(fake)->lock);                                               \
        if (!in_time_)                                                                     \
            fail_msg("timed out waiting for " #condition);                                    \
    } while (0)

#endif
