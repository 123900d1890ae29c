/* Conformance: measures that outlive a process. How executions ended is kept per hour, category and
 * run of a node (D14); of each queue the store knows since when its first in line waits (C7). */
#include "conformance.h"

#include "store/measure_store.h"

#define MEASURES(c) ((c)->verbs->measures)
#define H0_US (T0_US - T0_US % EXECUTION_HOUR_US)

static void put_hours(struct conformance *c, const char *run, const struct execution_hour *hours,
                      uint32_t count)
{
    store_begin(c);
    OK(c, MEASURES(c)->hours_put(c->store, str_of(run), hours, count, &c->err));
    store_commit(c);
}

static uint32_t hours_since(struct conformance *c, int64_t since_us, struct execution_hour **hours)
{
    uint32_t count = 0;

    OK(c, MEASURES(c)->read_hours(c->reader, STR_NONE, since_us, &c->arena, hours, &count, &c->err));
    return count;
}

/* All of them together, since the first hour. */
static void then_hour(struct conformance *c, int64_t hour_us, const struct uuid *category,
                      struct execution_sum wanted)
{
    struct execution_hour *hours;
    uint32_t count = hours_since(c, 0, &hours);
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (hours[i].hour_us != hour_us || !uuid_eq(&hours[i].category_id, category))
            continue;
        found++;
        assert_int_equal(hours[i].successful, wanted.successful);
        assert_int_equal(hours[i].failed, wanted.failed);
        assert_int_equal(hours[i].duration_ms, wanted.duration_ms);
    }
    assert_int_equal(found, 1);
}

static void hours_of_all_runs_and_categories_are_told_as_sums(void **state)
{
    struct conformance *c = *state;
    struct uuid none = {{0}}, category = uuid7_new(&c->ids, T0_US);
    struct execution_hour first[] = {{H0_US, none, 1, 2, 30, STR_NONE},
                                     {H0_US, category, 4, 5, 60, STR_NONE},
                                     {H0_US + EXECUTION_HOUR_US, none, 7, 8, 90, STR_NONE}};
    struct execution_hour second[] = {{H0_US, none, 10, 20, 300, STR_NONE}};
    struct execution_hour *hours;

    assert_int_equal(hours_since(c, 0, &hours), 0);
    put_hours(c, "node-a-1", first, 3);
    put_hours(c, "node-b-1", second, 1);
    store_reopen(c);
    assert_int_equal(hours_since(c, 0, &hours), 3);
    then_hour(c, H0_US, &none, (struct execution_sum){11, 22, 330});
    then_hour(c, H0_US, &category, (struct execution_sum){4, 5, 60});
    then_hour(c, H0_US + EXECUTION_HOUR_US, &none, (struct execution_sum){7, 8, 90});
}

/* D14: a figure that is written again, because its first write is uncertain, counts once. */
static void an_hour_put_again_by_its_run_is_replaced_and_not_added(void **state)
{
    struct conformance *c = *state;
    struct uuid none = {{0}};
    struct execution_hour hour = {H0_US, none, 1, 0, 10, STR_NONE};
    struct execution_hour *hours;

    for (int i = 0; i < 3; i++)
        put_hours(c, "run", &hour, 1);
    then_hour(c, H0_US, &none, (struct execution_sum){1, 0, 10});
    hour = (struct execution_hour){H0_US, none, 5, 6, 70, STR_NONE};
    put_hours(c, "run", &hour, 1);
    then_hour(c, H0_US, &none, (struct execution_sum){5, 6, 70});
    put_hours(c, "run", NULL, 0);
    store_begin(c);
    hour.successful = 99;
    OK(c, MEASURES(c)->hours_put(c->store, STR("run"), &hour, 1, &c->err));
    store_rollback(c);
    then_hour(c, H0_US, &none, (struct execution_sum){5, 6, 70});
    assert_int_equal(hours_since(c, 0, &hours), 1);
}

static void hours_are_read_and_pruned_by_when_they_began(void **state)
{
    struct conformance *c = *state;
    struct uuid none = {{0}};
    struct execution_hour given[5], *hours;

    for (int i = 0; i < 5; i++)
        given[i] = (struct execution_hour){H0_US + i * EXECUTION_HOUR_US, none, i + 1, 0, 0, STR_NONE};
    put_hours(c, "run", given, 5);
    assert_int_equal(hours_since(c, H0_US + 2 * EXECUTION_HOUR_US, &hours), 3);
    assert_int_equal(hours_since(c, H0_US + 2 * EXECUTION_HOUR_US + 1, &hours), 2);
    store_begin(c);
    OK(c, MEASURES(c)->hours_prune(c->store, H0_US + 3 * EXECUTION_HOUR_US, &c->err));
    store_commit(c);
    assert_int_equal(hours_since(c, 0, &hours), 2);
    then_hour(c, given[3].hour_us, &none, (struct execution_sum){4, 0, 0});
    then_hour(c, given[4].hour_us, &none, (struct execution_sum){5, 0, 0});
}

/* ---- who waits ---- */

static int64_t waits_since(struct conformance *c, const char *queue)
{
    struct queue_wait *waits;
    uint32_t count = 0;
    int64_t since_us = 0;

    OK(c, MEASURES(c)->read_waits(c->reader, &c->arena, &waits, &count, &c->err));
    for (uint32_t i = 0; i < count; i++) {
        if (!str_is(waits[i].queue, queue))
            continue;
        if (since_us == 0 || waits[i].since_us < since_us) /* each of its types once */
            since_us = waits[i].since_us;
    }
    return since_us;
}

static struct task *given_waiting(struct conformance *c, const char *queue, const char *type,
                                  int64_t order_key, int64_t since_us)
{
    struct task *task = given_task(c, queue, type);

    task->order_key = order_key;
    task->updated_at_us = since_us;
    insert_task(c, task);
    return task;
}

/* C7: the first in line counts, not the oldest of all: that one may be of low priority. */
static void of_each_queue_the_first_in_line_tells_since_when_it_waits(void **state)
{
    struct conformance *c = *state;
    struct task *first, *other;

    assert_int_equal(waits_since(c, "a"), 0);
    store_begin(c);
    given_waiting(c, "a", "t", 20, T0_US);
    first = given_waiting(c, "a", "t", 10, T0_US + 50);
    other = given_waiting(c, "a", "u", 30, T0_US + 40);
    given_waiting(c, "b", "t", 1, T0_US + 70);
    store_commit(c);
    store_reopen(c);
    assert_int_equal(waits_since(c, "a"), T0_US + 40); /* over all types */
    assert_int_equal(waits_since(c, "b"), T0_US + 70);
    store_begin(c);
    other = load_task(c, &other->id, LOAD_SPEC);
    claim_task(other, "w");
    save_task(c, other);
    store_commit(c);
    assert_int_equal(waits_since(c, "a"), T0_US + 50);
    store_begin(c);
    first = load_task(c, &first->id, LOAD_SPEC);
    claim_task(first, "w");
    save_task(c, first);
    store_commit(c);
    assert_int_equal(waits_since(c, "a"), T0_US);
}

static void queues_in_which_nobody_is_ready_do_not_wait(void **state)
{
    struct conformance *c = *state;
    struct task *held, *parked, *delayed;

    store_begin(c);
    held = given_waiting(c, "held", "t", 1, T0_US);
    claim_task(held, "w");
    save_task(c, held);
    parked = given_task(c, "parked", "t");
    parked->spec.limit_key = STR("key");
    parked->parked = true;
    insert_task(c, parked);
    delayed = given_task(c, "delayed", "t");
    delayed->status = STATUS_DELAYED;
    delayed->scheduled_at_us = T0_US + SECOND_US;
    insert_task(c, delayed);
    store_commit(c);
    assert_int_equal(waits_since(c, "held"), 0);
    assert_int_equal(waits_since(c, "parked"), 0);
    assert_int_equal(waits_since(c, "delayed"), 0);
    store_begin(c);
    parked->parked = false;
    save_task(c, parked);
    store_commit(c);
    assert_int_equal(waits_since(c, "parked"), T0_US);
}

const struct conformance_test conformance_measures_tests[] = {
    CONFORMANCE_TEST(hours_of_all_runs_and_categories_are_told_as_sums),
    CONFORMANCE_TEST(an_hour_put_again_by_its_run_is_replaced_and_not_added),
    CONFORMANCE_TEST(hours_are_read_and_pruned_by_when_they_began),
    CONFORMANCE_TEST(of_each_queue_the_first_in_line_tells_since_when_it_waits),
    CONFORMANCE_TEST(queues_in_which_nobody_is_ready_do_not_wait), CONFORMANCE_END};
