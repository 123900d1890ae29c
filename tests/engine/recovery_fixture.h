/* Short ways to lose tasks and to recover them, over the queue's fixture. Included by test programs
 * only; all functions are static. */
#ifndef TESTS_RECOVERY_FIXTURE_H
#define TESTS_RECOVERY_FIXTURE_H

#include "engine_fixture.h"

#include "store/recovery_store.h"

#define LEASE_MS 600 /* a busy machine reports within it */

static inline const struct recovery_verbs *verbs(struct fixture *fx)
{
    return fx->store->verbs->recovery;
}

/* All entries of a task, newest first. */
static inline struct recovery_entry *entries_of(struct fixture *fx, struct uuid id, uint32_t *count)
{
    struct recovery_filter filter = {.status = -1, .method = -1, .task_id = id, .limit = 100};
    struct recovery_entry *entries;

    assert_int_equal(verbs(fx)->read_entries(fx->reader, &filter, &fx->arena, &entries, count,
                                             &fx->err), 0);
    return entries;
}

static inline struct recovery_entry *entry_of(struct fixture *fx, struct uuid id)
{
    uint32_t count;
    struct recovery_entry *entries = entries_of(fx, id, &count);

    assert_int_equal(count, 1);
    return &entries[0];
}

static inline struct recovery_entry *entry_by_id(struct fixture *fx, struct uuid id)
{
    struct recovery_entry *entry = NULL;

    assert_int_equal(verbs(fx)->read_entry(fx->reader, &id, &fx->arena, &entry, &fx->err), 0);
    return entry;
}

static inline struct recovery_request *ask(struct fixture *fx, struct uuid id, enum recovery_op op,
                                    enum recovery_method method)
{
    struct recovery_request *request = arena_alloc(&fx->arena, sizeof *request);

    *request = (struct recovery_request){.base = {.kind = REQUEST_RECOVERY, .arena = &fx->arena},
                                         .op = op,
                                         .task_id = id,
                                         .method = method};
    engine_call(fx->engine, &request->base);
    return request;
}

static inline struct uuid put(struct fixture *fx, struct uuid id, enum recovery_method method)
{
    struct recovery_request *request = ask(fx, id, RECOVERY_OP_PUT, method);

    assert_int_equal(request->base.err.code, ERR_NONE);
    return request->entry.id;
}

static inline const char *reason_of(struct fixture *fx, struct uuid id)
{
    struct recovery_request *request = ask(fx, id, RECOVERY_OP_VALIDATE,
                                           RECOVERY_RESUME_CHECKPOINT);

    if (request->base.err.code == ERR_NOT_FOUND)
        return "not_found";
    assert_int_equal(request->base.err.code, ERR_NONE);
    return recovery_reason_word(request->reason);
}

#define wait_entry(fx, id, expected) \
    wait_until(entry_by_id((fx), (id))->status == (expected))

/* A worker whose lease is not renewed loses what it holds. */
static inline struct task *lose(struct fixture *fx, struct uuid id, bool checkpoint)
{
    struct task *held;

    worker(fx, "lost", "q");
    held = claim_one(fx, "lost")->task;
    assert_true(uuid_eq(&held->id, &id));
    if (checkpoint)
        report_ok(fx, "lost", held, .op = REPORT_CHECKPOINT, .name = STR("half"), .progress = 50,
                  .data = STR("{\"n\":1}"));
    else
        report_ok(fx, "lost", held, .op = REPORT_START);
    wait_until(!get(fx, id)->lease.held);
    return held;
}

static inline struct uuid lost_task(struct fixture *fx, const char *fields, bool checkpoint)
{
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"%s}", fields);

    lose(fx, id, checkpoint);
    return id;
}

static inline struct uuid orphan(struct fixture *fx, const char *fields, bool checkpoint)
{
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"auto_recovery\":false%s}",
                             fields);

    lose(fx, id, checkpoint);
    assert_status(fx, id, STATUS_ORPHANED);
    return id;
}

static inline struct uuid partial_task(struct fixture *fx, const char *fields)
{
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"p\"%s}", fields);
    struct task *held;

    worker(fx, "p", "p");
    held = claim_one(fx, "p")->task;
    report_ok(fx, "p", held, .op = REPORT_PARTIAL, .result = STR("{\"done\":3}"));
    return id;
}

/* A worker that says what it runs: a type, "" = nothing, NULL = any. */
static inline void typed_worker(struct fixture *fx, const char *id, const char *type)
{
    struct str queues[] = {STR("q")}, types[] = {str_of(type ? type : "")};
    struct register_request request = {.base = {.kind = REQUEST_REGISTER, .arena = &fx->arena},
                                       .worker = {.id = str_of(id), .hostname = STR("host"),
                                                  .pool_size = 1},
                                       .queues = queues,
                                       .queues_count = 1,
                                       .types = type ? types : NULL,
                                       .types_count = type && *type ? 1 : 0};

    assert_int_equal(engine_call(fx->engine, &request.base), 0);
}

/* ---- asking validators ---- */

static inline bool validates_t(void *ctx, struct str type)
{
    (void)ctx;
    return !type.data || str_is(type, "t");
}

static inline struct recovery_work_request *work(struct fixture *fx,
                                                 const struct recovery_result *result,
                                                 uint32_t limit)
{
    struct recovery_work_request *request = arena_alloc(&fx->arena, sizeof *request);

    *request = (struct recovery_work_request){
        .base = {.kind = REQUEST_RECOVERY_WORK, .arena = &fx->arena},
        .results = result ? arena_copy(&fx->arena, result, sizeof *result) : NULL,
        .results_count = result ? 1 : 0,
        .limit = limit};
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    return request;
}

static inline struct recovery_work work_one(struct fixture *fx)
{
    struct recovery_work_request *request;

    do {
        request = work(fx, NULL, 1);
    } while (request->works_count == 0 && request->next_at_us != INT64_MAX &&
             (fx_pause_ms(2), true));
    assert_int_equal(request->works_count, 1);
    return request->works[0];
}

#endif
