/* Decisions about jobs: whose values the task of a run has (D5), overlap (D4), gates and cycles
 * (D7, F-H11). */
#include "core/plan/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define EDGES 10000

static struct uuid id_of(uint32_t number)
{
    struct uuid id = {{0}};

    for (int i = 0; i < 4; i++)
        id.bytes[15 - i] = (uint8_t)(number >> (8 * i));
    id.bytes[0] = 1;
    return id;
}

/* ---- the task of a run ---- */

static const struct handler_rule handlers[] = {
    {.type = STR("mail"), .timeout_ms = 30000, .max_retries = 7, .retry_delay_ms = -1,
     .max_retry_delay_ms = -1, .has_retry_policy = true, .retry_policy = RETRY_LINEAR,
     .hash_input = true},
    {.type = STR("quiet"), .timeout_ms = -1, .max_retries = -1, .retry_delay_ms = -1,
     .max_retry_delay_ms = -1},
};
static const struct priority_rule rules[] = {{.type = STR("ruled"), .priority = 77}};
static const struct settings settings = {.handlers = handlers, .handlers_count = 2,
                                         .enqueue = {.rules = rules, .rules_count = 1}};

static struct category maintenance(void)
{
    return (struct category){.id = id_of(9), .name = STR("maintenance"), .default_priority = 10,
                             .default_timeout_s = 600, .default_max_retries = 2,
                             .configuration = STR("{\"queue\":\"medium-priority\"}")};
}

static struct job plain_job(const char *type)
{
    return (struct job){.id = id_of(1), .namespace_name = STR("default"), .name = STR("nightly"),
                        .task_type = str_of(type), .payload = STR("{\"a\":1}")};
}

static void d5_values_are_those_of_job_handler_category_in_this_order(void **state)
{
    static const struct {
        const char *type; /* NULL = the job's name */
        bool own;         /* the job has values of its own */
        int64_t timeout_ms, max_retries, priority;
        const char *queue;
    } rows[] = {
        {NULL, false, 600000, 2, 10, "medium-priority"},
        {"quiet", false, 600000, 2, 10, "medium-priority"},
        {"mail", false, 30000, 7, 10, "medium-priority"},
        {"ruled", false, 600000, 2, 77, "medium-priority"},
        {NULL, true, 5000, 0, -3, "mine"},
        {"mail", true, 5000, 0, -3, "mine"},
        {"ruled", true, 5000, 0, -3, "mine"},
    };
    struct category category = maintenance();
    struct arena arena = ARENA_INIT(64 * 1024);

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct job job = plain_job(rows[i].type);
        struct task_input input;

        if (rows[i].own) {
            job.has_priority = job.has_max_retries = job.has_timeout = true;
            job.priority = -3;
            job.timeout_s = 5;
            job.queue = STR("mine");
        }
        assert_int_equal(job_task_input(&job, &category, NULL, STR_NONE, &settings, &arena,
                                        &input, NULL),
                         0);
        assert_true(str_is(input.spec.type, rows[i].type ? rows[i].type : "nightly"));
        assert_int_equal(input.spec.timeout_ms, rows[i].timeout_ms);
        assert_int_equal(input.spec.retry.max_retries, rows[i].max_retries);
        assert_int_equal(input.priority, rows[i].priority);
        assert_true(str_is(input.spec.queue, rows[i].queue));
        assert_true(uuid_eq(&input.spec.origin.job_id, &job.id));
        assert_true(uuid_eq(&input.spec.category_id, &category.id));
        assert_null(input.spec.input_hash.data); /* though "mail" hashes what it is given */
    }
    arena_deinit(&arena);
}

static void a_run_has_the_payload_and_the_callback_nearest_to_it(void **state)
{
    struct category category = maintenance();
    struct schedule schedule = {.id = id_of(5), .callback_url = STR("http://127.0.0.1/s")};
    struct schedule silent = {.id = id_of(6)};
    struct job job = plain_job(NULL);
    struct arena arena = ARENA_INIT(64 * 1024);
    struct task_input input;

    (void)state;
    job.callback_url = STR("http://127.0.0.1/j");
    assert_int_equal(job_task_input(&job, &category, &schedule, STR("[2]"), NULL, &arena, &input,
                                    NULL),
                     0);
    assert_true(str_is(input.spec.payload, "[2]"));
    assert_true(str_is(input.spec.callback.url, "http://127.0.0.1/s"));
    assert_true(uuid_eq(&input.spec.origin.schedule_id, &schedule.id));
    assert_int_equal(job_task_input(&job, &category, &silent, STR_NONE, NULL, &arena, &input,
                                    NULL),
                     0);
    assert_true(str_is(input.spec.payload, "{\"a\":1}"));
    assert_true(str_is(input.spec.callback.url, "http://127.0.0.1/j"));
    assert_true(str_is(input.spec.name, "nightly"));
    arena_deinit(&arena);
}

static void d5_a_plain_task_takes_from_its_category_what_it_does_not_say(void **state)
{
    static const struct {
        const char *object;
        int64_t timeout_ms, max_retries, priority;
        const char *queue;
    } rows[] = {
        {"{\"type\":\"x\"}", 600000, 2, 10, "medium-priority"},
        {"{\"type\":\"mail\"}", 30000, 7, 10, "medium-priority"},
        {"{\"type\":\"ruled\"}", 600000, 2, 77, "medium-priority"},
        {"{\"type\":\"x\",\"queue\":\"default\",\"priority\":0}", 600000, 2, 0, "default"},
        {"{\"type\":\"x\",\"timeout_ms\":1,\"max_attempts\":9}", 1, 8, 10, "medium-priority"},
    };
    struct category category = maintenance();
    struct arena arena = ARENA_INIT(64 * 1024);
    struct category_rules own;

    (void)state;
    assert_int_equal(category_rules_read(category.configuration, &arena, &own, NULL), 0);
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct task_input input;

        assert_int_equal(spec_parse(str_of(rows[i].object), &settings, &arena, &input, NULL), 0);
        category_fill(&category, &own, &settings, &input);
        assert_int_equal(input.spec.timeout_ms, rows[i].timeout_ms);
        assert_int_equal(input.spec.retry.max_retries, rows[i].max_retries);
        assert_int_equal(input.priority, rows[i].priority);
        assert_true(str_is(input.spec.queue, rows[i].queue));
        assert_true(uuid_eq(&input.spec.category_id, &category.id));
    }
    arena_deinit(&arena);
}

/* ---- overlap and gates ---- */

static void d4_overlap_is_decided_by_policy_only_while_runs_are_open(void **state)
{
    static const struct {
        enum overlap overlap;
        enum overlap_move move;
    } rows[] = {
        {OVERLAP_ALLOW, OVERLAP_RUN},
        {OVERLAP_SKIP, OVERLAP_PASS},
        {OVERLAP_QUEUE, OVERLAP_WAIT},
        {OVERLAP_REPLACE, OVERLAP_CANCEL_OPEN},
    };

    (void)state;
    assert_int_equal(ROWS(rows), OVERLAP_COUNT);
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_int_equal(overlap_decide(rows[i].overlap, 0), OVERLAP_RUN);
        assert_int_equal(overlap_decide(rows[i].overlap, 1), rows[i].move);
        assert_int_equal(overlap_decide(rows[i].overlap, 50), rows[i].move);
    }
}

static void d7_a_gate_is_open_after_an_end_as_required_that_is_not_too_old(void **state)
{
    static const int64_t now_us = INT64_C(1800000000000000);
    static const struct {
        enum dependency kind;
        enum status last;
        int64_t ended_ms_ago;
        int64_t within_ms;
        uint32_t open_runs;
        bool open;
    } rows[] = {
        {DEPENDENCY_SUCCESS, STATUS_NONE, 0, 0, 0, false},
        {DEPENDENCY_COMPLETION, STATUS_NONE, 0, 0, 0, false},
        {DEPENDENCY_SUCCESS, STATUS_COMPLETED, 999999999, 0, 0, true},
        {DEPENDENCY_SUCCESS, STATUS_COMPLETED, 10, 0, 1, false},
        {DEPENDENCY_SUCCESS, STATUS_FAILED, 10, 0, 0, false},
        {DEPENDENCY_SUCCESS, STATUS_PARTIAL, 10, 0, 0, false},
        {DEPENDENCY_FAILURE, STATUS_DEAD_LETTER, 10, 0, 0, true},
        {DEPENDENCY_FAILURE, STATUS_COMPLETED, 10, 0, 0, false},
        {DEPENDENCY_FAILURE, STATUS_CANCELLED, 10, 0, 0, false},
        {DEPENDENCY_COMPLETION, STATUS_CANCELLED, 10, 0, 0, true},
        {DEPENDENCY_SUCCESS, STATUS_COMPLETED, 5000, 5000, 0, true},
        {DEPENDENCY_SUCCESS, STATUS_COMPLETED, 5001, 5000, 0, false},
        {DEPENDENCY_SUCCESS, STATUS_COMPLETED, -60000, 5000, 0, true}, /* the clock stepped back */
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct job_dependency gate = {.kind = rows[i].kind, .within_ms = rows[i].within_ms};
        struct job job = {.last_status = rows[i].last,
                          .last_ended_at_us = now_us - rows[i].ended_ms_ago * 1000};

        assert_int_equal(job_gate_open(&gate, &job, rows[i].open_runs, now_us), rows[i].open);
    }
}

/* ---- cycles ---- */

static struct job_dependency edge(uint32_t job, uint32_t depends_on)
{
    return (struct job_dependency){.job_id = id_of(job), .depends_on_job_id = id_of(depends_on)};
}

/* path is written "1 2 1"; "" = no cycle. */
static void check_cycle(const struct job_dependency *edges, uint32_t count, uint32_t job,
                        uint32_t depends_on, const char *expected)
{
    struct arena arena = ARENA_INIT(4 * 1024 * 1024);
    struct uuid from = id_of(job), to = id_of(depends_on), *path;
    char text[200] = "";
    uint32_t path_count;
    int rc = job_graph_cycle(edges, count, &from, &to, &arena, &path, &path_count, NULL);

    assert_int_equal(rc, expected[0] ? 1 : 0);
    for (uint32_t i = 0; i < path_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), i ? " %d" : "%d",
                 path[i].bytes[14] * 256 + path[i].bytes[15]);
    assert_string_equal(text, expected);
    arena_deinit(&arena);
}

static void f_h11_an_edge_that_closes_a_cycle_is_found_with_its_path(void **state)
{
    /* 2 -> 1, 3 -> 2, 4 -> 2, 5 -> 4, 5 -> 3, 7 -> 6; and twice the same in two kinds */
    const struct job_dependency edges[] = {edge(5, 4), edge(3, 2), edge(2, 1), edge(4, 2),
                                           edge(5, 3), edge(7, 6), edge(3, 2)};
    static const struct {
        uint32_t job, depends_on;
        const char *path;
    } rows[] = {
        {1, 1, "1 1"},
        {1, 2, "1 2 1"},
        {1, 3, "1 3 2 1"},
        {1, 7, ""},
        {6, 7, "6 7 6"},
        {6, 5, ""},
        {5, 1, ""},
        {8, 9, ""},
        {2, 1, ""}, /* there already: no cycle */
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        check_cycle(edges, ROWS(edges), rows[i].job, rows[i].depends_on, rows[i].path);
    check_cycle(NULL, 0, 1, 2, "");
    check_cycle(NULL, 0, 4, 4, "4 4");
}

static void f_h11_the_shortest_of_several_paths_is_told(void **state)
{
    const struct job_dependency edges[] = {edge(2, 3), edge(3, 4), edge(4, 1), edge(2, 5),
                                           edge(5, 1)};

    (void)state;
    check_cycle(edges, ROWS(edges), 1, 2, "1 2 5 1");
}

/* A chain as long as the bound and a graph full of diamonds, where a search that goes every way
 * would not end: each edge is looked at once, and the stack does not grow. */
static void f_h11_ten_thousand_edges_are_searched_once_each(void **state)
{
    static struct job_dependency edges[EDGES];
    struct arena arena = ARENA_INIT(8 * 1024 * 1024);
    struct uuid first = id_of(0), last = id_of(EDGES), top = id_of(EDGES / 4), *path;
    uint32_t count;

    (void)state;
    for (uint32_t i = 0; i < EDGES; i++)
        edges[i] = edge(i + 1, i);
    assert_int_equal(job_graph_cycle(edges, EDGES, &first, &last, &arena, &path, &count, NULL), 1);
    assert_int_equal(count, EDGES + 2);
    assert_true(uuid_eq(&path[0], &first) && uuid_eq(&path[count - 1], &first));
    for (uint32_t i = 1; i < count; i++) {
        struct uuid expected = id_of(EDGES + 1 - i);

        assert_true(uuid_eq(&path[i], &expected));
    }
    assert_int_equal(job_graph_cycle(edges, EDGES, &last, &first, &arena, &path, &count, NULL), 0);

    for (uint32_t i = 0; i < EDGES / 4; i++) { /* i+1 depends on a and b, both on i */
        edges[4 * i] = edge(i + 1, EDGES + 2 * i);
        edges[4 * i + 1] = edge(i + 1, EDGES + 2 * i + 1);
        edges[4 * i + 2] = edge(EDGES + 2 * i, i);
        edges[4 * i + 3] = edge(EDGES + 2 * i + 1, i);
    }
    assert_int_equal(job_graph_cycle(edges, EDGES, &first, &top, &arena, &path, &count, NULL), 1);
    assert_int_equal(count, EDGES / 2 + 2);
    assert_int_equal(job_graph_cycle(edges, EDGES, &top, &first, &arena, &path, &count, NULL), 0);
    arena_deinit(&arena);
}

static void without_memory_the_search_says_so(void **state)
{
    const struct job_dependency edges[] = {edge(2, 1)};
    struct arena arena = ARENA_INIT(8);
    struct uuid from = id_of(1), to = id_of(2), *path;
    struct err err = {0};
    uint32_t count;

    (void)state;
    assert_int_equal(job_graph_cycle(edges, 1, &from, &to, &arena, &path, &count, &err),
                     -ERR_MEMORY);
    assert_int_equal(err.code, ERR_MEMORY);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d5_values_are_those_of_job_handler_category_in_this_order),
        cmocka_unit_test(a_run_has_the_payload_and_the_callback_nearest_to_it),
        cmocka_unit_test(d5_a_plain_task_takes_from_its_category_what_it_does_not_say),
        cmocka_unit_test(d4_overlap_is_decided_by_policy_only_while_runs_are_open),
        cmocka_unit_test(d7_a_gate_is_open_after_an_end_as_required_that_is_not_too_old),
        cmocka_unit_test(f_h11_an_edge_that_closes_a_cycle_is_found_with_its_path),
        cmocka_unit_test(f_h11_the_shortest_of_several_paths_is_told),
        cmocka_unit_test(f_h11_ten_thousand_edges_are_searched_once_each),
        cmocka_unit_test(without_memory_the_search_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
