/* The place of a store on PostgreSQL: URL and schema (A12). */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct place_case {
    const char *where;
    bool pooler;
    const char *place; /* NULL: refused */
    const char *schema;
};

static void the_schema_becomes_the_search_path(void **state)
{
    static const struct place_case cases[] = {
        {"postgres://u@h/d", false, "postgres://u@h/d?options=-csearch_path%3D%22perdura%22%2Cpg_temp",
         "perdura"},
        {"postgres://u@h/d?schema=tasks", false,
         "postgres://u@h/d?options=-csearch_path%3D%22tasks%22%2Cpg_temp", "tasks"},
        {"postgres://u@h/d?sslmode=require&schema=Tasks_2&connect_timeout=1", false,
         "postgres://u@h/d?sslmode=require&connect_timeout=1&options=-csearch_path%3D%22Tasks_2%22%2Cpg_temp",
         "Tasks_2"},
        {"postgres://h/d?options=-csearch_path%3Dmine", false,
         "postgres://h/d?options=-csearch_path%3Dmine", ""},
        {"postgres://h/d?options=-csearch_path%3Dmine&schema=other", false,
         "postgres://h/d?options=-csearch_path%3Dmine%20-csearch_path%3D%22other%22%2Cpg_temp", "other"},
        {"postgres://h/d?options=-cwork_mem%3D8MB", false,
         "postgres://h/d?options=-cwork_mem%3D8MB%20-csearch_path%3D%22perdura%22%2Cpg_temp", "perdura"},
        {"postgres://h/d?", false, "postgres://h/d?options=-csearch_path%3D%22perdura%22%2Cpg_temp",
         "perdura"},
        {"postgres://h/d?sslmode=disable", true, "postgres://h/d?sslmode=disable", ""},
        {"postgres://h/d?schema=tasks", true, NULL, NULL},
        {"postgres://h/d?schema=", false, NULL, NULL},
        {"postgres://h/d?schema=a-b", false, NULL, NULL},
        {"postgres://h/d?schema=1a", false, NULL, NULL},
        {"postgres://h/d?schema=a\";DROP", false, NULL, NULL},
        {"postgres://h/d?schema="
         "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg", false, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char schema[PG_SCHEMA_BYTES];
        struct err err = {0};
        char *place = NULL;
        int rc = pg_place(str_of(cases[i].where), cases[i].pooler, &place, schema, &err);

        if (!cases[i].place) {
            assert_int_equal(rc, -ERR_INVALID);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_string_equal(place, cases[i].place);
        assert_string_equal(schema, cases[i].schema);
        free(place);
        /* What was made of it is taken as it is: further writers are opened by it. */
        if (cases[i].pooler)
            continue;
        assert_int_equal(pg_place(str_of(cases[i].place), false, &place, schema, &err), 0);
        assert_string_equal(place, cases[i].place);
        assert_string_equal(schema, "");
        free(place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schema_becomes_the_search_path),
    };

    return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
