/* Decoding of URLs: tables of what is taken and what is refused. */
#include "net/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void segments_decode_strictly(void **state)
{
    static const struct {
        const char *raw;
        const char *decoded; /* NULL = refused */
    } rows[] = {
        {"", ""},           {"abc", "abc"},       {"a%20b", "a b"},      {"a+b", "a+b"},
        {"a%2Fb", "a/b"},   {"a%2fb", "a/b"},     {"%C3%A4", "\xC3\xA4"}, {"%25", "%"},
        {"%", NULL},        {"%4", NULL},         {"%4G", NULL},         {"%G4", NULL},
        {"a%", NULL},       {"%%41", NULL},       {"%00", NULL},         {"a%00b", NULL},
        {"%FF", NULL},      {"%C3", NULL},        {"%C0%AF", NULL},      {"%ED%A0%80", NULL},
        {"%u0041", NULL},   {"%2541", "%41"},     {"%E2%82%AC", "\xE2\x82\xAC"}, {"% 41", NULL},
    };
    struct arena arena = ARENA_INIT(0);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct str out;
        struct err err = {.code = ERR_NONE};
        int rc = url_decode_segment(str_of(rows[i].raw), &arena, &out, &err);

        if (!rows[i].decoded) {
            assert_int_equal(rc, -(int)ERR_MALFORMED);
            assert_int_equal(err.code, ERR_MALFORMED);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_true(str_is(out, rows[i].decoded));
    }
    arena_deinit(&arena);
}

static void a_path_falls_into_raw_segments(void **state)
{
    struct str path = STR("/v1/tasks/a%2Fb:cancel/");
    struct str segment;

    (void)state;
    assert_true(url_next_segment(&path, &segment));
    assert_true(str_is(segment, "v1"));
    assert_true(url_next_segment(&path, &segment));
    assert_true(str_is(segment, "tasks"));
    assert_true(url_next_segment(&path, &segment));
    assert_true(str_is(segment, "a%2Fb:cancel"));
    assert_true(url_next_segment(&path, &segment));
    assert_true(str_is(segment, ""));
    assert_false(url_next_segment(&path, &segment));
    path = STR("*");
    assert_false(url_next_segment(&path, &segment));
    path = STR_NONE;
    assert_false(url_next_segment(&path, &segment));
}

static void parameters_come_in_order_and_decoded(void **state)
{
    struct url_query query = url_query_of(STR("&a=1&&b=x+y%26&flag&c=&=v&d=1=2&"));
    static const struct {
        const char *name;
        const char *value; /* NULL = absent */
    } wanted[] = {{"a", "1"}, {"b", "x y&"}, {"flag", NULL}, {"c", ""}, {"", "v"}, {"d", "1=2"}};
    struct arena arena = ARENA_INIT(0);
    struct str name;
    struct str value;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_int_equal(url_query_next(&query, &arena, &name, &value, &err), 1);
        assert_true(str_is(name, wanted[i].name));
        assert_true((value.data == NULL) == (wanted[i].value == NULL));
        assert_true(str_is(value, wanted[i].value ? wanted[i].value : ""));
    }
    assert_int_equal(url_query_next(&query, &arena, &name, &value, &err), 0);
    assert_int_equal(url_query_next(&query, &arena, &name, &value, &err), 0);
    arena_deinit(&arena);
}

/* The first parameter of a query. */
static void a_parameter_is_decoded_or_refused(void **state)
{
    static const struct {
        const char *query;
        int rc;
        const char *name;
        const char *value;
    } rows[] = {
        {"limit=10", 1, "limit", "10"}, {"&&a=1&limit=10", 1, "a", "1"},
        {"limit", 1, "limit", NULL},    {"limit=", 1, "limit", ""},
        {"l%69mit=5", 1, "limit", "5"}, {"", 0, NULL, NULL},
        {"&", 0, NULL, NULL},           {"limit=%zz", -(int)ERR_MALFORMED, NULL, NULL},
        {"a=%00&limit=1", -(int)ERR_MALFORMED, NULL, NULL},
    };
    struct arena arena = ARENA_INIT(0);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct url_query query = url_query_of(str_of(rows[i].query));
        struct str name, value;
        struct err err;
        int rc = url_query_next(&query, &arena, &name, &value, &err);

        assert_int_equal(rc, rows[i].rc);
        if (rc <= 0)
            continue;
        assert_true(str_is(name, rows[i].name));
        if (rows[i].value)
            assert_true(value.data && str_is(value, rows[i].value));
        else
            assert_null(value.data);
    }
    arena_deinit(&arena);
}

static int count_parameters(struct str text, struct arena *arena)
{
    struct url_query query = url_query_of(text);
    struct str name, value;
    struct err err;
    int count = 0;
    int rc;

    while ((rc = url_query_next(&query, arena, &name, &value, &err)) > 0)
        count++;
    return rc < 0 ? rc : count;
}

static void more_parameters_than_the_bound_are_refused(void **state)
{
    char text[4 * (URL_PARAMETERS_MAX + 1) + 1];
    struct arena arena = ARENA_INIT(0);

    (void)state;
    for (size_t i = 0; i <= URL_PARAMETERS_MAX; i++)
        memcpy(text + 4 * i, "a=1&", 4);
    assert_int_equal(count_parameters(str_span(text, (size_t)4 * URL_PARAMETERS_MAX), &arena),
                     URL_PARAMETERS_MAX);
    assert_int_equal(count_parameters(str_span(text, (size_t)4 * (URL_PARAMETERS_MAX + 1)),
                                      &arena), -(int)ERR_MALFORMED);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_decode_strictly),
        cmocka_unit_test(a_path_falls_into_raw_segments),
        cmocka_unit_test(parameters_come_in_order_and_decoded),
        cmocka_unit_test(a_parameter_is_decoded_or_refused),
        cmocka_unit_test(more_parameters_than_the_bound_are_refused),
    };

    return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
