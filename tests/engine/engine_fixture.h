/* A real queue over a real SQLite store in a folder of its own, and short ways to use it. Requests
 * go through the queue's public interface, one at a time unless a test holds the queue back to get
 * several into one commit. What a test reads is what was committed. Included by test programs only;
 * all functions are static. */
#ifndef TESTS_QUEUE_FIXTURE_H
#define TESTS_QUEUE_FIXTURE_H

#include "base/json.h"
#include "calendar/zones.h"
#include "core/bounds.h"
#include "engine/engine.h"
#include "remove_folder.h"

#include <dirent.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pg_schema.h"

#define DEADLINE_MS 55000 /* no test waits longer for what must come */
#define RULES_MAX 8

struct fixture {
    char folder[64];
    char path[96];
    char where[320]; /* the same, or a schema of its own in a PostgreSQL database */
    char archive[96];
    struct configuration { /* a test may change it; in force from the next open on */
        struct settings settings;
        struct queue_rule rules[RULES_MAX];
        struct handler_rule handlers[RULES_MAX];
    } wanted, in_force;
    struct store *store;
    struct store_reader *reader;
    struct engine *engine;
    struct zones *zones;
    bool (*validates)(void *ctx, struct str type); /* types with a validator, from the next open */
    char zoneinfo[96]; /* another folder of zones, in force from the first open on */
    struct arena arena; /* everything a test gets */
    struct err err;
    /* the held batch */
    struct stats_request gate;
    struct arena gate_arena;
    sem_t entered, open;
    bool held;
};

static inline int64_t fx_now_ms(void)
{
    return clock_boot_us() / CLOCK_MS_US;
}

static inline void fx_open(struct fixture *fx)
{
    struct store_options options = {.allow_network_fs = true,
                                    .any_schema = fx->wanted.settings.allow_changed_schema};
    struct engine_config config = {.settings = &fx->in_force.settings};

    if (!fx->zones)
        assert_int_equal(zones_new(fx->zoneinfo[0] ? fx->zoneinfo : NULL, &fx->zones, &fx->err),
                         0);
    config.zones = fx->zones;
    config.validates = fx->validates;
    fx->in_force = fx->wanted;
    config.anchor = fx->in_force.settings.logs.anchor;
    fx->in_force.settings.queues = fx->in_force.rules;
    fx->in_force.settings.handlers = fx->in_force.handlers;
    if (store_open(&fx->store, str_of(fx->where), &options, &fx->err) < 0)
        fail_msg("%s", fx->err.text);
    if (engine_open(&fx->engine, fx->store, &config, &fx->err) < 0)
        fail_msg("%s", fx->err.text);
    fx->reader = fx->store->verbs->reader_open(fx->store, &fx->err);
    assert_non_null(fx->reader);
}

static inline void fx_let_go(struct fixture *fx)
{
    if (fx->held)
        sem_post(&fx->open);
    fx->held = false;
}

static inline void fx_close(struct fixture *fx)
{
    fx_let_go(fx);
    if (fx->reader)
        fx->store->verbs->reader_close(fx->reader);
    if (fx->engine)
        engine_close(fx->engine);
    if (fx->store)
        fx->store->verbs->close(fx->store);
    fx->reader = NULL;
    fx->engine = NULL;
    fx->store = NULL;
}

static inline void reopen(struct fixture *fx)
{
    fx_close(fx);
    fx_open(fx);
}

static inline int fx_setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    const char *place = getenv("TMPDIR");

    assert_non_null(fx);
    snprintf(fx->folder, sizeof fx->folder, "%s/perdura-queue-XXXXXX",
             place && strlen(place) < 40 ? place : "/tmp");
    assert_non_null(mkdtemp(fx->folder));
    snprintf(fx->path, sizeof fx->path, "%s/p.db", fx->folder);
    snprintf(fx->archive, sizeof fx->archive, "%s/archive", fx->folder);
    if (pg_schema_wanted())
        pg_schema_make(fx->where, sizeof fx->where);
    else
        snprintf(fx->where, sizeof fx->where, "%s", fx->path);
    sem_init(&fx->entered, 0, 0);
    sem_init(&fx->open, 0, 0);
    fx->wanted.settings = (struct settings){.pool.slots = -1,
                                            .lease_ms = 30000,
                                            .leader_lease_ms = 30000,
                                            .worker_timeout_ms = -1,
                                            .grace_ms = 50};
    fx_open(fx);
    *state = fx;
    return 0;
}

static inline int fx_teardown(void **state)
{
    struct fixture *fx = *state;

    fx_close(fx);
    zones_free(fx->zones);
    if (pg_schema_wanted())
        pg_schema_drop(fx->where);
    remove_folder(fx->archive);
    remove_folder(fx->folder);
    arena_deinit(&fx->arena);
    arena_deinit(&fx->gate_arena);
    sem_destroy(&fx->entered);
    sem_destroy(&fx->open);
    free(fx);
    return 0;
}

#define QUEUE_TEST(name) cmocka_unit_test_setup_teardown(name, fx_setup, fx_teardown)

/* Leases of this length from now on. */
static inline void fx_lease(struct fixture *fx, int64_t lease_ms)
{
    fx->wanted.settings.lease_ms = lease_ms;
    reopen(fx);
}

/* Compares the whole store with itself (V1 to V7 as far as a store can show them). */
static inline void fx_tell(void *ctx, const char *line)
{
    (void)ctx;
    print_error("verify: %s\n", line);
}

static inline void fx_verify(struct fixture *fx)
{
    int64_t findings = 0;

    fx_let_go(fx);
    fx->store->verbs->reader_close(fx->reader);
    fx->reader = NULL;
    engine_close(fx->engine);
    fx->engine = NULL;
    assert_int_equal(fx->store->verbs->verify(fx->store, fx_tell, NULL, &findings, &fx->err), 0);
    assert_int_equal(findings, 0);
    reopen(fx);
}

/* The queue stands still in an answer: what is submitted until fx_let_go is one commit. */
static inline void fx_gate_done(struct request *request)
{
    struct fixture *fx = request->ctx;

    sem_post(&fx->entered);
    sem_wait(&fx->open);
}

static inline void fx_hold(struct fixture *fx)
{
    arena_reset(&fx->gate_arena);
    fx->gate = (struct stats_request){.base = {.kind = REQUEST_STATS,
                                               .arena = &fx->gate_arena,
                                               .done = fx_gate_done,
                                               .ctx = fx}};
    fx->held = true;
    engine_submit(fx->engine, &fx->gate.base);
    sem_wait(&fx->entered);
}

/* ---- enqueue ---- */

static inline struct enqueue_request *enqueue_prepare(struct fixture *fx, struct arena *arena,
                                                      struct str json)
{
    struct enqueue_request *request = arena_alloc(arena, sizeof *request);
    bool is_array;

    assert_non_null(request);
    request->base = (struct request){.kind = REQUEST_ENQUEUE, .arena = arena};
    request->actor = ACTOR_API;
    if (json_check(json, NULL, &fx->err) < 0 ||
        spec_parse_all(json, &fx->in_force.settings, arena, &request->inputs, &request->count,
                       &is_array, &fx->err) < 0)
        fail_msg("%s", fx->err.text);
    return request;
}

static inline struct str fx_format(struct fixture *fx, const char *format, va_list args)
{
    char *text = NULL;
    struct str copy;
    int len = vasprintf(&text, format, args);

    assert_true(len >= 0);
    copy = arena_str(&fx->arena, str_span(text, (size_t)len));
    free(text);
    return copy;
}

/* Whatever the answer is. */
__attribute__((format(printf, 2, 3)))
static inline struct enqueue_request *enqueue_json(struct fixture *fx, const char *format, ...)
{
    struct enqueue_request *request;
    va_list args;

    va_start(args, format);
    request = enqueue_prepare(fx, &fx->arena, fx_format(fx, format, args));
    va_end(args);
    engine_call(fx->engine, &request->base);
    return request;
}

/* One task that must be taken. */
__attribute__((format(printf, 2, 3)))
static inline struct uuid enqueue(struct fixture *fx, const char *format, ...)
{
    struct enqueue_request *request;
    va_list args;

    va_start(args, format);
    request = enqueue_prepare(fx, &fx->arena, fx_format(fx, format, args));
    va_end(args);
    if (engine_call(fx->engine, &request->base) < 0)
        fail_msg("enqueue: %s", request->base.err.text);
    assert_int_equal(request->count, 1);
    return request->tasks[0]->id;
}

static inline const char *id_text(struct fixture *fx, struct uuid id)
{
    char *text = arena_alloc(&fx->arena, UUID_TEXT_BYTES);

    assert_non_null(text);
    uuid_format(&id, text);
    return text;
}

/* ---- reading ---- */

static inline struct task *get_or_null(struct fixture *fx, struct uuid id)
{
    struct task *task = NULL;

    assert_int_equal(fx->store->verbs->read_task(fx->reader, &id, &fx->arena, &task, &fx->err), 0);
    return task;
}

static inline struct task *get(struct fixture *fx, struct uuid id)
{
    struct task *task = get_or_null(fx, id);

    assert_non_null(task);
    return task;
}

#define assert_status(fx, id, expected)                                                     \
    assert_string_equal(status_word(get((fx), (id))->status), status_word(expected))

static inline struct str result_of(struct fixture *fx, struct uuid id)
{
    struct str payload = STR_NONE;
    int64_t created_us;

    assert_int_equal(fx->store->verbs->read_result(fx->reader, &id, &fx->arena, &payload,
                                                   &created_us, &fx->err), 0);
    return payload;
}

/* Oldest first; at most 1,000. */
static inline struct task_event *events_of(struct fixture *fx, struct uuid id, uint32_t *count)
{
    struct task_event *events;
    struct task_event swap;

    assert_int_equal(fx->store->verbs->read_events(fx->reader, &id, 0, 1000, &fx->arena, &events,
                                                   count, &fx->err), 0);
    for (uint32_t i = 0; i < *count / 2; i++) {
        swap = events[i];
        events[i] = events[*count - 1 - i];
        events[*count - 1 - i] = swap;
    }
    return events;
}

/* "pending claimed running completed", oldest first. */
static inline const char *story_of(struct fixture *fx, struct uuid id)
{
    uint32_t count;
    struct task_event *events = events_of(fx, id, &count);
    struct buf text = BUF_INIT(1024 * 1024);
    const char *copy;

    for (uint32_t i = 0; i < count; i++)
        buf_format(&text, "%s%s", i ? " " : "", status_word(events[i].status));
    copy = arena_cstr(&fx->arena, buf_view(&text));
    buf_deinit(&text);
    return copy;
}

/* Newest first. */
static inline struct execution *executions_of(struct fixture *fx, struct uuid id, uint32_t *count)
{
    struct execution *executions;

    assert_int_equal(fx->store->verbs->read_executions(fx->reader, &id, 0, 1000, &fx->arena,
                                                       &executions, count, &fx->err), 0);
    return executions;
}

static inline bool has_text(struct str text, const char *part)
{
    return text.data && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static inline void fx_pause_ms(int64_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* Looks until the condition holds; fails at the deadline. */
#define wait_until(condition)                                                               \
    do {                                                                                    \
        int64_t deadline_ms = fx_now_ms() + DEADLINE_MS;                                    \
        while (!(condition)) {                                                              \
            if (fx_now_ms() > deadline_ms)                                                  \
                fail_msg("waited too long for: %s", #condition);                            \
            fx_pause_ms(2);                                                                 \
        }                                                                                   \
    } while (0)

#define wait_status(fx, id, expected) wait_until(get((fx), (id))->status == (expected))

/* ---- workers ---- */

static inline struct register_request *register_as(struct fixture *fx, const char *id,
                                                   const char *queue, bool in_process)
{
    struct register_request *request = arena_alloc(&fx->arena, sizeof *request);
    struct str *queues = arena_alloc(&fx->arena, sizeof *queues);

    assert_non_null(request);
    queues[0] = str_of(queue);
    *request = (struct register_request){.base = {.kind = REQUEST_REGISTER, .arena = &fx->arena},
                                         .worker = {.id = str_of(id),
                                                    .hostname = STR("host"),
                                                    .pool_size = 4},
                                         .queues = queues,
                                         .queues_count = 1,
                                         .in_process = in_process};
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    return request;
}

/* A worker of the queue; its id. */
static inline const char *worker(struct fixture *fx, const char *id, const char *queue)
{
    register_as(fx, id, queue, false);
    return id;
}

static inline struct claim_request *claim_prepare(struct arena *arena, const char *worker_id,
                                                  uint32_t max, int64_t wait_ms)
{
    struct claim_request *request = arena_alloc(arena, sizeof *request);

    assert_non_null(request);
    *request = (struct claim_request){.base = {.kind = REQUEST_CLAIM, .arena = arena},
                                      .worker_id = str_of(worker_id),
                                      .max = max,
                                      .wait_ms = wait_ms};
    return request;
}

/* From the queues it registered. */
static inline struct claim_request *claim(struct fixture *fx, const char *worker_id, uint32_t max,
                                          int64_t wait_ms)
{
    struct claim_request *request = claim_prepare(&fx->arena, worker_id, max, wait_ms);

    engine_call(fx->engine, &request->base);
    return request;
}

/* The one task that must come. */
static inline struct claimed *claim_one(struct fixture *fx, const char *worker_id)
{
    struct claim_request *request = claim(fx, worker_id, 1, DEADLINE_MS);

    if (request->base.err.code != ERR_NONE)
        fail_msg("claim: %s", request->base.err.text);
    assert_int_equal(request->claimed_count, 1);
    return &request->claimed[0];
}

/* Nothing to be had now. */
static inline void claim_none(struct fixture *fx, const char *worker_id)
{
    struct claim_request *request = claim(fx, worker_id, 10, 0);

    assert_int_equal(request->base.err.code, ERR_NONE);
    assert_int_equal(request->claimed_count, 0);
}

/* ---- reports ---- */

static inline struct report_request *report_prepare(struct fixture *fx, struct arena *arena,
                                                    const char *worker_id,
                                                    const struct report *reports, uint32_t count)
{
    struct report_request *request = arena_alloc(arena, sizeof *request);

    assert_non_null(request);
    *request = (struct report_request){
        .base = {.kind = REQUEST_REPORT, .arena = arena},
        .worker_id = str_of(worker_id),
        .reports = arena_copy(arena, reports, count * sizeof *reports),
        .count = count,
        .results = arena_alloc_array(arena, count, sizeof(struct report_result))};
    engine_prepare_reports(fx->engine, request->reports, count, request->results, arena);
    return request;
}

static inline struct report_result report_one(struct fixture *fx, const char *worker_id,
                                              const struct report *report)
{
    struct report_request *request = report_prepare(fx, &fx->arena, worker_id, report, 1);

    if (engine_call(fx->engine, &request->base) < 0)
        fail_msg("report: %s", request->base.err.text);
    return request->results[0];
}

/* A report on what was claimed, with the fields that differ from none given after the defaults. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define REPORT(claimed_task, ...) \
    ((struct report){.task_id = (claimed_task)->id, \
                     .lease_token = (claimed_task)->lease.token, \
                     .progress = -1, \
                     .delay_ms = -1, \
                     .retryable = true, \
                     __VA_ARGS__})

#define report(fx, worker_id, claimed_task, ...)                                            \
    (report_one((fx), (worker_id), &REPORT((claimed_task), __VA_ARGS__)).code)

#define report_ok(fx, worker_id, claimed_task, ...)                                         \
    assert_int_equal(report((fx), (worker_id), (claimed_task), __VA_ARGS__), ERR_NONE)

/* ---- control, waits, queues ---- */

static inline struct control_request *control_prepare(struct arena *arena, struct uuid id,
                                                      enum control_op op)
{
    struct control_request *request = arena_alloc(arena, sizeof *request);

    assert_non_null(request);
    *request = (struct control_request){.base = {.kind = REQUEST_CONTROL, .arena = arena},
                                        .task_id = id,
                                        .op = op,
                                        .actor = ACTOR_USER,
                                        .if_version = -1};
    return request;
}

static inline enum err_code control(struct fixture *fx, struct uuid id, enum control_op op)
{
    struct control_request *request = control_prepare(&fx->arena, id, op);

    engine_call(fx->engine, &request->base);
    return request->base.err.code;
}

static inline enum err_code prioritize(struct fixture *fx, struct uuid id, int64_t priority)
{
    struct control_request *request = control_prepare(&fx->arena, id, CONTROL_PRIORITIZE);

    request->priority = priority;
    engine_call(fx->engine, &request->base);
    return request->base.err.code;
}

static inline struct heartbeat_request *heartbeat(struct fixture *fx, const char *worker_id,
                                                  struct task *const *tasks, uint32_t count)
{
    struct heartbeat_request *request = arena_alloc(&fx->arena, sizeof *request);

    *request = (struct heartbeat_request){.base = {.kind = REQUEST_HEARTBEAT, .arena = &fx->arena},
                                          .worker_id = str_of(worker_id)};
    if (tasks) { /* NULL: all it holds */
        request->task_ids = arena_alloc_array(&fx->arena, count, sizeof *request->task_ids);
        request->lease_tokens = arena_alloc_array(&fx->arena, count,
                                                  sizeof *request->lease_tokens);
        request->count = count;
    }
    for (uint32_t i = 0; i < request->count; i++) {
        request->task_ids[i] = tasks[i]->id;
        request->lease_tokens[i] = tasks[i]->lease.token;
    }
    engine_call(fx->engine, &request->base);
    return request;
}

static inline void leave(struct fixture *fx, const char *worker_id)
{
    struct leave_request request = {.base = {.kind = REQUEST_LEAVE, .arena = &fx->arena},
                                    .worker_id = str_of(worker_id)};

    assert_int_equal(engine_call(fx->engine, &request.base), 0);
}

/* Changes what `set` names. */
static inline void patch(struct fixture *fx, const char *name, unsigned set,
                         struct queue_rule rule)
{
    struct queue_patch_request request = {
        .base = {.kind = REQUEST_QUEUE_PATCH, .arena = &fx->arena},
        .name = str_of(name),
        .rule = rule,
        .set = set};

    assert_int_equal(engine_call(fx->engine, &request.base), 0);
}

static inline void pause_queue(struct fixture *fx, const char *name, bool paused)
{
    struct queue_patch_request request = {
        .base = {.kind = REQUEST_QUEUE_PATCH, .arena = &fx->arena},
        .name = str_of(name),
        .pause = paused,
        .resume = !paused};

    assert_int_equal(engine_call(fx->engine, &request.base), 0);
}

static inline struct engine_stats stats_of(struct fixture *fx)
{
    struct stats_request request = {.base = {.kind = REQUEST_STATS, .arena = &fx->arena}};

    assert_int_equal(engine_call(fx->engine, &request.base), 0);
    return request.stats;
}

/* By SQL on the closed store; then it is opened again. */
static inline void fx_sql(struct fixture *fx, const char *text)
{
    sqlite3 *db = NULL;

    fx_close(fx);
    if (pg_schema_wanted()) {
        pg_schema_run(fx->where, text);
        fx_open(fx);
        return;
    }
    assert_int_equal(sqlite3_open(fx->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
    sqlite3_close(db);
    fx_open(fx);
}

/* A number by SQL, read beside the open store. */
static inline int64_t fx_ask(struct fixture *fx, const char *text)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    int64_t number;

    if (pg_schema_wanted())
        return pg_schema_ask(fx->where, text);
    assert_int_equal(sqlite3_open_v2(fx->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return number;
}

#endif
