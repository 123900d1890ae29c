/* Counting by queue, lane, category and target, with bounded sets of names (D14). */
#include "core/measure/measure.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static enum measure_target target_of(const void *ctx, struct str type)
{
    (void)ctx;
    return str_is(type, "process") ? TARGET_PROCESS : TARGET_WORKER;
}

static struct measure_lane *lane_of(struct measures *measures, const char *queue,
                                    const char *type)
{
    return measures_lane(measures, str_of(queue), str_of(type), target_of, NULL);
}

static struct measured *read_all(const struct measures *measures)
{
    struct measured *measured = calloc(1, sizeof *measured);

    assert_non_null(measured);
    measures_read(measures, measured);
    return measured;
}

static void what_is_counted_in_a_lane_is_counted_in_its_queue_and_target(void **state)
{
    struct measures *measures = measures_new(NULL);
    struct measured *measured;
    struct measured_lanes *lanes = calloc(1, sizeof *lanes);
    struct measured_queue *queue;

    (void)state;
    measure_add_count(lane_of(measures, "q", "a"), MEASURE_COMPLETED);
    measure_add_count(lane_of(measures, "q", "process"), MEASURE_COMPLETED);
    measure_add_count(lane_of(measures, "q", "a"), MEASURE_RETRIED);
    measure_add_wait(lane_of(measures, "q", "a"), 5000);
    measure_add_run(measures, lane_of(measures, "q", "process"), 7000);
    measure_add_commit(measures_queue(measures, STR("q")), 100);
    measured = read_all(measures);
    queue = measured_queue(measured, STR("q"));
    assert_int_equal(measured->queues_count, 2);
    assert_int_equal(queue->counts[MEASURE_COMPLETED], 2);
    assert_int_equal(queue->counts[MEASURE_RETRIED], 1);
    assert_int_equal(histogram_count(&queue->spans[MEASURE_WAIT]), 1);
    assert_int_equal(queue->spans[MEASURE_RUN].sum_us, 7000);
    assert_int_equal(histogram_count(&queue->spans[MEASURE_COMMIT]), 1);
    assert_int_equal(histogram_count(&measured->targets[TARGET_PROCESS]), 1);
    assert_int_equal(histogram_count(&measured->targets[TARGET_WORKER]), 0);
    measures_read_lanes(measures, lanes);
    for (uint32_t i = 0; i < lanes->count; i++)
        if (str_is(lanes->lanes[i].type, "process")) {
            assert_int_equal(lanes->lanes[i].target, TARGET_PROCESS);
            assert_int_equal(lanes->lanes[i].counts[MEASURE_COMPLETED], 1);
        }
    free(lanes);
    free(measured);
    measures_free(measures);
}

static void names_beyond_the_bounds_are_counted_with_the_others(void **state)
{
    struct measures *measures = measures_new(NULL);
    struct measured_lanes *lanes = calloc(1, sizeof *lanes);
    struct measured *measured;
    int64_t sum = 0;
    char name[32];

    (void)state;
    for (int i = 0; i < 3 * MEASURE_QUEUES_MAX; i++) {
        snprintf(name, sizeof name, "queue-%d", i);
        measure_add_count(lane_of(measures, name, "t"), MEASURE_ENQUEUED);
    }
    for (int i = 0; i < 2 * MEASURE_LANES_MAX; i++) {
        snprintf(name, sizeof name, "type-%d", i);
        measure_add_count(lane_of(measures, "queue-0", name), MEASURE_ENQUEUED);
    }
    measured = read_all(measures);
    assert_int_equal(measured->queues_count, MEASURE_QUEUES_ALL);
    assert_int_equal(measured->queues[0].counts[MEASURE_ENQUEUED], 2 * MEASURE_QUEUES_MAX);
    measures_read_lanes(measures, lanes);
    assert_true(lanes->count <= MEASURE_LANES_ALL);
    for (uint32_t i = 0; i < lanes->count; i++)
        sum += lanes->lanes[i].counts[MEASURE_ENQUEUED];
    assert_int_equal(sum, 3 * MEASURE_QUEUES_MAX + 2 * MEASURE_LANES_MAX);
    free(lanes);
    free(measured);
    measures_free(measures);
}

static void a_queue_or_type_called_other_is_one_of_the_others(void **state)
{
    struct measures *measures = measures_new(NULL);
    struct measured *measured;

    (void)state;
    measure_add_count(lane_of(measures, "other", "t"), MEASURE_ENQUEUED);
    measure_add_count(lane_of(measures, "*", "t"), MEASURE_ENQUEUED);
    assert_ptr_equal(lane_of(measures, "q", "other"), lane_of(measures, "q", "*"));
    measured = read_all(measures);
    assert_int_equal(measured->queues[0].counts[MEASURE_ENQUEUED], 2);
    free(measured);
    measures_free(measures);
}

static void writers_that_know_other_names_are_summed_up_by_name(void **state)
{
    struct measures *one = measures_new(NULL), *other = measures_new(NULL);
    struct measured *measured;

    (void)state;
    measure_add_count(lane_of(one, "a", "t"), MEASURE_STARTED);
    measure_add_count(lane_of(one, "b", "t"), MEASURE_STARTED);
    measure_add_count(lane_of(other, "b", "t"), MEASURE_STARTED);
    measured = read_all(one);
    measures_read(other, measured);
    assert_int_equal(measured->queues_count, 3);
    assert_int_equal(measured_queue(measured, STR("a"))->counts[MEASURE_STARTED], 1);
    assert_int_equal(measured_queue(measured, STR("b"))->counts[MEASURE_STARTED], 2);
    free(measured);
    measures_free(one);
    measures_free(other);
}

/* Who is one of the others stays that, and who has a place keeps it, whichever writer counts. */
static void writers_of_a_node_agree_on_who_has_a_place(void **state)
{
    struct measure_names *names = measure_names_new();
    struct measures *first = measures_new(names), *second = measures_new(names);
    struct measured *measured;
    char name[32];

    (void)state;
    for (int i = 0; i < MEASURE_QUEUES_MAX; i++) {
        snprintf(name, sizeof name, "queue-%d", i);
        measure_add_count(lane_of(second, name, "t"), MEASURE_ENQUEUED);
    }
    measure_add_count(lane_of(first, "late", "t"), MEASURE_ENQUEUED);
    measure_add_count(lane_of(first, "queue-3", "t"), MEASURE_ENQUEUED);
    measured = read_all(first);
    measures_read(second, measured);
    assert_int_equal(measured->queues_count, MEASURE_QUEUES_ALL);
    assert_int_equal(measured->queues[0].counts[MEASURE_ENQUEUED], 1);
    assert_int_equal(measured_queue(measured, STR("queue-3"))->counts[MEASURE_ENQUEUED], 2);
    assert_int_equal(measured_queue(measured, STR("queue-63"))->counts[MEASURE_ENQUEUED], 1);
    free(measured);
    measures_free(first);
    measures_free(second);
    measure_names_free(names);
}

static void categories_beyond_the_bound_are_counted_as_none(void **state)
{
    struct measures *measures = measures_new(NULL);
    struct measured_categories sum = {0};
    struct uuid id = {{0}};

    (void)state;
    measure_add_execution(measures_category(measures, &id), true, 1000);
    for (uint8_t i = 1; i <= MEASURE_CATEGORIES_MAX + 10; i++) {
        id.bytes[3] = i;
        measure_add_execution(measures_category(measures, &id), i % 2, 2000);
    }
    measures_read_categories(measures, &sum);
    assert_int_equal(sum.count, MEASURE_CATEGORIES_ALL);
    assert_true(uuid_is_nil(&sum.categories[0].id));
    assert_int_equal(sum.categories[0].successful + sum.categories[0].failed, 11);
    assert_int_equal(sum.categories[1].successful, 1);
    assert_int_equal(sum.categories[1].duration_us, 2000);
    measures_free(measures);
}

#define ROUNDS 20000

static void *count_on(void *ctx)
{
    char name[32];

    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "queue-%d", i % 100);
        measure_add_count(lane_of(ctx, name, "t"), MEASURE_ENQUEUED);
    }
    return NULL;
}

static void readers_beside_the_writer_see_figures_that_only_grow(void **state)
{
    struct measures *measures = measures_new(NULL);
    struct measured *measured = calloc(1, sizeof *measured);
    int64_t seen = 0;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, count_on, measures), 0);
    while (seen < ROUNDS) {
        int64_t sum = 0;

        memset(measured, 0, sizeof *measured);
        measures_read(measures, measured);
        for (uint32_t i = 0; i < measured->queues_count; i++)
            sum += measured->queues[i].counts[MEASURE_ENQUEUED];
        assert_true(sum >= seen);
        seen = sum;
    }
    pthread_join(thread, NULL);
    assert_int_equal(seen, ROUNDS);
    free(measured);
    measures_free(measures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_counted_in_a_lane_is_counted_in_its_queue_and_target),
        cmocka_unit_test(names_beyond_the_bounds_are_counted_with_the_others),
        cmocka_unit_test(a_queue_or_type_called_other_is_one_of_the_others),
        cmocka_unit_test(writers_that_know_other_names_are_summed_up_by_name),
        cmocka_unit_test(writers_of_a_node_agree_on_who_has_a_place),
        cmocka_unit_test(categories_beyond_the_bound_are_counted_as_none),
        cmocka_unit_test(readers_beside_the_writer_see_figures_that_only_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
