/* Names of namespaces, and queues by their full names (D12). */
#include "core/queue_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void namespaces_are_short_plain_names(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } rows[] = {
        {"default", true}, {"a", true}, {"9", true}, {"team-a.prod_2", true}, {"Team", true},
        {"", false}, {"-a", false}, {".a", false}, {"_a", false}, {"a b", false}, {"a/b", false},
        {"a\x1e" "b", false}, {"*", false}, {"ä", false}, {"a\n", false},
        {"012345678901234567890123456789012345678901234567890123456789012", true},
        {"0123456789012345678901234567890123456789012345678901234567890123", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err = {0};
        int rc = namespace_check_name(str_of(rows[i].name), &err);

        assert_int_equal(rc, rows[i].good ? 0 : -ERR_INVALID);
    }
}

static void full_names_keep_namespaces_apart(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str plain = queue_name_full(STR("default"), STR("media"), &arena);
    struct str full = queue_name_full(STR("team-a"), STR("media"), &arena);

    (void)state;
    assert_true(str_is(plain, "media"));
    assert_true(str_is(full, "team-a\x1emedia"));
    assert_true(str_is(queue_name_plain(plain), "media"));
    assert_true(str_is(queue_name_plain(full), "media"));
    assert_true(str_is(queue_name_namespace(plain), "default"));
    assert_true(str_is(queue_name_namespace(full), "team-a"));
    assert_true(queue_name_in(full, STR("team-a")));
    assert_false(queue_name_in(full, STR("team")));
    assert_false(queue_name_in(plain, STR("team-a")));
    assert_true(str_is(queue_name_plain(STR("")), ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(namespaces_are_short_plain_names),
        cmocka_unit_test(full_names_keep_namespaces_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
