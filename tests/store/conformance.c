/* Runner and helpers of the conformance suite: a fresh store for every test, tasks to fill it with.
 * The tests themselves are in conformance_*.c, by subject. */
#include "conformance.h"
#include "new_task.h"

#include "store/sealed/sealed.h"

#include <stdio.h>
#include <stdlib.h>

#define TESTS_MAX 256
#define NAMES_MAX 32

void conformance_ok(int rc, const struct err *err, const char *what, const char *file, int line)
{
    if (rc == 0)
        return;
    print_error("%s: %d (%s)\n", what, rc, err->text);
    _fail(file, line);
}

void store_begin(struct conformance *c)
{
    OK(c, c->verbs->begin(c->store, &c->err));
}

void store_commit(struct conformance *c)
{
    OK(c, c->verbs->commit(c->store, &c->err));
}

void store_rollback(struct conformance *c)
{
    c->verbs->rollback(c->store);
}

void store_close(struct conformance *c)
{
    if (c->reader)
        c->verbs->reader_close(c->reader);
    if (c->store)
        c->verbs->close(c->store);
    c->reader = NULL;
    c->store = NULL;
}

void store_open_again(struct conformance *c)
{
    struct store_options options = {.allow_network_fs = true};

    OK(c, store_open(&c->store, str_of(c->where), &options, &c->err));
    if (c->keyring)
        OK(c, sealed_install(c->store, c->keyring, &c->err));
    c->verbs = c->store->verbs;
    c->reader = c->verbs->reader_open(c->store, &c->err);
    if (!c->reader)
        fail_msg("%s", c->err.text);
}

void store_reopen(struct conformance *c)
{
    store_close(c);
    store_open_again(c);
}

struct keyring *given_keyring(const char *id, uint8_t byte)
{
    uint8_t bytes[SEAL_KEY_BYTES];
    struct encryption_key key = {.id = str_of(id),
                                 .secret = str_span((const char *)bytes, sizeof bytes)};
    struct encryption_settings settings = {.keys = &key, .keys_count = 1, .current = key.id};
    struct keyring *keyring;
    struct err err = {0};

    memset(bytes, byte, sizeof bytes);
    keyring = keyring_new(&settings, &err);
    assert_non_null(keyring);
    return keyring;
}

static int setup(void **state)
{
    struct conformance *c = calloc(1, sizeof *c);

    assert_non_null(c);
    c->kind = *state;
    c->kind->make(c->where, sizeof c->where);
    c->keyring = c->kind->sealed ? given_keyring("k1", 1) : NULL;
    store_open_again(c);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct conformance *c = *state;

    store_close(c);
    c->kind->drop(c->where);
    keyring_free(c->keyring);
    arena_deinit(&c->arena);
    free(c);
    return 0;
}

static size_t add_tests(struct CMUnitTest *out, size_t count, const struct conformance_test *tests,
                        const struct conformance_kind *kind)
{
    for (; tests->name; tests++) {
        union {
            const struct conformance_kind *given;
            void *state; /* only read by setup, which makes it const again */
        } initial = {.given = kind};

        assert_true(count < TESTS_MAX);
        out[count++] = (struct CMUnitTest){tests->name, tests->run, setup, teardown,
                                           initial.state};
    }
    return count;
}

int conformance_run(const struct conformance_kind *kind)
{
    static const struct conformance_test *const tables[] = {
        conformance_tasks_tests,     conformance_uniques_tests,  conformance_ready_tests,
        conformance_find_tests,      conformance_history_tests,  conformance_retention_tests,
        conformance_registry_tests,  conformance_tokens_tests,  conformance_read_tests,     conformance_whole_tests,
        conformance_model_tests,     conformance_catalog_tests,  conformance_plans_tests,
        conformance_runs_tests,      conformance_executions_tests,
        conformance_rivals_tests,    conformance_logs_tests,     conformance_measures_tests,
        conformance_audit_tests};
    struct CMUnitTest tests[TESTS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        count = add_tests(tests, count, tables[i], kind);
    return _cmocka_run_group_tests(kind->name, tests, count, NULL, NULL);
}

struct task *given_task(struct conformance *c, const char *queue, const char *type)
{
    struct task *task = new_task(c->store, &c->ids, &c->arena, queue, type, T0_US);

    task->spec.seal.encrypt = c->keyring != NULL;
    return task;
}

struct task *given_ready(struct conformance *c, const char *queue, const char *type,
                         int64_t order_key)
{
    struct task *task = given_task(c, queue, type);

    task->order_key = order_key;
    insert_task(c, task);
    return task;
}

void insert_task(struct conformance *c, struct task *task)
{
    OK(c, c->verbs->tasks_insert(c->store, &task, 1, &c->err));
}

void save_task(struct conformance *c, struct task *task)
{
    task->version++;
    OK(c, c->verbs->tasks_save(c->store, &task, 1, &c->err));
}

struct task *load_task(struct conformance *c, const struct uuid *id, unsigned parts)
{
    struct task *task = NULL;

    OK(c, c->verbs->tasks_load(c->store, id, 1, parts, &c->arena, &task, &c->err));
    return task;
}

struct task *read_task(struct conformance *c, const struct uuid *id)
{
    struct task *task = NULL;

    OK(c, c->verbs->read_task(c->reader, id, &c->arena, &task, &c->err));
    return task;
}

void claim_task(struct task *task, const char *worker_id)
{
    task->previous_status = task->status;
    task->status = STATUS_CLAIMED;
    task->lease.worker_id = str_of(worker_id);
    task->lease.held = true;
    task->counts.attempts++;
    task->lease.token++;
    task->lease.until_us = T0_US + 30 * SECOND_US;
    task->lease.claimed_at_us = T0_US;
}

struct execution given_execution(struct conformance *c, const struct task *task,
                                 int64_t created_at_us)
{
    int64_t key = c->verbs->execution_key_next(c->store, 0);
    struct uuid id = uuid7_new_keyed(&c->ids, created_at_us, key);

    id.bytes[15] = 0; /* its events get ids of their own from it, as from those the queue makes */
    return (struct execution){.key = key,
                              .id = id,
                              .task_key = task->key,
                              .task_id = task->id,
                              .status = EXECUTION_PENDING,
                              .attempt_number = task->counts.attempts,
                              .lease_token = task->lease.token,
                              .worker_id = task->lease.worker_id,
                              .claim_seq = task->event_seq,
                              .created_at_us = created_at_us};
}

int64_t count_of(struct conformance *c, const char *queue, const char *type, enum status status)
{
    struct lane_count *counts;
    uint32_t count;

    OK(c, c->verbs->counts_load(c->store, &c->arena, &counts, &count, &c->err));
    for (uint32_t i = 0; i < count; i++)
        if (str_is(counts[i].queue, queue) && str_is(counts[i].type, type) &&
            counts[i].status == status)
            return counts[i].tasks;
    return 0;
}

static enum admit take_all(void *ctx, struct str queue, struct str type, struct str limit_key,
                           const struct uuid *category_id)
{
    (void)ctx;
    (void)queue;
    (void)type;
    (void)limit_key;
    (void)category_id;
    return ADMIT_TAKE;
}

static uint32_t strs_of(const char *const *texts, struct str *out)
{
    uint32_t count = 0;

    for (; texts && texts[count]; count++) {
        assert_true(count < NAMES_MAX);
        out[count] = str_of(texts[count]);
    }
    return count;
}

uint32_t take_ready(struct conformance *c, const char *const *queues, const char *const *types,
                    uint32_t max, admit_function *admit, void *ctx, struct task **tasks)
{
    struct str queue_names[NAMES_MAX], type_names[NAMES_MAX];
    struct ready_want want = {.queues = queue_names,
                              .queues_count = strs_of(queues, queue_names),
                              .types = types ? type_names : NULL,
                              .types_count = strs_of(types, type_names),
                              .max = max,
                              .admit = admit ? admit : take_all,
                              .ctx = ctx};
    uint32_t count = 0;

    OK(c, c->verbs->ready_take(c->store, &want, &c->arena, tasks, &count, &c->err));
    return count;
}

uint32_t take_from(struct conformance *c, const char *queue, uint32_t max, struct task **tasks)
{
    return take_ready(c, (const char *const[]){queue, NULL}, NULL, max, NULL, NULL, tasks);
}

int64_t ready_in(struct conformance *c, const char *queue)
{
    return c->verbs->ready_count(c->store, str_of(queue));
}

static void tell(void *ctx, const char *line)
{
    (void)ctx;
    print_message("verify: %s\n", line);
}

int64_t verify_findings(struct conformance *c)
{
    int64_t findings = -1;

    OK(c, c->verbs->verify(c->store, tell, NULL, &findings, &c->err));
    return findings;
}

struct str text_of(struct conformance *c, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return arena_str(&c->arena, str_of(text));
}

bool str_same(struct str a, struct str b)
{
    return (a.data == NULL) == (b.data == NULL) && str_eq(a, b);
}
