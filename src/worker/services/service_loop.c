/* The thread that makes all calls: it begins what was claimed, drives libcurl by epoll, ends calls
 * that were stopped, and hands ends to the reporter. Nothing in it blocks; thousands of calls wait
 * in it at once. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"
#include "worker/process/control_line.h"
#include "worker/services/service_int.h"

#define EVENTS_MAX 256
#define SLEEP_MS_MAX 60000
#define UNSENT_MS 20 /* the reporter had no room */

/* ---- ends ---- */

static void unlink_call(struct service_call **list, struct service_call *call)
{
    if (call->previous)
        call->previous->next = call->next;
    else
        *list = call->next;
    if (call->next)
        call->next->previous = call->previous;
    call->next = call->previous = NULL;
}

static void link_call(struct service_call **list, struct service_call *call)
{
    call->previous = NULL;
    call->next = *list;
    if (*list)
        (*list)->previous = call;
    *list = call;
}

/* False: the reporter has no room. */
static bool send_end(struct service_call *call)
{
    struct service_pool *pool = call->worker->config.dispatch->ctx;
    struct service_line *line = call->line;
    struct worker *worker = call->worker;
    bool was_full;

    if (!worker_dispatch_report(worker, call->run, &call->report, true))
        return false;
    pthread_mutex_lock(&pool->lock);
    was_full = pool->held >= pool->max || (line && line_room(line, clock_boot_us()) == 0);
    pool->held--;
    if (line)
        line->held--;
    pthread_mutex_unlock(&pool->lock);
    if (was_full) /* the claim under way may have left it out */
        worker_dispatch_room(worker);
    return true;
}

static void free_call(struct service_call *call)
{
    call_clear(call);
    arena_deinit(&call->arena);
    free(call);
}

/* Its report is made: the call is in no list any more. */
static void end_call(struct service_pool *pool, struct service_call *call)
{
    call->phase = CALL_ENDED;
    call_clear(call);
    FAULT_POINT("service.ended");
    if (send_end(call))
        free_call(call);
    else
        link_call(&pool->unsent, call);
}

static void send_unsent(struct service_pool *pool)
{
    struct service_call *next;

    for (struct service_call *call = pool->unsent; call; call = next) {
        next = call->next;
        if (!send_end(call))
            return;
        unlink_call(&pool->unsent, call);
        free_call(call);
    }
}

/* A call that is given up may have reached its service: where a repeat is to be asked for, it stays
 * an attempt. */
static struct report given_up(const struct service_call *call)
{
    struct report report = worker_report(REPORT_RELEASE);

    if (!call->begun || !call_lookup(call).data)
        return report;
    report = worker_report(REPORT_CONTINUE);
    report.delay_ms = 0;
    return report;
}

static void leave_line(struct service_call *call)
{
    struct service_pool *pool = call->line->pool;

    if (call->stream)
        grpc_leave(call);
    else
        curl_multi_remove_handle(call->line->multi, call->easy);
    unlink_call(&pool->calls, call);
    call->line->calls_count--;
}

/* ---- beginning ---- */

static void fail_unprepared(struct service_call *call, const struct err *err)
{
    bool invalid = err->code == ERR_INVALID;

    call_clear(call);
    answer_failed(call, invalid ? "invalid_request" : "not_called", !invalid, str_of(err->text));
}

/* Into libcurl; false: it has ended, with its report made. */
static bool send_request(struct service_call *call)
{
    struct str lookup = call_lookup(call);
    bool asks = lookup.data && call->run->work.attempt > 1 && call->phase == CALL_WAITS;
    struct str method = asks              ? lookup
                        : call->method.data ? call->method
                                            : STR("");
    struct err err = {0};

    if (call->line->grpc)
        grpc_begin(call, method, asks, &err);
    else if (call_prepare(call, method, &err) == 0 &&
             curl_multi_add_handle(call->line->multi, call->easy) != CURLM_OK)
        err_no_memory(&err);
    if (err.code != ERR_NONE) {
        fail_unprepared(call, &err);
        return false;
    }
    call->phase = asks ? CALL_LOOKS_UP : CALL_RUNS;
    call->begun |= !call->line->grpc; /* that one knows better */
    return true;
}

static void set_deadline(struct service_call *call)
{
    int64_t task_ms = call->run->work.timeout_ms;

    call->limit_ms = call->line->rule->timeout_ms;
    if (task_ms > 0 && task_ms < call->limit_ms)
        call->limit_ms = task_ms;
    call->began_us = clock_boot_us();
    call->deadline_us = call->began_us + call->limit_ms * CLOCK_MS_US;
}

/* A claim under way that has the service in it is asked again without it, and the other way
 * around. */
static void tell_line(struct service_call *call, const struct service_verdict *verdict)
{
    struct service_line *line = call->line;
    struct service_pool *pool = line->pool;
    bool was_open, changed;

    pthread_mutex_lock(&pool->lock);
    was_open = breaker_is_open(&line->breaker);
    line_end(line, verdict, clock_boot_us());
    if (verdict)
        views_count(call, verdict);
    changed = verdict && verdict->end == SERVICE_WAIT;
    if (changed)
        line_wait(line, call->report.delay_ms, clock_boot_us());
    changed |= was_open != breaker_is_open(&line->breaker);
    pthread_mutex_unlock(&pool->lock);
    if (changed) {
        worker_dispatch_room(call->worker);
        worker_dispatch_beat(call->worker);
    }
}

static void pop_waiting(struct service_call *call)
{
    struct service_line *line = call->line;

    if (line->last == call)
        line->last = call->previous;
    unlink_call(&line->first, call);
}

static struct report unbegun(int stop)
{
    return worker_report(stop == STOP_CANCEL || stop == STOP_LOST ? REPORT_OP_COUNT
                                                                  : REPORT_RELEASE);
}

static void give_back(struct service_pool *pool, struct service_call *call, struct report report)
{
    pop_waiting(call);
    call->report = report;
    end_call(pool, call);
}

/* Its lease lives and it was not stopped. False: it was given back. */
static bool may_begin(struct service_pool *pool, struct service_call *call)
{
    int stop = atomic_load(&call->run->stop);

    if (stop == STOP_NONE && worker_lease_gone(call->worker, call->run)) {
        atomic_store(&call->run->task.lost, true);
        stop = STOP_LOST;
    }
    if (stop == STOP_NONE)
        return true;
    give_back(pool, call, unbegun(stop));
    return false;
}

static bool take_place(struct service_line *line, bool *back)
{
    LOCKED(&line->pool->lock);

    return line_begin(line, clock_boot_us(), back);
}

static void untake(struct service_line *line)
{
    LOCKED(&line->pool->lock);

    line_end(line, NULL, clock_boot_us());
}

static void begin_call(struct service_pool *pool, struct service_call *call)
{
    pop_waiting(call);
    set_deadline(call);
    FAULT_POINT("service.begin");
    if (send_request(call)) {
        link_call(&pool->calls, call);
        call->line->calls_count++;
        return;
    }
    untake(call->line);
    end_call(pool, call);
}

/* In the order they were claimed, as far as the service takes calls now. */
static void begin_waiting(struct service_pool *pool, struct service_line *line)
{
    const struct report started = worker_report(REPORT_START);
    struct service_call *call;
    bool back;

    while ((call = line->first)) {
        if (!may_begin(pool, call))
            continue;
        if (!take_place(line, &back)) {
            if (!back)
                return; /* at due_us */
            give_back(pool, call, worker_report(REPORT_RELEASE));
            continue;
        }
        if (!worker_dispatch_report(call->worker, call->run, &started, false)) {
            untake(line);
            line->due_us = clock_boot_us() + UNSENT_MS * CLOCK_MS_US;
            return;
        }
        begin_call(pool, call);
    }
}

/* ---- what is claimed ---- */

static void refuse_call(struct service_pool *pool, struct service_call *call)
{
    call->report = worker_report(REPORT_RELEASE);
    call->report.reason = STR(REPORT_REASON_NO_HANDLER);
    end_call(pool, call);
}

static void append_waiting(struct service_line *line, struct service_call *call)
{
    call->next = NULL;
    call->previous = line->last;
    if (line->last)
        line->last->next = call;
    else
        line->first = call;
    line->last = call;
}

/* Without memory for a call the task is given back. */
static void refuse_runs(struct service_pool *pool, struct run *run)
{
    const struct report release = worker_report(REPORT_RELEASE);

    while (run) {
        struct run *next = run->next;

        run->next = NULL;
        while (!worker_dispatch_report(pool->worker, run, &release, true))
            usleep(UNSENT_MS * 1000);
        run = next;
    }
}

static void take_claimed(struct service_pool *pool)
{
    struct service_call *call, *next;
    struct run *refused;

    pthread_mutex_lock(&pool->lock);
    call = pool->come.first;
    pool->come = (struct call_list){NULL, NULL};
    refused = pool->refused;
    pool->refused = NULL;
    pthread_mutex_unlock(&pool->lock);
    for (; call; call = next) {
        next = call->next;
        call->next = call->previous = NULL;
        if (call->line)
            append_waiting(call->line, call);
        else
            refuse_call(pool, call);
    }
    refuse_runs(pool, refused);
}

/* ---- what libcurl says ---- */

/* The lookup has ended: true when the call itself is made now. */
static bool go_on(struct service_call *call, CURLcode code)
{
    enum service_found found;
    long status = 0;

    if (call->stream) {
        found = grpc_lookup_found(call);
    } else {
        curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        found = service_judge_lookup((int)status);
    }
    if (code != CURLE_OK || found != SERVICE_NOT_THERE)
        return false;
    return send_request(call);
}

static void on_end(struct service_pool *pool, struct service_call *call, CURLcode code)
{
    bool looked_up = call->phase == CALL_LOOKS_UP;
    struct service_verdict verdict = {SERVICE_RETRY, false, "not_called"};
    struct err unfit;

    leave_line(call);
    if (grpc_was_unfit(call, &unfit)) {
        fail_unprepared(call, &unfit);
        tell_line(call, NULL);
        end_call(pool, call);
        return;
    }
    if (looked_up && go_on(call, code)) {
        link_call(&pool->calls, call);
        call->line->calls_count++;
        return;
    }
    if (call->easy || call->stream)
        answer_judge(call, code, &verdict);
    tell_line(call, &verdict);
    if (atomic_load(&call->run->stop) >= STOP_CANCEL)
        call->report = worker_report(REPORT_OP_COUNT);
    end_call(pool, call);
}

static void take_grpc_ends(struct service_pool *pool, struct service_line *line)
{
    struct service_call *call;
    CURLcode code;

    while (line->grpc && (call = grpc_take_ended(line->grpc, &code)))
        if (call->phase == CALL_PROBES)
            probe_end(call, code);
        else
            on_end(pool, call, code);
}

static void take_ends(struct service_pool *pool, struct service_line *line)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(line->multi, &left))) {
        struct service_call *call = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        if (call->phase == CALL_PROBES)
            probe_end(call, message->data.result);
        else
            on_end(pool, call, message->data.result);
    }
}

/* ---- stops ---- */

/* A pause lets the call end: its end is near, and nothing is gained by a repeat. */
static void end_stopped(struct service_pool *pool)
{
    struct service_call *next;

    for (struct service_call *call = pool->calls; call; call = next) {
        int stop = atomic_load(&call->run->stop);

        next = call->next;
        if (stop == STOP_NONE || stop == STOP_PAUSE)
            continue;
        leave_line(call);
        tell_line(call, NULL);
        call->report = stop == STOP_SHUTDOWN ? given_up(call) : worker_report(REPORT_OP_COUNT);
        end_call(pool, call);
    }
}

/* ---- the loop ---- */

static void drain(int fd)
{
    uint64_t count;

    if (read(fd, &count, sizeof count) < 0)
        return; /* it was read already */
}

static int64_t line_wake_us(const struct service_line *line)
{
    int64_t wake_us = line->timer_us;

    if (line->grpc && grpc_wake_us(line->grpc) < wake_us)
        wake_us = grpc_wake_us(line->grpc);
    if (line->first && line->due_us < wake_us)
        wake_us = line->due_us;
    return line->multi && !line->probe && line->probe_due_us < wake_us ? line->probe_due_us
                                                                       : wake_us;
}

static int wait_ms(struct service_pool *pool, struct service_set *set)
{
    int64_t now_us = clock_boot_us();
    int64_t at_us = now_us + SLEEP_MS_MAX * CLOCK_MS_US;

    if (pool->unsent)
        at_us = now_us + UNSENT_MS * CLOCK_MS_US;
    for (; set; set = set->older)
        for (uint32_t i = 0; i < set->lines_count; i++)
            if (line_wake_us(&set->lines[i]) < at_us)
                at_us = line_wake_us(&set->lines[i]);
    return at_us <= now_us ? 0 : (int)((at_us - now_us + CLOCK_MS_US - 1) / CLOCK_MS_US);
}

static void turn_line(struct service_pool *pool, struct service_line *line)
{
    int running;

    if (!line->multi)
        return;
    if (line->timer_us <= clock_boot_us()) {
        line->timer_us = INT64_MAX;
        curl_multi_socket_action(line->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    if (line->calls_count || line->probe)
        take_ends(pool, line);
    if (!line->probe && line->probe_due_us <= clock_boot_us())
        probe_begin(line);
    take_grpc_ends(pool, line);
    if (line->first && line->due_us <= clock_boot_us())
        begin_waiting(pool, line);
    if (line->grpc)
        grpc_turn(line->grpc);
}

static void on_event(struct service_pool *pool, const struct epoll_event *event)
{
    int fd = event->data.fd, running;
    int what = (event->events & EPOLLIN ? CURL_CSELECT_IN : 0) |
               (event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (event->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    struct service_line *line = (uint32_t)fd < pool->owners_cap ? pool->owners[fd] : NULL;

    if (fd == pool->wake_fd) {
        drain(fd);
    } else if (fd == pool->slot.wake_fd) {
        drain(fd);
        end_stopped(pool);
    } else if (line) {
        if (line->grpc)
            grpc_on_event(line->grpc, fd, event->events);
        curl_multi_socket_action(line->multi, fd, what, &running);
    }
}

/* Connections of a configuration that is over close with the last call. */
static void retire(struct service_line *line)
{
    LOCKED(&line->pool->lock);

    line->probe_due_us = INT64_MAX;
    if (line->held || !line->multi || line->probe)
        return;
    grpc_line_free(line->grpc);
    line->grpc = NULL;
    curl_multi_cleanup(line->multi);
    line->multi = NULL;
    line->timer_us = INT64_MAX;
}

static struct service_set *current_set(struct service_pool *pool)
{
    LOCKED(&pool->lock);

    return pool->set;
}

static bool is_over(struct service_pool *pool)
{
    LOCKED(&pool->lock);

    return pool->over && pool->held == 0;
}

void *service_loop_main(void *ctx)
{
    struct service_pool *pool = ctx;
    struct epoll_event events[EVENTS_MAX];

    while (!is_over(pool)) {
        struct service_set *set = current_set(pool);
        int count = epoll_wait(pool->epoll_fd, events, EVENTS_MAX, wait_ms(pool, set));

        for (int i = 0; i < count; i++)
            on_event(pool, &events[i]);
        take_claimed(pool);
        send_unsent(pool);
        for (struct service_set *at = set = current_set(pool); at; at = at->older)
            for (uint32_t i = 0; i < at->lines_count; i++) {
                turn_line(pool, &at->lines[i]);
                if (at != set)
                    retire(&at->lines[i]);
            }
    }
    return NULL;
}
