/* The load; the check is in workload_check.c. */
#include "remove_folder.h"
#include "workload.h"

#include "workload_int.h"

#include "base/json.h"
#include "core/bounds.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNIT_TASKS 4
#define CLAIM_MAX 6
#define STOP_TRIES 100000 /* of 0.1 ms */
#define BODY_BYTES_MAX (16 * 1024 * 1024)

/* The payload of a task is a function of its number: what is read later can be compared. */
void workload_payload(const struct workload *w, uint32_t task, struct buf *out)
{
    uint64_t state = w->seed * 2654435761u + task;
    size_t bytes = w->promises[task].payload_bytes;

    buf_format(out, "{\"n\":%u,\"fill\":\"", task);
    for (size_t i = 0; i < bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        buf_byte(out, (char)('a' + (state >> 33) % 26));
    }
    buf_text(out, "\"}");
}

void workload_result(uint32_t task, struct buf *out)
{
    buf_format(out, "{\"result\":%u,\"text\":\"what task %u gave\"}", task, task * 7);
}

static int64_t position(struct workload *w)
{
    return w->position ? w->position(w->ctx) : w->acknowledged + w->refused;
}

static void inside(struct workload *w, bool is_inside)
{
    if (w->inside)
        w->inside(w->ctx, is_inside);
}

static void on_fatal(void *ctx, const struct err *reason)
{
    (void)reason;
    atomic_store(&((struct workload *)ctx)->fatal, true);
}

/* A store that failed is never served again: the queue says so, right after the answer. */
static void wait_for_stop(struct workload *w)
{
    struct timespec pause = {0, 100000};

    for (int i = 0; i < STOP_TRIES && !atomic_load(&w->fatal); i++)
        nanosleep(&pause, NULL);
    if (!atomic_load(&w->fatal))
        workload_find(w, "the store failed (%s) and the queue serves on", w->err.text);
    atomic_store(&w->fatal, true);
}

enum outcome { ACKNOWLEDGED, REFUSED, UNKNOWN };

/* One request. An error that leaves the queue running means that nothing of it was done. */
static enum outcome call(struct workload *w, struct request *request)
{
    inside(w, true);
    engine_call(w->engine, request);
    inside(w, false);
    if (request->err.code == ERR_NONE) {
        w->acknowledged++;
        return ACKNOWLEDGED;
    }
    w->refused++;
    w->err = request->err;
    if (request->err.code != ERR_STORAGE)
        return REFUSED;
    wait_for_stop(w);
    return UNKNOWN;
}

static uint32_t promise_new(struct workload *w, size_t payload_bytes, bool brief)
{
    w->promises[w->count] = (struct promise){.unit = w->units,
                                             .payload_bytes = payload_bytes,
                                             .brief = brief,
                                             .asked = NEVER,
                                             .stored = NEVER,
                                             .end_asked = NEVER,
                                             .ended = NEVER,
                                             .remove_asked = NEVER,
                                             .removed = NEVER};
    return w->count++;
}

static void write_task(struct workload *w, struct buf *out, uint32_t task, const char *type)
{
    buf_format(out, "{\"type\":\"%s\",\"idempotency_key\":\"%u\",\"tags\":[\"x\"],"
               "\"max_retries\":0,\"payload\":", type, task);
    workload_payload(w, task, out);
    buf_byte(out, '}');
}

/* What the answer to a request that creates tasks means for them. */
static void settle_unit(struct workload *w, uint32_t first, enum outcome outcome, int64_t asked)
{
    int64_t now = position(w);

    for (uint32_t i = first; i < w->count; i++) {
        w->promises[i].asked = outcome == REFUSED ? NEVER : asked;
        if (outcome == ACKNOWLEDGED)
            w->promises[i].stored = now;
    }
}

static void enqueue_unit(struct workload *w, uint32_t turn)
{
    static const char *const types[UNIT_TASKS] = {"t", "brief", "t", "u"};
    struct enqueue_request request = {.base = {.kind = REQUEST_ENQUEUE, .arena = &w->arena},
                                      .actor = ACTOR_API};
    struct buf body = BUF_INIT(BODY_BYTES_MAX);
    uint32_t first = w->count, tasks = UNIT_TASKS;
    int64_t asked = position(w);
    bool is_array, large = w->large_bytes && turn % 8 == 5;
    enum outcome outcome;

    if (first + UNIT_TASKS + 8 > WORKLOAD_TASKS_MAX)
        return;
    w->units++;
    buf_byte(&body, '[');
    for (uint32_t i = 0; i < tasks; i++) {
        size_t bytes = large ? w->large_bytes : 10 + (w->seed + w->count * 37) % 900;
        uint32_t task = promise_new(w, bytes, i == 1);

        buf_text(&body, i ? "," : "");
        write_task(w, &body, task, types[i]);
    }
    buf_byte(&body, ']');
    if (spec_parse_all(buf_view(&body), &w->settings, &w->arena, &request.inputs, &request.count,
                       &is_array, &w->err) < 0)
        abort(); /* the test's own fault */
    outcome = call(w, &request.base);
    settle_unit(w, first, outcome, asked);
    for (uint32_t i = 0; outcome == ACKNOWLEDGED && i < tasks; i++)
        w->promises[first + i].id = request.tasks[i]->id;
    buf_deinit(&body);
}

static void enter_worker(struct workload *w)
{
    static const struct str queues[] = {{"default", 7}};
    struct register_request request = {
        .base = {.kind = REQUEST_REGISTER, .arena = &w->arena},
        .worker = {.hostname = STR("h"), .pool_size = WORKLOAD_HELD_MAX},
        .queues = queues, .queues_count = 1};

    w->worker_id = STR_NONE;
    if (call(w, &request.base) != ACKNOWLEDGED || request.id.len >= sizeof w->worker_text)
        return;
    memcpy(w->worker_text, request.id.data, request.id.len);
    w->worker_id = str_span(w->worker_text, request.id.len);
}

static void claim_some(struct workload *w)
{
    struct claim_request request = {.base = {.kind = REQUEST_CLAIM, .arena = &w->arena},
                                    .worker_id = w->worker_id, .max = CLAIM_MAX};
    int64_t task;

    if (!w->worker_id.data || w->held_count + CLAIM_MAX > WORKLOAD_HELD_MAX ||
        call(w, &request.base) != ACKNOWLEDGED)
        return;
    for (uint32_t i = 0; i < request.claimed_count; i++) {
        const struct task *claimed = request.claimed[i].task;

        if (!str_to_int64(claimed->spec.idempotency_key, &task) || task >= w->count) {
            workload_find(w, "a claim gave a task that was never made");
            continue;
        }
        w->promises[task].id = claimed->id;
        w->held[w->held_count++] = (struct held){(uint32_t)task, claimed->lease.token};
    }
}

/* The reports of one request, gathered and settled together. */
struct telling {
    struct report reports[4];
    uint32_t count;
    uint32_t first_child, children;
    enum status end;
};

static struct report *tell(struct telling *telling, const struct workload *w,
                           const struct held *held, enum report_op op)
{
    struct report *report = &telling->reports[telling->count++];

    *report = (struct report){.task_id = w->promises[held->task].id,
                              .lease_token = held->lease_token,
                              .op = op,
                              .progress = -1,
                              .delay_ms = -1};
    return report;
}

static void tell_children(struct workload *w, struct telling *telling, const struct held *held,
                          struct buf *text)
{
    w->units++;
    telling->first_child = w->count;
    telling->children = 2;
    buf_byte(text, '[');
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t child = promise_new(w, 30 + i, false);

        buf_text(text, i ? "," : "");
        write_task(w, text, child, "t");
    }
    buf_byte(text, ']');
    tell(telling, w, held, REPORT_SPAWN)->tasks = buf_view(text);
    tell(telling, w, held, REPORT_CONTINUE)->wait_children = true;
}

/* What the handler of a task says: a function of its number. */
static void tell_of(struct workload *w, struct telling *telling, struct held *held,
                    struct buf *text)
{
    uint32_t kind = held->task % 6;
    struct report *report;

    tell(telling, w, held, REPORT_START);
    if (kind == 2 && !w->promises[held->task].split && w->count + 2 <= WORKLOAD_TASKS_MAX) {
        tell_children(w, telling, held, text);
        return;
    }
    if (kind == 4) {
        report = tell(telling, w, held, REPORT_FAIL);
        report->error = STR("it would not");
        telling->end = STATUS_FAILED;
        return;
    }
    if (kind == 5) {
        report = tell(telling, w, held, REPORT_CHECKPOINT);
        report->name = STR("half");
        report->data = STR("{\"at\":5}");
        report->progress = 50;
        report = tell(telling, w, held, REPORT_LOG);
        report->message = STR("half of it is done");
        report->level = SEVERITY_INFO;
    }
    workload_result(held->task, text);
    tell(telling, w, held, REPORT_COMPLETE)->result = buf_view(text);
    telling->end = STATUS_COMPLETED;
}

static void settle_telling(struct workload *w, const struct telling *telling,
                           const struct held *held, enum outcome outcome, int64_t asked,
                           const struct report_result *results)
{
    struct promise *promise = &w->promises[held->task];
    enum outcome last = outcome == ACKNOWLEDGED && results[telling->count - 1].code != ERR_NONE
                            ? REFUSED : outcome;

    if (telling->children) {
        enum outcome made = outcome == ACKNOWLEDGED && results[1].code != ERR_NONE ? REFUSED
                                                                                   : outcome;

        for (uint32_t i = 0; i < telling->children; i++) {
            struct promise *child = &w->promises[telling->first_child + i];

            child->asked = made == REFUSED ? NEVER : asked;
            child->stored = made == ACKNOWLEDGED ? position(w) : NEVER;
        }
        promise->split = made == ACKNOWLEDGED;
    }
    if (telling->end == STATUS_NONE || last == REFUSED)
        return;
    promise->end = telling->end;
    promise->end_asked = asked;
    if (promise->brief)
        promise->remove_asked = asked;
    if (last == ACKNOWLEDGED)
        promise->ended = position(w);
}

static void report_on(struct workload *w, struct held *held)
{
    struct telling telling = {.count = 0};
    struct report_result results[4] = {{ERR_NONE, "", false, false}};
    struct report_request request = {.base = {.kind = REQUEST_REPORT, .arena = &w->arena},
                                     .worker_id = w->worker_id,
                                     .reports = telling.reports,
                                     .results = results};
    struct buf text = BUF_INIT(BODY_BYTES_MAX);
    int64_t asked = position(w);

    tell_of(w, &telling, held, &text);
    request.count = telling.count;
    engine_prepare_reports(w->engine, telling.reports, telling.count, results, &w->arena);
    settle_telling(w, &telling, held, call(w, &request.base), asked, results);
    buf_deinit(&text);
}

static void control(struct workload *w, uint32_t task, enum control_op op, enum status end)
{
    struct promise *promise = &w->promises[task];
    struct control_request request = {.base = {.kind = REQUEST_CONTROL, .arena = &w->arena},
                                      .task_id = promise->id,
                                      .op = op,
                                      .actor = ACTOR_USER,
                                      .if_version = -1};
    int64_t asked = position(w);
    enum outcome outcome = call(w, &request.base);
    int64_t *wanted = op == CONTROL_DELETE ? &promise->remove_asked : &promise->end_asked;

    if (outcome == REFUSED)
        return;
    if (op != CONTROL_DELETE)
        promise->end = end;
    if (promise->brief && op != CONTROL_DELETE)
        promise->remove_asked = asked;
    *wanted = asked;
    if (outcome == ACKNOWLEDGED)
        *(op == CONTROL_DELETE ? &promise->removed : &promise->ended) = position(w);
}

/* One waiting task is cancelled and one ended task is deleted. */
static void control_some(struct workload *w)
{
    bool cancelled = false, deleted = false;

    for (uint32_t i = w->count; i-- > 0 && !atomic_load(&w->fatal) && !(cancelled && deleted);) {
        struct promise *promise = &w->promises[i];

        if (uuid_is_nil(&promise->id) || promise->brief || i % 6 == 2)
            continue;
        if (!cancelled && promise->stored != NEVER && promise->end_asked == NEVER) {
            control(w, i, CONTROL_CANCEL, STATUS_CANCELLED);
            cancelled = true;
        } else if (!deleted && promise->ended != NEVER && promise->remove_asked == NEVER) {
            control(w, i, CONTROL_DELETE, STATUS_NONE);
            deleted = true;
        }
    }
}

bool workload_round(struct workload *w, uint32_t turn)
{
    arena_reset(&w->arena);
    enqueue_unit(w, turn);
    if (!w->worker_id.data)
        enter_worker(w);
    claim_some(w);
    for (uint32_t i = 0; i < w->held_count && !atomic_load(&w->fatal); i++)
        report_on(w, &w->held[i]);
    w->held_count = 0;
    if (turn % 3 == 2)
        control_some(w);
    return !atomic_load(&w->fatal);
}

void workload_init(struct workload *w, unsigned seed)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    strcpy(w->folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/perdura-load-XXXXXX"
                                                    : "/tmp/perdura-load-XXXXXX");
    if (!mkdtemp(w->folder))
        abort();
    snprintf(w->path, sizeof w->path, "%s/p.db", w->folder);
    snprintf(w->archive, sizeof w->archive, "%s/archive", w->folder);
    w->rule = (struct handler_rule){.type = STR("brief"), .timeout_ms = -1, .grace_ms = -1,
                                    .max_retries = -1, .retry_delay_ms = -1,
                                    .max_retry_delay_ms = -1, .output_bytes_max = -1,
                                    .retention_ms = 1};
    w->settings = (struct settings){.pool.slots = -1, .lease_ms = 30000, .leader_lease_ms = 30000,
                                    .worker_timeout_ms = -1, .grace_ms = 50,
                                    .handlers = &w->rule, .handlers_count = 1,
                                    .retention = {.archive = str_of(w->archive)}};
}

bool workload_open(struct workload *w)
{
    struct store_options options = {.allow_network_fs = true};
    struct engine_config config = {.settings = &w->settings, .on_fatal = on_fatal, .ctx = w};
    int rc;

    atomic_store(&w->fatal, false);
    w->worker_id = STR_NONE;
    w->held_count = 0;
    inside(w, true);
    rc = store_open(&w->store, str_of(w->path), &options, &w->err);
    if (rc < 0)
        w->store = NULL;
    else
        rc = engine_open(&w->engine, w->store, &config, &w->err);
    if (rc < 0) {
        if (w->store)
            w->store->verbs->close(w->store);
        w->store = NULL;
        w->engine = NULL;
    }
    inside(w, false);
    return rc == 0;
}

void workload_close(struct workload *w)
{
    inside(w, true);
    if (w->engine)
        engine_close(w->engine);
    if (w->store)
        w->store->verbs->close(w->store);
    inside(w, false);
    w->engine = NULL;
    w->store = NULL;
}

bool workload_life(struct workload *w, uint32_t rounds, uint32_t reopen_after, bool *opened)
{
    *opened = true;
    for (uint32_t turn = 0; turn < rounds; turn++) {
        if (!w->engine && !workload_open(w)) {
            *opened = false;
            return false;
        }
        if (!workload_round(w, turn))
            return false;
        if (turn == reopen_after)
            workload_close(w);
    }
    return true;
}

void workload_deinit(struct workload *w)
{
    workload_close(w);
    remove_folder(w->archive);
    remove_folder(w->folder);
    arena_deinit(&w->arena);
}
