/* What the library refuses before it does anything: options, handlers, reports and specs that make
 * no sense, each with a code and a sentence that names the fault (E3). */
#include "lib_fixture.h"
#include "store/store.h"

#define ID "01890a5d-ac96-774b-bcce-b302099a8057"

#define TEN "xxxxxxxxxx"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const char long_text[] = HUNDRED HUNDRED HUNDRED; /* longer than any name may be */

static void expect(struct fixture *fixture, int rc, int code, const char *word)
{
    if (rc != code || !strstr(pd_error(fixture->pd), word))
        fail_msg("'%s' expected: %s: %s", word, pd_code_word(rc), pd_error(fixture->pd));
}

static int done(struct pd_task *task, void *ctx)
{
    (void)task;
    (void)ctx;
    return PD_DONE;
}

static void options_of_a_handle_out_of_bounds_are_refused(void **state)
{
    static const struct {
        struct pd_options options;
        const char *word;
    } rows[] = {{{.timeout_ms = -1}, "negative"},
                {{.lease_ms = INT64_MAX}, "too long"},
                {{.lease_ms = 99}, "100 or more"},
                {{.keep_completed_ms = INT64_MAX}, "ten years"},
                {{.keep_failed_ms = INT64_MAX}, "ten years"}};
    struct pd *pd;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pd_options options = rows[i].options;

        options.size = sizeof options;
        assert_int_equal(pd_open("/tmp/never-made.db", &options, &pd), PD_EINVALID);
        assert_non_null(strstr(pd_error(pd), rows[i].word));
        pd_close(pd);
    }
    assert_int_equal(pd_open(NULL, NULL, &pd), PD_EINVALID);
    pd_close(pd);
    assert_int_equal(pd_open("", NULL, &pd), PD_EINVALID);
    pd_close(pd);
    assert_int_equal(pd_open("postgres://localhost/tasks", NULL, &pd), PD_EINVALID);
    assert_non_null(strstr(pd_error(pd), "http://host:port of such a server"));
    pd_close(pd);
    assert_int_equal(access("/tmp/never-made.db", F_OK), -1);
    pd_close(NULL);
    assert_true(pd_error(NULL)[0] != '\0');
}

static void a_store_that_was_moved_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct store_options options = {.allow_network_fs = true};
    struct pd_options opened = PD_OPTIONS_INIT;
    struct err err = {0};
    struct store *store;
    char path[sizeof fixture->path];

    opened.allow_network_fs = 1;
    snprintf(path, sizeof path, "%s", fixture->path);
    pd_close(fixture->pd);
    assert_int_equal(store_open(&store, str_of(path), &options, &err), 0);
    assert_int_equal(store_mark_moved(store, STR("postgres://u:secret@h/d"), 0, &err), 0);
    store->verbs->close(store);
    assert_int_equal(pd_open(path, &opened, &fixture->pd), PD_ECONFLICT);
    assert_non_null(strstr(pd_error(fixture->pd), "moved to postgres://u@h/d"));
}

static void codes_have_words(void **state)
{
    (void)state;
    assert_string_equal(pd_code_word(PD_OK), "ok");
    assert_string_equal(pd_code_word(PD_ESTALE), "stale_lease");
    assert_string_equal(pd_code_word(PD_EINTERNAL), "internal");
    assert_string_equal(pd_code_word(1), "unknown");
    assert_string_equal(pd_code_word(PD_EINTERNAL - 1), "unknown");
    assert_true(pd_version()[0] != '\0');
}

static void workers_that_make_no_sense_are_refused(void **state)
{
    static const char *const empty[] = {""};
    static const char *const missing[] = {NULL};
    static const char *const not_text[] = {"\xff"};
    static const char *const too_long[] = {long_text};
    struct fixture *fixture = *state;
    const struct {
        struct pd_worker_options options;
        const char *word;
    } rows[] = {{{.id = ""}, "id"},
                {{.id = long_text}, "id"},
                {{.id = "\xff"}, "UTF-8"},
                {{.queues = empty, .queues_count = 1}, "queues"},
                {{.queues = missing, .queues_count = 1}, "queues"},
                {{.queues = not_text, .queues_count = 1}, "UTF-8"},
                {{.queues = empty, .queues_count = 100000}, "at most"},
                {{.types = too_long, .types_count = 1}, "types"},
                {{.concurrency = 1000000}, "concurrency"},
                {{.batch = 1000000}, "batch"},
                {{.stack_bytes = 1}, "stack_bytes"}};
    struct pd_consumer *consumer;
    struct pd_worker *worker;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pd_worker_options options = rows[i].options;

        options.size = sizeof options;
        expect(fixture, pd_worker_new(fixture->pd, &options, &worker), PD_EINVALID, rows[i].word);
        if (i < 8) /* concurrency, batch and stack are nothing to a consumer */
            expect(fixture, pd_consumer_open(fixture->pd, &options, &consumer), PD_EINVALID,
                   rows[i].word);
    }
    pd_worker_free(NULL);
    pd_consumer_close(NULL);
}

static void a_worker_is_set_up_before_its_start_and_started_once(void **state)
{
    struct fixture *fixture = *state;
    struct pd_worker *worker;
    struct pd_worker *other;
    int rc = PD_OK;

    OK(fixture, pd_worker_new(fixture->pd, NULL, &worker));
    OK(fixture, pd_worker_new(fixture->pd, NULL, &other));
    OK(fixture, pd_worker_stop(worker, 0)); /* not started: there is nothing to stop */
    expect(fixture, pd_worker_start(worker), PD_EINVALID, "no handlers");
    expect(fixture, pd_worker_handle(worker, NULL, done, NULL), PD_EINVALID, "type");
    expect(fixture, pd_worker_handle(worker, "", done, NULL), PD_EINVALID, "type");
    expect(fixture, pd_worker_handle(worker, long_text, done, NULL), PD_EINVALID, "type");
    expect(fixture, pd_worker_handle(worker, "\xff", done, NULL), PD_EINVALID, "UTF-8");
    expect(fixture, pd_worker_handle(worker, "a", NULL, NULL), PD_EINVALID, "function");
    OK(fixture, pd_worker_handle(worker, "a", done, NULL));
    OK(fixture, pd_worker_start(worker));
    expect(fixture, pd_worker_start(worker), PD_EINVALID, "already");
    expect(fixture, pd_worker_handle(worker, "b", done, NULL), PD_EINVALID, "runs already");
    for (int i = 0; i < 2000 && rc == PD_OK; i++)
        rc = pd_worker_handle(other, "a", done, NULL);
    expect(fixture, rc, PD_ETOOLARGE, "at most");
    pd_worker_free(worker); /* the older one: others are before it in the list */
    OK(fixture, pd_worker_stop(other, PD_FOREVER));
    pd_worker_free(other);
}

static void reports_out_of_their_bounds_are_refused(void **state)
{
    struct fixture *fixture = *state;
    const struct {
        struct pd_report report;
        const char *word;
    } rows[] = {{{.op = (enum pd_op)99}, "bounds"},
                {{.level = (enum pd_level)9}, "bounds"},
                {{.progress = -2}, "bounds"},
                {{.progress = 101}, "bounds"},
                {{.delay_ms = -1}, "bounds"},
                {{.seq = -1}, "bounds"},
                {{.text = "\xff"}, "UTF-8"},
                {{.op = PD_OP_CHECKPOINT}, "name"},
                {{.op = PD_OP_CHECKPOINT, .text = ""}, "name"},
                {{.op = PD_OP_LOG}, "message"},
                {{.op = PD_OP_SPAWN}, "array"},
                {{.op = PD_OP_SPAWN, .json = "{}"}, "array"}};
    struct pd_report *many = calloc(PD_BATCH_MAX + 1, sizeof *many);
    struct pd_consumer *consumer;
    struct pd_claims *claims;

    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pd_report report = rows[i].report;

        report.size = sizeof report;
        report.task_id = ID;
        expect(fixture, pd_report(consumer, &report, 1), PD_EINVALID, rows[i].word);
    }
    expect(fixture, pd_report(consumer, many, PD_BATCH_MAX + 1), PD_ETOOLARGE, "at most");
    expect(fixture, pd_claim(consumer, PD_CLAIM_MAX + 1, 0, &claims), PD_EINVALID, "1");
    pd_claims_free(NULL);
    pd_consumer_close(consumer);
    free(many);
}

static void a_consumer_spawns_and_claims_what_it_spawned(void **state)
{
    static const char *const types[] = {"parent"};
    struct fixture *fixture = *state;
    struct pd_worker_options options = PD_WORKER_OPTIONS_INIT;
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    struct pd_report report = PD_REPORT_INIT;
    struct pd_consumer *first;
    struct pd_consumer *second;
    struct pd_claims *claims;

    options.types = types;
    options.types_count = 1;
    options.concurrency = 3;
    OK(fixture, pd_consumer_open(fixture->pd, &options, &first));
    OK(fixture, pd_consumer_open(fixture->pd, NULL, &second));
    spec.type = "parent";
    spec.correlation_id = "order-7";
    spec.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    spec.tracestate = "a=b";
    OK(fixture, pd_enqueue(fixture->pd, &spec, NULL));
    OK(fixture, pd_claim(first, 5, WAIT_MS, &claims));
    assert_int_equal(claims->count, 1);
    assert_string_equal(claims->tasks[0]->correlation_id, "order-7");
    assert_string_equal(claims->tasks[0]->traceparent, spec.traceparent);
    assert_string_equal(claims->tasks[0]->tracestate, "a=b");
    report.task_id = claims->tasks[0]->id;
    report.lease_token = claims->tasks[0]->lease_token;
    report.op = PD_OP_SPAWN;
    report.json = "[{\"type\":\"child\"}]";
    OK(fixture, pd_report(first, &report, 1));
    assert_int_equal(report.rc, PD_OK);
    report = (struct pd_report){.size = sizeof(struct pd_report),
                                .task_id = claims->tasks[0]->id, .op = PD_OP_FAIL,
                                .lease_token = claims->tasks[0]->lease_token, .not_retryable = 1};
    OK(fixture, pd_report(first, &report, 1)); /* without a text it "failed" */
    pd_claims_free(claims);
    OK(fixture, pd_claim(second, 5, PD_FOREVER, &claims));
    assert_string_equal(claims->tasks[0]->type, "child");
    assert_string_equal(claims->tasks[0]->traceparent, spec.traceparent); /* inherited */
    pd_claims_free(claims);
    pd_consumer_close(first);
    pd_consumer_close(second);
}

static void values_of_a_spec_that_are_none_of_their_kind_are_refused(void **state)
{
    static const char *const not_text[] = {"\xff"};
    static const char *const no_pointer[] = {"a"};
    static const struct pd_dependency nobody[] = {{.task = "x"}};
    static const struct pd_dependency odd[] = {{.task = ID, .kind = (enum pd_dependency_kind)7}};
    static const struct pd_dependency no_text[] = {{.ref = "\xff"}};
    struct fixture *fixture = *state;
    const struct {
        struct pd_task_spec spec;
        const char *word;
    } rows[] = {{{.unique_until = (enum pd_unique_until)5}, "unique_until"},
                {{.on_unsatisfied = (enum pd_on_unsatisfied)5}, "on_unsatisfied"},
                {{.tags = not_text, .tags_count = 1}, "UTF-8"},
                {{.hash_fields = no_pointer, .hash_fields_count = 1}, "hash_fields"},
                {{.depends_on = nobody, .depends_on_count = 1}, "not the id"},
                {{.depends_on = odd, .depends_on_count = 1}, "type"},
                {{.depends_on = no_text, .depends_on_count = 1}, "UTF-8"},
                {{.queue = "q*"}, "patterns do not work here"},
                {{.name = long_text}, "name"},
                {{.external_id = ""}, "external_id"},
                {{.max_crashes = -7}, "max_crashes"},
                {{.stall_after_ms = INT64_MAX}, "stall_after_ms"},
                {{.callback_url = "https://user@host/"}, "callback_url"}};
    struct pd_task_spec two[2] = {{.size = sizeof *two, .type = "a"}, {.type = "a"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pd_task_spec spec = rows[i].spec;

        spec.size = sizeof spec;
        spec.type = "a";
        expect(fixture, pd_enqueue(fixture->pd, &spec, NULL), PD_EINVALID, rows[i].word);
    }
    two[1].data = "{";
    expect(fixture, pd_enqueue_batch(fixture->pd, two, 2, NULL), PD_EMALFORMED, "data");
    OK(fixture, pd_enqueue_batch(fixture->pd, two, 0, NULL));
    expect(fixture, pd_enqueue_batch(fixture->pd, two, PD_BATCH_MAX + 1, NULL), PD_ETOOLARGE, "");
}

struct words {
    int rc[8];
    char sentence[200];
};

static int says_nonsense(struct pd_task *task, void *ctx)
{
    struct words *words = ctx;

    words->rc[0] = pd_task_progress(task, 101, NULL);
    words->rc[1] = pd_task_checkpoint(task, "", 5, "1");
    words->rc[2] = pd_task_checkpoint(task, "n", 5, "{");
    words->rc[3] = pd_task_log(task, (enum pd_level)9, "m", NULL);
    words->rc[4] = pd_task_set_data(task, "nope");
    words->rc[5] = pd_task_spawn(task, "{}");
    words->rc[6] = pd_task_set_result(task, "]");
    words->rc[7] = pd_task_progress(task, 50, "\xff");
    snprintf(words->sentence, sizeof words->sentence, "%s", pd_task_error(task));
    return 42; /* nothing an outcome can be */
}

static void a_handler_that_says_nonsense_is_told_and_its_task_fails(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    struct words words = {{0}, ""};
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    start_worker(fixture, "odd", says_nonsense, &words);
    spec.type = "odd";
    spec.max_retries = PD_NONE;
    OK(fixture, pd_enqueue(fixture->pd, &spec, id));
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_true(result.status == PD_STATUS_FAILED || result.status == PD_STATUS_DEAD_LETTER);
    for (size_t i = 0; i < sizeof words.rc / sizeof *words.rc; i++)
        if (words.rc[i] >= 0)
            fail_msg("nonsense %zu was taken", i);
    assert_true(words.sentence[0] != '\0');
    pd_result_free(&result);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_a_handle_out_of_bounds_are_refused),
        cmocka_unit_test(codes_have_words),
        EACH(a_store_that_was_moved_is_refused),
        EACH(workers_that_make_no_sense_are_refused),
        EACH(a_worker_is_set_up_before_its_start_and_started_once),
        EACH(reports_out_of_their_bounds_are_refused),
        EACH(a_consumer_spawns_and_claims_what_it_spawned),
        EACH(values_of_a_spec_that_are_none_of_their_kind_are_refused),
        EACH(a_handler_that_says_nonsense_is_told_and_its_task_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
