/* Scopes, roles, tokens and principals as tables (D12, V8, F-J1). */
#include "core/access/principal.h"
#include "core/access/token_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static scope_set set_of(const char *words)
{
    scope_set set;
    struct err err;

    assert_int_equal(scopes_read(str_of(words), &set, &err), 0);
    return set;
}

static void words_of(scope_set set, const char *wanted)
{
    BUF_AUTO struct buf out = BUF_INIT(1024);

    scopes_write(&out, set);
    buf_byte(&out, '\0');
    assert_string_equal(out.data, wanted);
}

static void roles_are_the_scopes_the_manual_lists(void **state)
{
    static const char *const rows[][2] = {
        {"viewer", "tasks:read plans:read metrics:read"},
        {"reader", "tasks:read payloads:read plans:read metrics:read"},
        {"producer", "tasks:enqueue plans:run"},
        {"worker", "work"},
        {"operator", "tasks:read payloads:read tasks:control plans:read plans:run queues:write "
                     "metrics:read"},
        {"editor", "tasks:read payloads:read plans:read plans:write plans:run queues:write "
                   "metrics:read"},
        {"admin", "admin"},
    };

    (void)state;
    assert_int_equal(roles_count, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        words_of(set_of(rows[i][0]), rows[i][1]);
}

static void unknown_words_are_refused_by_name(void **state)
{
    struct err err;
    scope_set set;

    (void)state;
    assert_true(scopes_read(STR("tasks:read tasks:fly"), &set, &err) < 0);
    assert_non_null(strstr(err.text, "tasks:fly"));
    assert_int_equal(scopes_read(STR("  work   viewer "), &set, &err), 0);
}

static void admin_allows_everything_and_payloads_include_tasks(void **state)
{
    (void)state;
    for (int i = 0; i < SCOPE_COUNT; i++) {
        assert_true(scopes_allow(set_of("admin"), (enum scope)i));
        assert_false(scopes_allow(0, (enum scope)i));
        for (int other = 0; other < SCOPE_COUNT; other++) {
            bool wanted = i == other || i == SCOPE_ADMIN ||
                          (i == SCOPE_PAYLOADS_READ && other == SCOPE_TASKS_READ);

            assert_int_equal(scopes_allow(SCOPE_BIT(i), (enum scope)other), wanted);
        }
    }
    assert_true(scopes_include(set_of("payloads:read"), set_of("tasks:read")));
    assert_false(scopes_include(set_of("tasks:read"), set_of("payloads:read")));
    assert_false(scopes_include(set_of("operator editor"), set_of("admin")));
}

static void user_rows_follow_their_owner(void **state)
{
    struct principal all = {.scopes = set_of("admin")};
    struct principal alice = {.scopes = set_of("admin"), .user_id = STR("alice")};

    (void)state;
    assert_int_equal(principal_row(&all, STR("bob"), true), ROW_ALLOWED);
    assert_int_equal(principal_row(&all, STR_NONE, true), ROW_ALLOWED);
    assert_int_equal(principal_row(&alice, STR("alice"), true), ROW_ALLOWED);
    assert_int_equal(principal_row(&alice, STR("alice2"), false), ROW_HIDDEN);
    assert_int_equal(principal_row(&alice, STR("bob"), false), ROW_HIDDEN);
    assert_int_equal(principal_row(&alice, STR("bob"), true), ROW_HIDDEN);
    assert_int_equal(principal_row(&alice, STR_NONE, false), ROW_ALLOWED);
    assert_int_equal(principal_row(&alice, STR_NONE, true), ROW_READ_ONLY);
}

/* Who becomes the maker of something sees it as one: not more than before. */
static void a_maker_sees_its_own_and_no_one_becomes_one_to_see_more(void **state)
{
    static const struct {
        enum principal_kind kind;
        const char *scopes;
        enum visibility own, other;
        bool takes;
    } rows[] = {
        {PRINCIPAL_TOKEN, "admin", VISIBLE_WHOLE, VISIBLE_WHOLE, true},
        {PRINCIPAL_TOKEN, "payloads:read", VISIBLE_WHOLE, VISIBLE_WHOLE, true},
        {PRINCIPAL_TOKEN, "tasks:enqueue", VISIBLE_WHOLE, VISIBLE_NOT, false},
        {PRINCIPAL_TOKEN, "tasks:enqueue tasks:read", VISIBLE_WHOLE, VISIBLE_REDACTED, false},
        {PRINCIPAL_TOKEN, "tasks:read", VISIBLE_REDACTED, VISIBLE_REDACTED, true},
        {PRINCIPAL_TOKEN, "tasks:control", VISIBLE_NOT, VISIBLE_NOT, true},
        {PRINCIPAL_JWT, "tasks:control", VISIBLE_NOT, VISIBLE_NOT, false},
        {PRINCIPAL_JWT, "payloads:read", VISIBLE_WHOLE, VISIBLE_WHOLE, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct principal principal = {.kind = rows[i].kind, .scopes = set_of(rows[i].scopes),
                                      .key = STR("token:1")};
        struct err err = {0};

        assert_int_equal(principal_visibility(&principal, STR("token:1")), rows[i].own);
        assert_int_equal(principal_visibility(&principal, STR("token:2")), rows[i].other);
        assert_int_equal(principal_visibility(&principal, STR_NONE), rows[i].other);
        assert_int_equal(principal_check_take(&principal, STR("token:1"), "this task", &err), 0);
        assert_int_equal(principal_check_take(&principal, STR("token:2"), "this task", &err) == 0,
                         rows[i].takes);
        assert_true(rows[i].takes || err.code == ERR_FORBIDDEN);
    }
}

static void who_is_limited_to_a_user_says_no_other_and_leaves_alone_what_is_of_all(void **state)
{
    static const enum scope of_all[] = {SCOPE_WORK, SCOPE_QUEUES_WRITE, SCOPE_METRICS_READ,
                                        SCOPE_AUDIT_READ, SCOPE_ADMIN};
    struct principal all = {.scopes = SCOPE_BIT(SCOPE_ADMIN)};
    struct principal alice = {.scopes = SCOPE_BIT(SCOPE_ADMIN), .user_id = STR("alice")};
    struct caller caller = {.principal = &alice};
    struct err err = {0};
    int open = 0;

    (void)state;
    assert_int_equal(caller_row(NULL, STR("bob"), true), ROW_ALLOWED);
    assert_int_equal(caller_row(&caller, STR("bob"), false), ROW_HIDDEN);
    assert_int_equal(principal_check_user(&all, "user_id", STR("bob"), &err), 0);
    assert_int_equal(principal_check_user(&alice, "user_id", STR("alice"), &err), 0);
    assert_int_equal(principal_check_user(&alice, "user_id", STR_NONE, &err), 0);
    assert_int_equal(principal_check_user(&alice, "user_id", STR("bob"), &err), -ERR_FORBIDDEN);
    assert_string_equal(err.field, "user_id");
    assert_int_equal(principal_check_all_users(&all, &err), 0);
    assert_int_equal(principal_check_all_users(&alice, &err), -ERR_FORBIDDEN);
    assert_int_equal(principal_refuse_ownerless(&alice, "this job", &err), -ERR_FORBIDDEN);
    assert_non_null(strstr(err.text, "this job"));
    for (size_t i = 0; i < sizeof of_all / sizeof *of_all; i++)
        assert_false(scope_is_of_rows(of_all[i]));
    for (int i = 0; i < SCOPE_COUNT; i++)
        open += scope_is_of_rows((enum scope)i);
    assert_int_equal(open, SCOPE_COUNT - 5);
}

#define LIST(...)                                                                                 \
    (struct name_list){(const struct str[]){__VA_ARGS__},                                         \
                       sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str)}

static void lists_of_names_include_what_their_patterns_cover(void **state)
{
    struct name_list any = {NULL, 0};
    struct name_list media = LIST(STR("media"));
    struct name_list wide = LIST(STR("mail"), STR("media*"));
    struct name_list star = LIST(STR("*"));
    struct name_list narrow = LIST(STR("media:small*"));

    (void)state;
    assert_true(name_list_has(&any, STR("x")));
    assert_true(name_list_has(&wide, STR("media:x")));
    assert_false(name_list_has(&media, STR("media:x")));
    assert_true(name_list_includes(&any, &star));
    assert_true(name_list_includes(&wide, &media));
    assert_true(name_list_includes(&wide, &narrow));
    assert_true(name_list_includes(&star, &wide));
    assert_false(name_list_includes(&narrow, &wide));
    assert_false(name_list_includes(&media, &narrow));
    assert_false(name_list_includes(&star, &any)); /* "*" does not cover what no list names */
    assert_false(name_list_includes(&media, &any));
}

static void grants(const struct principal *maker, const struct principal *made, const char *field)
{
    struct err err = {0};
    int rc = principal_check_grant(maker, made, &err);

    if (!field) {
        assert_int_equal(rc, 0);
        return;
    }
    assert_int_equal(rc, -ERR_FORBIDDEN);
    assert_string_equal(err.field, field);
}

static void a_credential_gives_no_more_than_its_maker_has(void **state)
{
    struct principal root = {.kind = PRINCIPAL_ROOT, .namespace_name = STR("*"),
                             .scopes = set_of("admin")};
    struct principal maker = {.namespace_name = STR("a"), .user_id = STR("u"),
                              .scopes = set_of("operator access:write"), .expires_at_us = 100,
                              .queues = LIST(STR("media*"))};
    struct principal made = {.namespace_name = STR("a"), .user_id = STR("u"),
                             .scopes = set_of("viewer"), .expires_at_us = 100,
                             .queues = LIST(STR("media"))};

    (void)state;
    grants(&root, &maker, NULL);
    grants(&maker, &made, NULL);
    made.namespace_name = STR("b");
    grants(&maker, &made, "namespace");
    made.namespace_name = STR("*");
    grants(&maker, &made, "namespace");
    made.namespace_name = STR("a");
    made.scopes = set_of("admin");
    grants(&maker, &made, "scopes");
    made.scopes = set_of("tasks:delete");
    grants(&maker, &made, "scopes");
    made.scopes = set_of("tasks:control");
    made.user_id = STR_NONE;
    grants(&maker, &made, "user_id");
    made.user_id = STR("u");
    made.queues = (struct name_list){NULL, 0};
    grants(&maker, &made, "queues");
    made.queues = LIST(STR("media:x*"));
    made.expires_at_us = 0;
    grants(&maker, &made, "expires_at");
    made.expires_at_us = 101;
    grants(&maker, &made, "expires_at");
    made.expires_at_us = 99;
    grants(&maker, &made, NULL);
}

static void a_refusal_names_scope_and_namespace(void **state)
{
    struct principal viewer = {.kind = PRINCIPAL_TOKEN, .name = STR("ci"),
                               .scopes = set_of("viewer")};
    struct err err;

    (void)state;
    assert_int_equal(principal_refuse(&viewer, SCOPE_TASKS_DELETE, STR("prod"), &err),
                     -ERR_FORBIDDEN);
    assert_non_null(strstr(err.text, "token:ci"));
    assert_non_null(strstr(err.text, "tasks:delete"));
    assert_non_null(strstr(err.text, "prod"));
}

static void tokens_have_one_form(void **state)
{
    uint8_t id[TOKEN_ID_BYTES] = {0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3};
    uint8_t secret[TOKEN_SECRET_BYTES] = {0};
    char text[TOKEN_CHARS + 1];
    struct str name;

    (void)state;
    secret[31] = 0xff;
    token_text_write(id, secret, text);
    assert_string_equal(text, "pdt_deadbeef00010203_"
                              "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAP8");
    assert_true(token_text_read(str_of(text), &name));
    assert_true(str_is(name, "deadbeef00010203"));
    for (size_t i = 0; i < TOKEN_CHARS; i++) {
        char changed[TOKEN_CHARS + 1];

        memcpy(changed, text, sizeof changed);
        changed[i] = '!';
        assert_false(token_text_read(str_of(changed), &name));
        changed[i] = '\0';
        assert_false(token_text_read(str_span(changed, TOKEN_CHARS), &name));
    }
    assert_false(token_text_read(str_span(text, TOKEN_CHARS - 1), &name));
    assert_false(token_text_read(STR(""), &name));
    text[TOKEN_CHARS - 1] = '9'; /* bits that are not there */
    assert_false(token_text_read(str_of(text), &name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_are_the_scopes_the_manual_lists),
        cmocka_unit_test(unknown_words_are_refused_by_name),
        cmocka_unit_test(admin_allows_everything_and_payloads_include_tasks),
        cmocka_unit_test(user_rows_follow_their_owner),
        cmocka_unit_test(a_maker_sees_its_own_and_no_one_becomes_one_to_see_more),
        cmocka_unit_test(who_is_limited_to_a_user_says_no_other_and_leaves_alone_what_is_of_all),
        cmocka_unit_test(lists_of_names_include_what_their_patterns_cover),
        cmocka_unit_test(a_credential_gives_no_more_than_its_maker_has),
        cmocka_unit_test(a_refusal_names_scope_and_namespace),
        cmocka_unit_test(tokens_have_one_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
