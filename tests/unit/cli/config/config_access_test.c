/* The section `access:` of a configuration file: what it becomes, and what it may not say
 * (D12). */
#include "cli/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define JWT "access:\n  jwt:\n    issuer: i\n    audience: a\n"
#define PROXY "access:\n  proxy:\n    from: [10.0.0.0/8]\n    user_header: X-U\n"              \
              "    groups_header: X-G\n"

static const char whole[] =
    "access:\n"
    "  required: true\n"
    "  jwt:\n"
    "    issuer: https://id.example\n"
    "    audience: perdura\n"
    "    jwks_url: https://id.example/keys\n"
    "    ca: ca.pem\n"
    "    claims: {user: email, scopes: /realm_access/roles}\n"
    "  certificates:\n"
    "    - {san: spiffe://a/b, namespace: one, scopes: [worker, metrics:read], user: u}\n"
    "    - {san: DNS:c.example, scopes: admin}\n"
    "  proxy:\n"
    "    from: [10.0.0.0/8, '::1']\n"
    "    user_header: X-User\n"
    "    groups_header: X-Groups\n"
    "    namespace: '*'\n"
    "    groups: {ops team: [operator], all: viewer}\n"
    "  sql_roles:\n"
    "    billing: finance\n"
    "    shop: {namespace: web, verbs: [enqueue, status], types: ['order:*', mail]}\n"
    "    idle: {verbs: []}\n";

static void a_whole_section_is_read(void **state)
{
    CONFIG_AUTO struct config config;
    const struct access_settings *access = &config.settings.access;
    struct err err = {0};

    (void)state;
    assert_int_equal(config_init_defaults(&config, &err), 0);
    assert_false(settings_ask_for_credentials(access));
    if (config_parse(&config, str_of(whole), "c.yaml", &err) < 0)
        fail_msg("%s", err.text);
    assert_true(access->required && str_is(access->jwt.user_claim, "email") &&
                str_is(access->jwt.scopes_claim, "/realm_access/roles") &&
                str_is(access->jwt.namespace_claim, "namespace") &&
                !access->jwt.user_id_claim.data && str_is(access->jwt.ca, "ca.pem"));
    assert_int_equal(access->certificates_count, 2);
    assert_int_equal(access->certificates[0].scopes,
                     SCOPE_BIT(SCOPE_WORK) | SCOPE_BIT(SCOPE_METRICS_READ));
    assert_true(str_is(access->certificates[0].user, "u"));
    assert_true(str_is(access->certificates[1].namespace_name, "default"));
    assert_int_equal(access->certificates[1].scopes, SCOPE_BIT(SCOPE_ADMIN));
    assert_int_equal(access->proxy.from_count, 2);
    assert_int_equal(access->proxy.from[0].bits, ADDRESS_V4_BITS + 8);
    assert_int_equal(access->sql_roles_count, 3);
    assert_true(str_is(access->sql_roles[0].namespace_name, "finance") &&
                !access->sql_roles[0].verbs && !access->sql_roles[0].types);
    assert_true(str_is(access->sql_roles[1].namespace_name, "web") &&
                access->sql_roles[1].verbs_count == 2 && access->sql_roles[1].types_count == 2);
    assert_true(str_is(access->sql_roles[2].namespace_name, "default"));
    assert_non_null(access->sql_roles[2].verbs); /* none, which is not all */
    assert_int_equal(access->proxy.groups_count, 2);
    assert_true(str_is(access->proxy.groups[0].name, "ops team"));
    assert_true(scopes_allow(access->proxy.groups[0].scopes, SCOPE_TASKS_CONTROL));
    assert_false(scopes_allow(access->proxy.groups[1].scopes, SCOPE_TASKS_CONTROL));
    assert_true(settings_ask_for_credentials(access));
}

static void a_section_that_is_wrong_in_one_place_is_refused(void **state)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {JWT, "either jwks_url or jwks_file"},
        {JWT "    jwks_url: https://a/\n    jwks_file: b\n", "either jwks_url or jwks_file"},
        {JWT "    jwks_url: http://id.example/\n", "must begin with https://"},
        {JWT "    jwks_url: https://u:p@id.example/\n", "no user or password"},
        {JWT "    jwks_file: b\n    ca: c\n", "no use without jwks_url"},
        {JWT "    jwks_file: b\n    claims: {user: /a~2}\n", "access.jwt.claims.user"},
        {JWT "    jwks_file: b\n    claims: {users: x}\n", "unknown key 'users'"},
        {"access: {jwt: {issuer: i, jwks_file: b}}\n", "an issuer and an audience"},
        {"access: {jwt: {audience: i, jwks_file: b}}\n", "an issuer and an audience"},
        {"access:\n  certificates:\n    - {scopes: admin}\n", "c.yaml:3: this entry of "
                                                              "access.certificates has no 'san'"},
        {"access:\n  certificates:\n    - {san: a.example}\n", "has no 'scopes'"},
        {"access:\n  certificates:\n    - {san: a.example, scopes: []}\n", "a scope or a role"},
        {"access:\n  certificates:\n    - {san: a.example, scopes: [adm]}\n", "c.yaml:3: scopes: "
                                                                          "there is no scope"},
        {"access:\n  certificates:\n    - {san: a.example, scopes: 'worker adm'}\n", "'adm'"},
        {"access:\n  certificates:\n    - {san: a.example, scopes: {a: b}}\n", "scopes"},
        {"access:\n  certificates:\n    - {san: '*.a', scopes: admin}\n", "without patterns"},
        {"access:\n  certificates:\n    - {san: a, scopes: admin, namespace: -a}\n", "namespace"},
        {"access:\n  certificates:\n    - {san: a, scopes: admin}\n    - {san: a, scopes: work}\n",
         "two entries"},
        {PROXY, "needs groups"},
        {PROXY "    groups: {}\n", "needs groups"},
        {PROXY "    groups: {a: []}\n", "a scope or a role"},
        {PROXY "    groups: {a: admin, a: work}\n", "given twice"},
        {PROXY "    groups: [a]\n", "a mapping of names to scopes"},
        {PROXY "    groups: {a: nothing}\n", "'nothing'"},
        {PROXY "    groups: {'': admin}\n", "text that is not empty"},
        {PROXY "    groups: {a: admin}\n    namespace: a b\n", "access.proxy.namespace"},
        {"access: {proxy: {user_header: X-U, groups_header: X-G, groups: {a: admin}}}\n",
         "needs from"},
        {"access: {proxy: {from: [], user_header: X-U, groups_header: X-G, groups: {a: admin}}}\n",
         "needs from"},
        {"access: {proxy: {from: [10.0.0.1/8], user_header: X-U}}\n", "no bit may be set"},
        {"access: {proxy: {from: [proxy.example], user_header: X-U}}\n", "not an address range"},
        {"access: {proxy: {from: 10.0.0.0/8, user_header: X-U}}\n", "a list such as"},
        {"access: {proxy: {from: [10.0.0.1], groups_header: X-U, groups: {a: admin}}}\n",
         "needs user_header"},
        {"access: {proxy: {from: [10.0.0.1], user_header: X-U, groups: {a: admin}}}\n",
         "needs groups_header"},
        {"access: {proxy: {from: [10.0.0.1], user_header: X-U, groups_header: x-u}}\n",
         "the same header"},
        {"access: {proxy: {from: [10.0.0.1], user_header: Authorization, groups_header: x}}\n",
         "access.proxy.user_header is 'Authorization'"},
        {"access: {proxy: {from: [10.0.0.1], user_header: 'X U', groups_header: x}}\n",
         "access.proxy.user_header"},
        {"access: {proxy: {from: [10.0.0.1], user_header: X-U, groups_header: X_G}}\n",
         "access.proxy.groups_header"},
        {"access: {sql_roles: {shop: -a}}\n", "namespace '-a' is not the name of one"},
        {"access: {sql_roles: {shop: {namespace: -a}}}\n", "namespace '-a' is not the name of one"},
        {"access: {sql_roles: {shop: {verbs: [fly]}}}\n", "no verb 'fly'; choose from enqueue"},
        {"access: {sql_roles: {shop: {types: ['a*b']}}}\n", "'*' at its end only"},
        {"access: {sql_roles: {shop: {queues: [a]}}}\n", "unknown key 'queues'"},
        {"access: {required: 1}\n", "true or false"},
        {"access: {tokens: 1}\n", "unknown key 'tokens' in access"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CONFIG_AUTO struct config config;
        struct err err = {0};

        assert_int_equal(config_init_defaults(&config, &err), 0);
        if (config_parse(&config, str_of(rows[i].text), "c.yaml", &err) == 0)
            fail_msg("accepted: %s", rows[i].text);
        if (!strstr(err.text, rows[i].sentence))
            fail_msg("'%s' is not in '%s'", rows[i].sentence, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_section_is_read),
        cmocka_unit_test(a_section_that_is_wrong_in_one_place_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
