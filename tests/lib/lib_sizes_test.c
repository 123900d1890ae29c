/* Programs that were built for an earlier or a later libperdura: the size in a struct says what they
 * know of it. What they do not know is the default, and nothing is written behind their structs. */
#include "lib_fixture.h"

#define END(type, member) (offsetof(struct type, member) + sizeof(((struct type *)NULL)->member))

/* New members go to the end, and never into padding there, where an earlier library sees none. */
_Static_assert(END(pd_options, encrypt_per_user) == sizeof(struct pd_options) &&
               END(pd_task_spec, callback_events_count) == sizeof(struct pd_task_spec) &&
               END(pd_update, note) == sizeof(struct pd_update) &&
               END(pd_worker_options, categories_count) == sizeof(struct pd_worker_options) &&
               END(pd_result, note) == sizeof(struct pd_result) &&
               END(pd_report, stop) == sizeof(struct pd_report), "a struct ends with padding");

#define EARLIER_SPEC END(pd_task_spec, data)
#define EARLIER_RESULT END(pd_result, attempts)

/* As a later header would have them. */
struct later_spec {
    struct pd_task_spec known;
    const char *colour;
};
struct later_result {
    struct pd_result known;
    int64_t weight;
};
struct later_report {
    struct pd_report known;
    int64_t weight;
};
struct later_options {
    struct pd_options known;
    const char *colour;
};

static void refused(struct pd *pd, int rc, const char *word)
{
    assert_int_equal(rc, PD_EINVALID);
    assert_non_null(strstr(pd_error(pd), word));
}

static void specs_of_an_earlier_program_are_taken(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec specs[2] = {PD_TASK_SPEC_INIT, PD_TASK_SPEC_INIT};
    struct pd_result result = PD_RESULT_INIT;
    struct pd_enqueued made[2];
    _Alignas(struct pd_task_spec) char earlier[2 * EARLIER_SPEC + 64];

    memset(earlier, 0xEE, sizeof earlier); /* what stands behind them is not theirs */
    for (int i = 0; i < 2; i++) {
        specs[i].size = EARLIER_SPEC;
        specs[i].type = i ? "second" : "first";
        specs[i].payload = "[1]";
        memcpy(earlier + (size_t)i * EARLIER_SPEC, &specs[i], EARLIER_SPEC);
    }
    OK(fixture, pd_enqueue_batch(fixture->pd, (void *)earlier, 2, made));
    OK(fixture, pd_get(fixture->pd, made[1].id, &result));
    assert_string_equal(result.type, "second");
    assert_string_equal(result.payload, "[1]");
    assert_string_equal(result.queue, "default");
    pd_result_free(&result);
}

static void specs_of_a_later_program_are_taken_as_far_as_they_are_known(void **state)
{
    struct fixture *fixture = *state;
    struct later_spec later[2] = {{PD_TASK_SPEC_INIT, NULL}, {PD_TASK_SPEC_INIT, NULL}};
    struct pd_enqueued made[2];

    later[0].known.size = sizeof later[0];
    later[0].known.type = later[1].known.type = "t";
    OK(fixture, pd_enqueue_batch(fixture->pd, &later[0].known, 2, made));
    assert_int_not_equal(strcmp(made[0].id, made[1].id), 0);
    later[1].colour = "red";
    refused(fixture->pd, pd_enqueue_batch(fixture->pd, &later[0].known, 2, NULL),
            "use a later libperdura");
}

static void a_result_fills_what_the_program_knows_of_it(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    struct later_result later = {PD_RESULT_INIT, -1};
    struct pd_result room;
    struct pd_result *earlier = &room;
    char id[PD_ID_BYTES];

    spec.type = "t";
    OK(fixture, pd_enqueue(fixture->pd, &spec, id));
    memset(&room, 0xEE, sizeof room);
    earlier->size = EARLIER_RESULT;
    OK(fixture, pd_get(fixture->pd, id, earlier));
    assert_int_equal(earlier->status, PD_STATUS_PENDING);
    assert_string_equal(earlier->id, id);
    pd_result_free(earlier);
    assert_int_equal(pd_wait(fixture->pd, id, 0, earlier), PD_ETIMEOUT);
    pd_result_free(earlier);
    pd_result_free(earlier);
    assert_int_equal(earlier->size, EARLIER_RESULT);
    for (size_t i = EARLIER_RESULT; i < sizeof room; i++)
        assert_int_equal(((unsigned char *)&room)[i], 0xEE);

    later.known.size = sizeof later;
    OK(fixture, pd_get(fixture->pd, id, &later.known));
    assert_string_equal(later.known.type, "t");
    assert_int_equal(later.weight, 0);
    pd_result_free(&later.known);
}

static void reports_of_a_later_program_are_answered_in_their_own_places(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec specs[2] = {PD_TASK_SPEC_INIT};
    struct later_report later[2] = {{PD_REPORT_INIT, 0}, {PD_REPORT_INIT, 0}};
    struct pd_consumer *consumer;
    struct pd_claims *claims;

    specs[0].type = specs[1].type = "t";
    OK(fixture, pd_enqueue_batch(fixture->pd, specs, 2, NULL));
    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    OK(fixture, pd_claim(consumer, 2, WAIT_MS, &claims));
    assert_int_equal(claims->count, 2);
    assert_int_equal(claims->tasks[1]->size, sizeof(struct pd_claimed));
    for (int i = 0; i < 2; i++) {
        later[i].known.size = sizeof *later;
        later[i].known.task_id = claims->tasks[i]->id;
        later[i].known.lease_token = claims->tasks[i]->lease_token + i; /* the second is stale */
        later[i].known.rc = 1;
    }
    OK(fixture, pd_report(consumer, &later[0].known, 2));
    assert_int_equal(later[0].known.rc, PD_OK);
    assert_int_equal(later[1].known.rc, PD_ESTALE);
    later[1].weight = 5;
    refused(fixture->pd, pd_report(consumer, &later[0].known, 2), "use a later libperdura");
    pd_claims_free(claims);
    pd_consumer_close(consumer);
}

static void options_have_a_size_too(void **state)
{
    struct fixture *fixture = *state;
    struct later_options later = {PD_OPTIONS_INIT, "red"};
    struct pd_worker_options worker = PD_WORKER_OPTIONS_INIT;
    struct pd_consumer *consumer;
    struct pd *pd;

    later.known.size = sizeof later;
    assert_int_equal(pd_open("/tmp/never-made.db", &later.known, &pd), PD_EINVALID);
    assert_non_null(strstr(pd_error(pd), "use a later libperdura"));
    pd_close(pd);
    worker.size = END(pd_worker_options, concurrency);
    worker.types_count = 1000000; /* behind what it knows */
    OK(fixture, pd_consumer_open(fixture->pd, &worker, &consumer));
    pd_consumer_close(consumer);
}

static void a_struct_that_was_not_initialised_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec spec = {.type = "t"};
    struct pd_result result = {.status = PD_STATUS_FAILED};
    struct pd_options options = {.lease_ms = 1000};
    struct pd_worker_options worker = {.concurrency = 1};
    struct pd_worker *made;
    struct pd *pd;

    refused(fixture->pd, pd_enqueue(fixture->pd, &spec, NULL), "begin it with PD_TASK_SPEC_INIT");
    spec.size = SIZE_MAX;
    refused(fixture->pd, pd_enqueue(fixture->pd, &spec, NULL), "begin it with PD_TASK_SPEC_INIT");
    refused(fixture->pd, pd_get(fixture->pd, "x", &result), "begin it with PD_RESULT_INIT");
    assert_int_equal(result.status, PD_STATUS_FAILED);
    pd_result_free(&result);
    refused(fixture->pd, pd_worker_new(fixture->pd, &worker, &made),
            "begin it with PD_WORKER_OPTIONS_INIT");
    assert_int_equal(pd_open("/tmp/never-made.db", &options, &pd), PD_EINVALID);
    assert_non_null(strstr(pd_error(pd), "begin it with PD_OPTIONS_INIT"));
    pd_close(pd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(specs_of_an_earlier_program_are_taken),
        TEST(specs_of_a_later_program_are_taken_as_far_as_they_are_known),
        TEST(a_result_fills_what_the_program_knows_of_it),
        TEST(reports_of_a_later_program_are_answered_in_their_own_places),
        TEST(options_have_a_size_too),
        TEST(a_struct_that_was_not_initialised_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
