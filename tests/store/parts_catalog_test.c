/* Several stores seen as one (C8): what people plan with is that of the main one, an execution is
 * found wherever it is, and a part that has failed is not passed over in silence. */
#include "conformance.h"

#include "store/store_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remove_folder.h"

struct two {
    struct conformance parts[2];
    char folder[64];
    struct store *store;
    struct store_reader *reader;
    uint32_t failed; /* this part; 2 = none */
    struct arena arena;
    struct err err;
};

static uint32_t everywhere(void *ctx, struct str queue)
{
    (void)ctx;
    (void)queue;
    return 3;
}

static bool has_failed(void *ctx, uint32_t part)
{
    return ((const struct two *)ctx)->failed == part;
}

static int setup(void **state)
{
    struct two *two = calloc(1, sizeof *two);
    struct store *stores[2];

    assert_non_null(two);
    strcpy(two->folder, "/tmp/perdura-parts-XXXXXX");
    assert_non_null(mkdtemp(two->folder));
    for (int i = 0; i < 2; i++) {
        snprintf(two->parts[i].where, sizeof two->parts[i].where, "%s/%d.db", two->folder, i);
        store_open_again(&two->parts[i]);
        stores[i] = two->parts[i].store;
    }
    two->failed = 2;
    two->store = store_parts_new(&(struct store_parts_config){.stores = stores, .count = 2,
                                                              .where = everywhere,
                                                              .failed = has_failed, .ctx = two},
                                 &two->err);
    assert_non_null(two->store);
    two->reader = two->store->verbs->reader_open(two->store, &two->err);
    assert_non_null(two->reader);
    *state = two;
    return 0;
}

static int teardown(void **state)
{
    struct two *two = *state;

    two->store->verbs->reader_close(two->reader);
    two->store->verbs->close(two->store);
    for (int i = 0; i < 2; i++) {
        store_close(&two->parts[i]);
        arena_deinit(&two->parts[i].arena);
    }
    arena_deinit(&two->arena);
    remove_folder(two->folder);
    free(two);
    return 0;
}

static struct execution store_execution(struct conformance *c)
{
    struct task *task = given_task(c, "q", "t");
    struct execution execution;
    struct log_entry line;

    insert_task(c, task);
    claim_task(task, "w");
    execution = given_execution(c, task, T0_US);
    OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    line = (struct log_entry){.id = uuid7_new(&c->ids, T0_US), .execution_id = execution.id,
                              .level = SEVERITY_INFO, .message = STR("a line"),
                              .logged_at_us = T0_US};
    OK(c, c->verbs->logs_insert(c->store, &line, 1, &c->err));
    return execution;
}

static void c8_jobs_and_schedules_are_those_of_the_main_store(void **state)
{
    struct two *two = *state;
    const struct catalog_verbs *catalog = two->store->verbs->catalog;
    struct catalog_filter any = {.active = -1, .type = -1};
    struct job *here, *jobs, *job;
    struct schedule *schedules;
    int64_t next_us = 0;
    uint32_t count = 0;

    for (int i = 1; i >= 0; i--) {
        store_begin(&two->parts[i]);
        here = given_job(&two->parts[i], i ? "there" : "here");
        given_schedule(&two->parts[i], here, T0_US + i);
        store_commit(&two->parts[i]);
    }
    OK(two, catalog->read_jobs(two->reader, &any, &two->arena, &jobs, &count, &two->err));
    assert_int_equal(count, 1);
    then_str(jobs[0].name, STR("here"));
    OK(two, catalog->read_job(two->reader, &here->id, &two->arena, &job, &two->err));
    assert_non_null(job);
    OK(two, catalog->read_schedules(two->reader, &any, &two->arena, &schedules, &count,
                                    &two->err));
    assert_int_equal(count, 1);
    OK(two, catalog->read_next_fires(two->reader, &here->id, 1, &next_us, &two->err));
    assert_int_equal(next_us, T0_US);
    two->failed = 0;
    assert_int_equal(catalog->read_jobs(two->reader, &any, &two->arena, &jobs, &count, &two->err),
                     -ERR_UNAVAILABLE);
}

static void c8_d8_an_execution_and_its_logs_are_found_in_any_store(void **state)
{
    struct two *two = *state;
    const struct catalog_verbs *catalog = two->store->verbs->catalog;
    struct execution made[2], *found = NULL;
    struct log_entry *lines;
    uint32_t count = 0;

    for (int i = 0; i < 2; i++) {
        store_begin(&two->parts[i]);
        made[i] = store_execution(&two->parts[i]);
        store_commit(&two->parts[i]);
    }
    for (int i = 0; i < 2; i++) {
        OK(two, catalog->read_execution(two->reader, &made[i].id, &two->arena, &found, &two->err));
        assert_non_null(found);
        then_id(found->id, made[i].id);
        OK(two, catalog->read_execution_logs(two->reader, &made[i].id, &(struct log_filter){0},
                                             &two->arena, &lines, &count, &two->err));
        assert_int_equal(count, 1);
    }
    OK(two, catalog->read_execution(two->reader, &(struct uuid){{1}}, &two->arena, &found,
                                    &two->err));
    assert_null(found);
    two->failed = 0; /* it may have been there */
    assert_int_equal(catalog->read_execution(two->reader, &(struct uuid){{1}}, &two->arena, &found,
                                             &two->err), -ERR_UNAVAILABLE);
    OK(two, catalog->read_execution(two->reader, &made[1].id, &two->arena, &found, &two->err));
    assert_non_null(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(c8_jobs_and_schedules_are_those_of_the_main_store, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(c8_d8_an_execution_and_its_logs_are_found_in_any_store,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
