/* Who others vouch for: names of certificates, people behind a proxy, ranges of addresses, and where
 * an issuer's keys may come from. Each rule as a table (D12). */
#include "core/access/jwks_url.h"
#include "core/access/outside.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void address(const char *text, uint8_t bytes[ADDRESS_BYTES])
{
    memset(bytes, 0, ADDRESS_BYTES);
    if (inet_pton(AF_INET, text, bytes + 12) == 1)
        bytes[10] = bytes[11] = 0xff;
    else
        assert_int_equal(inet_pton(AF_INET6, text, bytes), 1);
}

static void a_range_has_the_addresses_behind_its_prefix_and_no_other(void **state)
{
    static const struct {
        const char *range, *address;
        bool has;
    } rows[] = {
        {"10.1.0.0/16", "10.1.255.255", true},   {"10.1.0.0/16", "10.2.0.0", false},
        {"10.1.2.3", "10.1.2.3", true},          {"10.1.2.3", "10.1.2.2", false},
        {"10.1.2.2/31", "10.1.2.3", true},       {"10.1.2.2/31", "10.1.2.4", false},
        {"0.0.0.0/0", "255.255.255.255", true},  {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "10.1.2.3", true},              {"::/0", "2001:db8::1", true},
        {"2001:db8::/33", "2001:db8:7fff::1", true}, {"2001:db8::/33", "2001:db8:8000::", false},
        {"::1", "::1", true},                    {"::1", "127.0.0.1", false},
        {"::ffff:10.0.0.0/104", "10.9.9.9", true}, {"127.0.0.0/8", "::1", false},
        {"2001:db8::1/128", "2001:db8::1", true}, {"2001:db8::1/128", "2001:db8::2", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[ADDRESS_BYTES];
        struct address_range range;

        address(rows[i].address, bytes);
        assert_true(address_range_parse(str_of(rows[i].range), &range));
        if (address_range_has(&range, bytes) != rows[i].has)
            fail_msg("%s and %s", rows[i].range, rows[i].address);
    }
}

static void what_is_no_range_is_refused(void **state)
{
    static const char *const rows[] = {
        "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/24", "10.0.0/8", "10.0.0.0/08", "10.0.0.0/-1",
        "10.0.0.0/ 8", " 10.0.0.0/8", "010.0.0.0/8", "2001:db8::/129", "2001:db8::1/64", "localhost",
        "[::1]", "::1%lo", "10.0.0.0/8/8", "1:2:3:4:5:6:7:8:9", "*", "10.0.0.0/255.0.0.0"};
    struct address_range range;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (address_range_parse(str_of(rows[i]), &range))
            fail_msg("%s", rows[i]);
    assert_false(address_range_parse(str_span("10.0.0.1\0", 9), &range));
    assert_true(address_range_parse(STR("0.0.0.0/0"), &range) &&
                address_range_is_everything(&range));
    assert_true(address_range_parse(STR("::/0"), &range) && address_range_is_everything(&range));
    assert_true(address_range_parse(STR("::/96"), &range) && !address_range_is_everything(&range));
    assert_true(address_range_parse(STR("0.0.0.0/1"), &range) &&
                !address_range_is_everything(&range));
}

static void keys_come_over_TLS_or_from_this_machine(void **state)
{
    static const struct {
        const char *url;
        bool allowed;
    } rows[] = {
        {"https://id.example/keys", true},      {"https://id.example:8443", true},
        {"https://[2001:db8::1]:1/k?x=1", true}, {"http://127.0.0.1:9/keys", true},
        {"http://localhost/keys", true},        {"http://[::1]:9/keys", true},
        {"http://id.example/keys", false},      {"http://127.0.0.1.evil.example/", false},
        {"http://localhost@evil.example/", false}, {"https://user:secret@id.example/", false},
        {"http://localhost#@evil.example/", false}, {"http://localhost\\@evil.example", false},
        {"https://", false},                    {"https:///keys", false},
        {"http://", false},                     {"ftp://127.0.0.1/", false},
        {"HTTP://127.0.0.1/", false},           {"https://a b/", false},
        {"file:///etc/keys", false},            {"http://2130706433/", false},
        {"http://[::1", false},                 {"http://[::1]evil/", false},
    };
    struct str origin, path;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (jwks_url_allowed(str_of(rows[i].url)) != rows[i].allowed)
            fail_msg("%s", rows[i].url);
    jwks_url_split(STR("https://id.example:1/a/?b=/c"), &origin, &path);
    assert_true(str_is(origin, "https://id.example:1") && str_is(path, "/a/?b=/c"));
    jwks_url_split(STR("http://[::1]?b"), &origin, &path);
    assert_true(str_is(origin, "http://[::1]") && str_is(path, "?b"));
    jwks_url_split(STR("https://id.example"), &origin, &path);
    assert_true(path.data && path.len == 0);
}

static void a_name_of_a_certificate_fits_a_rule_whole_or_not_at_all(void **state)
{
    static const struct {
        const char *rule, *given;
        bool fits;
    } rows[] = {
        {"spiffe://a/b", "URI:spiffe://a/b", true},   {"URI:spiffe://a/b", "URI:spiffe://a/b", true},
        {"spiffe://a/b", "URI:spiffe://a/b/", false}, {"spiffe://a/b", "URI:spiffe://a/B", false},
        {"spiffe://a/b", "DNS:spiffe://a/b", false},  {"w.example", "DNS:W.Example", true},
        {"DNS:w.example", "DNS:w.example", true},     {"w.example", "URI:w.example", false},
        {"w.example", "DNS:w.example.", false},       {"w.example", "DNS:*.example", false},
        {"w.example", "w.example", false},            {"w.example", "DNS:", false},
        {"w.example", "email:w.example", false},      {"w.example", "DNS:x.w.example", false},
    };
    static const char *const bad[] = {"", "*.example", "spiffe://a/*", "a b", "DNS:", "URI:",
                                      "URI:w.example", "DNS:spiffe://a/b", "w\x7f", "\xc3\xbc.example"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(outside_san_valid(str_of(rows[i].rule)));
        if (outside_san_matches(str_of(rows[i].rule), str_of(rows[i].given)) != rows[i].fits)
            fail_msg("%s and %s", rows[i].rule, rows[i].given);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (outside_san_valid(str_of(bad[i])))
            fail_msg("%s", bad[i]);
}

static void rights_of_several_rules_are_never_added_up(void **state)
{
    static const struct certificate_rule rules[] = {
        {.san = {"a.example", 9}, .namespace_name = {"one", 3}, .scopes = SCOPE_BIT(SCOPE_WORK)},
        {.san = {"b.example", 9}, .namespace_name = {"two", 3}, .scopes = SCOPE_BIT(SCOPE_ADMIN),
         .user = {"u", 1}},
    };
    static const struct str both[] = {{"DNS:b.example", 13}, {"DNS:a.example", 13}};
    const struct access_settings access = {.certificates = rules, .certificates_count = 2};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    const struct principal *principal;
    struct err err;

    (void)state;
    assert_int_equal(outside_certificate(&access, both, 2, &arena, &principal, &err), 0);
    assert_int_equal(principal->scopes, SCOPE_BIT(SCOPE_WORK));
    assert_true(str_is(principal->namespace_name, "one") && !principal->user_id.data);
    assert_true(str_is(principal->key, "certificate:a.example"));
    assert_int_equal(outside_certificate(&access, both, 1, &arena, &principal, &err), 0);
    assert_int_equal(principal->scopes, SCOPE_BIT(SCOPE_ADMIN));
    assert_true(str_is(principal->user_id, "u"));
    assert_int_equal(outside_certificate(&access, both, 0, &arena, &principal, &err),
                     -ERR_FORBIDDEN);
}

static scope_set scopes_of(const char *user, const char *groups)
{
    static const struct group_rule rules[] = {
        {.name = {"admins", 6}, .scopes = SCOPE_BIT(SCOPE_ADMIN)},
        {.name = {"ops team", 8}, .scopes = SCOPE_BIT(SCOPE_WORK)},
        {.name = {"/staff", 6}, .scopes = SCOPE_BIT(SCOPE_TASKS_READ)},
    };
    const struct proxy_settings settings = {
        .user_header = STR("U"), .groups_header = STR("G"), .namespace_name = STR("*"),
        .groups = rules, .groups_count = 3};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    const struct principal *principal;
    struct err err;

    if (outside_person(&settings, str_of(user), groups ? str_of(groups) : STR_NONE, &arena,
                       &principal, &err) < 0) {
        assert_int_equal(err.code, ERR_FORBIDDEN);
        return 0;
    }
    return principal->scopes;
}

static void a_person_has_the_rights_of_listed_groups(void **state)
{
    (void)state;
    assert_int_equal(scopes_of("a", "admins"), SCOPE_BIT(SCOPE_ADMIN));
    assert_int_equal(scopes_of("a", "x,ops team ,/staff,,"),
                     SCOPE_BIT(SCOPE_WORK) | SCOPE_BIT(SCOPE_TASKS_READ));
    assert_int_equal(scopes_of("a b", " admins"), SCOPE_BIT(SCOPE_ADMIN));
    assert_int_equal(scopes_of("a", "admin"), 0);
    assert_int_equal(scopes_of("a", "Admins"), 0);
    assert_int_equal(scopes_of("a", "ops,team"), 0);
    assert_int_equal(scopes_of("a", ""), 0);
    assert_int_equal(scopes_of("a", NULL), 0);
    assert_int_equal(scopes_of("", "admins"), 0);
    assert_int_equal(scopes_of("a,b", "admins"), 0);
    assert_int_equal(scopes_of("a\tb", "admins"), 0);
    assert_int_equal(scopes_of("a\xff", "admins"), 0);
}

static int jwt_of(const char *claims, struct arena *arena, const struct principal **principal,
                  struct err *err)
{
    const struct jwt_settings settings = {
        .user_claim = STR("sub"), .namespace_claim = STR("namespace"),
        .scopes_claim = STR("/realm/roles"), .user_id_claim = STR("uid")};
    const struct jwt jwt = {.claims = str_of(claims)};

    return outside_jwt(&settings, &jwt, 7, arena, principal, err);
}

static void claims_become_a_principal(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    const struct principal *principal;
    struct err err;

    (void)state;
    assert_int_equal(jwt_of("{\"sub\":\"s\",\"uid\":\"u\",\"realm\":{\"roles\":[\"x\",\"worker\","
                            "\"tasks:read\"]}}", &arena, &principal, &err), 0);
    assert_true(str_is(principal->name, "s") && str_is(principal->user_id, "u") &&
                str_is(principal->namespace_name, "default") && str_is(principal->key, "jwt:s"));
    assert_int_equal(principal->scopes, SCOPE_BIT(SCOPE_WORK) | SCOPE_BIT(SCOPE_TASKS_READ));
    assert_int_equal(principal->expires_at_us, 7);
}

static void claims_that_say_too_little_or_too_much_are_refused(void **state)
{
    static const struct {
        const char *claims, *word;
    } rows[] = {
        {"{\"uid\":\"u\",\"realm\":{\"roles\":[\"worker\"]}}", "'sub'"},
        {"{\"sub\":7,\"uid\":\"u\",\"realm\":{\"roles\":[\"worker\"]}}", "'sub'"},
        {"{\"sub\":\"a\\nb\",\"uid\":\"u\",\"realm\":{\"roles\":[\"worker\"]}}", "'sub'"},
        {"{\"sub\":\"s\",\"realm\":{\"roles\":[\"worker\"]}}", "'uid'"}, /* not: of all users */
        {"{\"sub\":\"s\",\"uid\":\"\",\"realm\":{\"roles\":[\"worker\"]}}", "'uid'"},
        {"{\"sub\":\"s\",\"uid\":\"u\",\"namespace\":\"-\",\"realm\":{\"roles\":[\"worker\"]}}",
         "'namespace'"},
        {"{\"sub\":\"s\",\"uid\":\"u\",\"namespace\":7,\"realm\":{\"roles\":[\"worker\"]}}",
         "'namespace'"},
        {"{\"sub\":\"s\",\"uid\":\"u\",\"namespace\":null,\"realm\":{\"roles\":[\"worker\"]}}",
         "'namespace'"},
        {"{\"sub\":\"s\",\"uid\":\"u\",\"namespace\":{},\"realm\":{\"roles\":[\"worker\"]}}",
         "'namespace'"},
        {"{\"sub\":\"s\",\"uid\":\"u\",\"namespace\":[7],\"realm\":{\"roles\":[\"worker\"]}}",
         "'namespace'"},
        {"{\"sub\":\"s\",\"uid\":\"u\",\"namespace\":\"**\",\"realm\":{\"roles\":[\"worker\"]}}",
         "'namespace'"},
        {"{\"sub\":\"s\",\"uid\":\"u\",\"realm\":{\"roles\":[\"openid\"]}}", "openid"},
        {"{\"sub\":\"s\",\"uid\":\"u\",\"realm\":{}}", "missing or empty"},
        {"{\"sub\":\"s\",\"uid\":\"u\",\"realm\":{\"roles\":{\"worker\":1}}}", "missing or empty"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        const struct principal *principal;
        struct err err = {0};

        assert_int_equal(jwt_of(rows[i].claims, &arena, &principal, &err), -ERR_FORBIDDEN);
        if (!strstr(err.text, rows[i].word))
            fail_msg("'%s' is not in '%s'", rows[i].word, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_has_the_addresses_behind_its_prefix_and_no_other),
        cmocka_unit_test(what_is_no_range_is_refused),
        cmocka_unit_test(keys_come_over_TLS_or_from_this_machine),
        cmocka_unit_test(a_name_of_a_certificate_fits_a_rule_whole_or_not_at_all),
        cmocka_unit_test(rights_of_several_rules_are_never_added_up),
        cmocka_unit_test(a_person_has_the_rights_of_listed_groups),
        cmocka_unit_test(claims_become_a_principal),
        cmocka_unit_test(claims_that_say_too_little_or_too_much_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
