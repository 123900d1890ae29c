/* What only the PostgreSQL store has: rounds that tidy the months of history are the leader's (D8),
 * and a database that was replaced or set back under a node is noticed (F-D10). How months come and
 * go in a running cluster is in tests/postgres/test_partitions.py. */
#include "conformance.h"

#include "store/postgres/pg_partitions.h"
#include "pg_schema.h"

#include <stdlib.h>

#define LEAD(epoch, until)                                                                      \
    "INSERT INTO leadership VALUES ('*', 'n', " epoch ", now() + interval '" until "') "        \
    "ON CONFLICT (namespace) DO UPDATE SET epoch = excluded.epoch, until = excluded.until"

static int setup(void **state)
{
    struct conformance *c = calloc(1, sizeof *c);

    assert_non_null(c);
    pg_schema_make(c->where, sizeof c->where);
    store_open_again(c);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct conformance *c = *state;

    store_close(c);
    pg_schema_drop(c->where);
    arena_deinit(&c->arena);
    free(c);
    return 0;
}

/* Of the months of now and later, both tables. */
static int64_t months_there(struct conformance *c)
{
    return pg_schema_ask(c->where, "SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = "
        "i.inhrelid WHERE i.inhparent IN (to_regclass('task_event_rows'), "
        "to_regclass('execution_rows')) AND c.relname ~ '[0-9]$'");
}

/* The months of both tables three months from now are not there, those of six months ago are. */
static void given_months_to_tidy(struct conformance *c)
{
    pg_schema_run(c->where,
        "DO $$ DECLARE parent text; BEGIN FOREACH parent IN ARRAY ARRAY['task_event_rows', "
        "'execution_rows'] LOOP "
        "EXECUTE 'DROP TABLE ' || perdura_month_name(parent, (now() AT TIME ZONE 'UTC' "
        "+ interval '3 months')::date); "
        "PERFORM perdura_partition(parent, (now() - interval '6 months')::date); END LOOP; END $$");
    assert_int_equal(months_there(c), 8);
}

static int round_under(struct conformance *c, int64_t epoch)
{
    struct months_work work = {.epoch = epoch, .node_id = "n"};
    struct err err = {0};

    return months_round(pg_of(c->store), &work, &err);
}

static void then_tidied(struct conformance *c, bool tidied)
{
    assert_int_equal(months_there(c), 8);
    assert_int_equal(pg_schema_ask(c->where,
        "SELECT count(*) FROM (VALUES ('task_event_rows'), ('execution_rows')) AS p (parent) WHERE "
        "to_regclass(perdura_month_name(parent, (date_trunc('month', now() AT TIME ZONE 'UTC') "
        "+ interval '3 months')::date)) IS NOT NULL"), tidied ? 2 : 0);
}

static void d8_a_round_of_a_node_that_does_not_lead_changes_nothing(void **state)
{
    struct conformance *c = *state;

    given_months_to_tidy(c);
    pg_schema_run(c->where, LEAD("7", "1 minute"));
    assert_true(round_under(c, 6) < 0); /* another one leads by now */
    then_tidied(c, false);
    pg_schema_run(c->where, LEAD("7", "-1 second"));
    assert_true(round_under(c, 7) < 0); /* its lease is over */
    then_tidied(c, false);
    pg_schema_run(c->where, LEAD("7", "1 minute"));
    assert_int_equal(round_under(c, 7), 0);
    then_tidied(c, true);
}

static void d8_two_rounds_at_once_make_every_month_once(void **state)
{
    struct conformance *c = *state;
    struct months_work work = {0};

    given_months_to_tidy(c);
    months_pass(pg_of(c->store), &work); /* in a thread of its own */
    assert_int_equal(round_under(c, 0), 0);
    months_stop(pg_of(c->store));
    then_tidied(c, true);
}

/* ---- check ---- */

static int check(struct conformance *c)
{
    int rc;

    c->err = (struct err){0};
    store_begin(c);
    rc = c->verbs->check(c->store, &c->err);
    c->verbs->rollback(c->store);
    return rc;
}

static void f_d10_a_database_that_was_set_back_is_noticed(void **state)
{
    struct conformance *c = *state;

    store_begin(c);
    given_ready(c, "q", "t", 1);
    store_commit(c);
    assert_int_equal(check(c), 0);
    pg_schema_run(c->where, "UPDATE writer_marks SET seq = seq - 1");
    assert_int_equal(check(c), -(int)ERR_STORAGE);
    assert_non_null(strstr(c->err.text, "earlier state"));
    pg_schema_run(c->where, "UPDATE writer_marks SET seq = seq + 1");
    assert_int_equal(check(c), 0);
}

static void f_d10_another_database_in_its_place_is_noticed(void **state)
{
    struct conformance *c = *state;

    pg_schema_run(c->where, "DELETE FROM writer_marks");
    assert_int_equal(check(c), -(int)ERR_STORAGE);
    assert_non_null(strstr(c->err.text, "another one"));
    pg_schema_run(c->where, "ALTER TABLE writer_marks RENAME TO gone");
    assert_int_equal(check(c), -(int)ERR_STORAGE);
    assert_non_null(strstr(c->err.text, "removed or replaced"));
    pg_schema_run(c->where, "ALTER TABLE gone RENAME TO writer_marks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            d8_a_round_of_a_node_that_does_not_lead_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(d8_two_rounds_at_once_make_every_month_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(f_d10_a_database_that_was_set_back_is_noticed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(f_d10_another_database_in_its_place_is_noticed, setup,
                                        teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
