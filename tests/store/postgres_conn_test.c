/* One connection to PostgreSQL: what becomes of a transaction whose program stands still (F-B11),
 * and of a connection after a refused one, or after code of others ran in it (F-J5). */
#include "store/postgres/pg_conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "pg_schema.h"

static const struct pg_statement lock = {"lock", "SELECT v FROM held FOR UPDATE"};
static const struct pg_statement nonsense = {"nonsense", "SELECT 1 / (v - v) FROM held"};
static const struct pg_statement one_more = {"one_more", "UPDATE held SET v = v + 1"};

static void ask(struct pg_conn *conn, const struct pg_statement *statement)
{
    struct err err = {0};
    PGresult *result = NULL;

    if (conn_query(conn, statement, &result, &err) < 0)
        fail_msg("%s: %s", statement->what, err.text);
    assert_int_equal(PQntuples(result), 1);
    PQclear(result);
}

static void open_conn(struct pg_conn *conn, const char *where)
{
    struct err err = {0};

    if (conn_open(conn, where, false, NULL, &err) < 0)
        fail_msg("%s", err.text);
}

static void a_program_that_stands_still_loses_its_locks(void **state)
{
    const char *where = *state;
    struct pg_conn still, other;
    struct err err = {0};
    PGresult *result = NULL;

    open_conn(&still, where);
    open_conn(&other, where);
    assert_int_equal(conn_text(&still, "SET idle_in_transaction_session_timeout = '200ms'", &err),
                     0);
    assert_int_equal(conn_begin(&still, &err), 0);
    ask(&still, &lock);
    assert_int_equal(conn_begin(&other, &err), 0);
    ask(&other, &lock); /* waits up to five seconds */
    assert_int_equal(conn_commit(&other, &err), 0);
    assert_int_equal(conn_query(&still, &lock, &result, &err), -ERR_UNAVAILABLE);
    conn_rollback(&still);
    assert_true(still.lost);
    conn_close(&still);
    conn_close(&other);
}

static void a_refused_transaction_leaves_the_connection_usable(void **state)
{
    const char *where = *state;
    struct pg_conn conn;
    struct err err = {0};
    PGresult *result = NULL;

    open_conn(&conn, where);
    for (int turn = 0; turn < 6; turn++) {
        assert_int_equal(conn_begin(&conn, &err), 0);
        assert_int_equal(conn_send(&conn, &one_more, &err), 0);
        if (turn % 3 == 0) { /* refused at the commit, at a question, when settled */
            assert_int_equal(conn_send(&conn, &nonsense, &err), 0);
            assert_true(conn_commit(&conn, &err) < 0);
        } else if (turn % 3 == 1) {
            assert_true(conn_query(&conn, &nonsense, &result, &err) < 0);
        } else {
            assert_int_equal(conn_send(&conn, &nonsense, &err), 0);
            assert_true(conn_settle(&conn, &err) < 0);
        }
        assert_false(conn.commit_sent);
        conn_rollback(&conn);
        assert_false(conn.lost);
        assert_int_equal(conn_begin(&conn, &err), 0);
        ask(&conn, &lock);
        assert_int_equal(conn_send(&conn, &one_more, &err), 0);
        assert_int_equal(conn_commit(&conn, &err), 0);
        assert_int_equal(conn.syncs, 0);
    }
    conn_close(&conn);
    assert_int_equal(pg_schema_ask(where, "SELECT v FROM held"), 6);
}

static void every_transaction_has_the_search_path_of_its_connection(void **state) /* F-J5 */
{
    static const struct pg_statement poison = {
        "poison", "SELECT set_config('search_path', 'pg_catalog', false)"};
    struct pg_conn conn;
    struct err err = {0};

    open_conn(&conn, *state);
    assert_int_equal(conn_begin(&conn, &err), 0);
    ask(&conn, &lock);
    ask(&conn, &poison);
    assert_int_equal(conn_commit(&conn, &err), 0);
    assert_int_equal(conn_begin(&conn, &err), 0);
    ask(&conn, &lock);
    assert_int_equal(conn_commit(&conn, &err), 0);
    conn_close(&conn);
}

static int make_schema(void **state)
{
    static char where[300];

    pg_schema_make(where, sizeof where);
    pg_schema_run(where, "CREATE TABLE held (v int); INSERT INTO held VALUES (0)");
    *state = where;
    return 0;
}

static int drop_schema(void **state)
{
    pg_schema_drop(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_transaction_leaves_the_connection_usable),
        cmocka_unit_test(every_transaction_has_the_search_path_of_its_connection),
        cmocka_unit_test(a_program_that_stands_still_loses_its_locks),
    };

    return cmocka_run_group_tests_name("one connection", tests, make_schema, drop_schema);
}
