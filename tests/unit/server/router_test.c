/* The table of routes: what a path and a query find in it, and that openapi.json has the same. */
#include "base/embedded.h"
#include "base/json.h"
#include "server/router.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *pattern_found(enum http_method method, const char *path, struct arena *arena,
                                 struct str *name, char allow[ROUTER_ALLOW_BYTES], int *rc)
{
    struct str names[ROUTE_NAMES_MAX];
    const struct route *route;
    struct err err = {0};

    *rc = router_find(method, str_of(path), arena, &route, names, allow, &err);
    *name = names[0];
    assert_int_equal(*rc == 0 ? ERR_NONE : err.code, -*rc);
    return route ? route->pattern : NULL;
}

static void paths_find_their_routes(void **state)
{
    static const struct {
        enum http_method method;
        const char *path, *pattern, *name;
    } cases[] = {
        {HTTP_GET, "/", "/", NULL},
        {HTTP_POST, "/v1/tasks", "/v1/tasks", NULL},
        {HTTP_HEAD, "/v1/tasks", "/v1/tasks", NULL},
        {HTTP_GET, "/v1/tasks/abc", "/v1/tasks/{id}", "abc"},
        {HTTP_GET, "/v1/tasks/abc/events", "/v1/tasks/{id}/events", "abc"},
        {HTTP_POST, "/v1/tasks/abc:cancel", "/v1/tasks/{id}:cancel", "abc"},
        {HTTP_POST, "/v1/workers/h-1-2:claim", "/v1/workers/{id}:claim", "h-1-2"},
        {HTTP_PATCH, "/v1/queues/a%2Fb%20c", "/v1/queues/{name}", "a/b c"},
        {HTTP_GET, "/v1/queues/a:b", "/v1/queues/{name}", "a:b"},
        {HTTP_POST, "/v1/queues/a:b:pause", "/v1/queues/{name}:pause", "a:b"},
        {HTTP_GET, "/v1/queues/x%3Apause", "/v1/queues/{name}", "x:pause"},
        {HTTP_GET, "/openapi.json", "/openapi.json", NULL},
    };
    struct arena arena = ARENA_INIT(0);
    char allow[ROUTER_ALLOW_BYTES];
    struct str name;
    int rc;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *pattern = pattern_found(cases[i].method, cases[i].path, &arena, &name, allow,
                                            &rc);

        assert_int_equal(rc, 0);
        assert_string_equal(pattern, cases[i].pattern);
        assert_true(cases[i].name ? str_is(name, cases[i].name) : !name.data);
    }
    arena_deinit(&arena);
}

static void unknown_paths_and_verbs_are_not_found(void **state)
{
    static const char *const paths[] = {
        "/v1", "/v1/", "/v2/tasks", "/v1/tasks/", "/v1/tasks/a/b", "/v1/tasks/:cancel", "//",
        "/v1/tasks/a:nothing", "/healthz/", "*", "", "/a/b/c/d/e/f/g/h/i/j"};
    struct arena arena = ARENA_INIT(0);
    char allow[ROUTER_ALLOW_BYTES];
    struct str name;
    int rc;

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        pattern_found(HTTP_POST, paths[i], &arena, &name, allow, &rc);
        assert_int_equal(rc, -ERR_NOT_FOUND);
    }
    arena_deinit(&arena);
}

static void another_method_is_refused_with_those_there_are(void **state)
{
    struct arena arena = ARENA_INIT(0);
    char allow[ROUTER_ALLOW_BYTES];
    struct str name;
    int rc;

    (void)state;
    pattern_found(HTTP_PUT, "/v1/tasks/a", &arena, &name, allow, &rc);
    assert_int_equal(rc, -ERR_METHOD);
    assert_string_equal(allow, "GET, HEAD, PATCH, DELETE");
    pattern_found(HTTP_GET, "/v1/tasks/a:cancel", &arena, &name, allow, &rc);
    assert_int_equal(rc, -ERR_METHOD);
    assert_string_equal(allow, "POST");
    pattern_found(HTTP_OTHER, "/v1/tasks", &arena, &name, allow, &rc);
    assert_string_equal(allow, "POST, GET, HEAD, DELETE");
    arena_deinit(&arena);
}

static void a_path_may_have_two_names(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct str names[ROUTE_NAMES_MAX];
    char allow[ROUTER_ALLOW_BYTES];
    const struct route *route;
    struct err err = {0};

    (void)state;
    assert_int_equal(router_find(HTTP_DELETE, STR("/v1/jobs/a%2Fb/dependencies/c"), &arena, &route,
                                 names, allow, &err), 0);
    assert_true(str_is(names[0], "a/b") && str_is(names[1], "c"));
    assert_int_equal(router_find(HTTP_DELETE, STR("/v1/jobs/a/dependencies/%zz"), &arena, &route,
                                 names, allow, &err), -ERR_MALFORMED);
    assert_int_equal(router_find(HTTP_POST, STR("/v1/schedules:preview"), &arena, &route, names,
                                 allow, &err), 0);
    assert_null(names[0].data);
    arena_deinit(&arena);
}

static void bad_escapes_in_a_name_are_malformed(void **state)
{
    struct arena arena = ARENA_INIT(0);
    char allow[ROUTER_ALLOW_BYTES];
    struct str name;
    int rc;

    (void)state;
    pattern_found(HTTP_GET, "/v1/queues/%zz", &arena, &name, allow, &rc);
    assert_int_equal(rc, -ERR_MALFORMED);
    pattern_found(HTTP_GET, "/v1/queues/a%00b", &arena, &name, allow, &rc);
    assert_int_equal(rc, -ERR_MALFORMED);
    arena_deinit(&arena);
}

static void queries_go_by_the_routes_own_parameters(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct str values[ROUTE_PARAMETERS_MAX] = {{NULL, 0}};
    char allow[ROUTER_ALLOW_BYTES];
    const struct route *route;
    struct err err = {0};
    struct str names[ROUTE_NAMES_MAX];

    (void)state;
    assert_int_equal(router_find(HTTP_GET, STR("/v1/stream"), &arena, &route, names, allow, &err),
                     0);
    assert_int_equal(router_query(route, STR("type=a%20b"), &arena, values, &err), 0);
    assert_null(values[0].data);
    assert_true(str_is(values[1], "a b"));
    assert_null(values[2].data);
    assert_int_equal(router_query(route, STR("queue="), &arena, values, &err), -ERR_INVALID);
    assert_string_equal(err.field, "queue");
    assert_int_equal(router_query(route, STR("colour=red"), &arena, values, &err), -ERR_INVALID);
    assert_string_equal(err.field, "colour");
    memset(values, 0, sizeof values);
    assert_int_equal(router_query(route, STR("type=a&type=b"), &arena, values, &err),
                     -ERR_INVALID);
    assert_string_equal(err.field, "type");
    memset(values, 0, sizeof values);
    assert_int_equal(router_query(route, STR("type=%f"), &arena, values, &err), -ERR_MALFORMED);
    arena_deinit(&arena);
}

static struct str described(struct str paths, const struct route *route)
{
    struct str path = json_get(paths, str_of(route->pattern));
    char method[16] = "";
    const char *word = router_method_word(route->method);

    for (size_t i = 0; word[i]; i++)
        method[i] = (char)(word[i] | 0x20);
    return path.data ? json_get(path, str_of(method)) : STR_NONE;
}

/* Parameters are components that operations refer to. */
static bool parameter_described(struct str document, struct str operation, const char *name,
                                struct arena *arena)
{
    struct str shared = json_get(json_get(document, STR("components")), STR("parameters"));
    struct str parameters = json_get(operation, STR("parameters"));
    size_t folder_len = sizeof "#/components/parameters/" - 1;
    struct json_iter iter;
    struct str item;

    if (!parameters.data)
        return false;
    json_begin(parameters, &iter);
    while (json_next_element(&iter, &item)) {
        struct str reference = json_string(json_get(item, STR("$ref")), arena);
        struct str own = json_get(shared, str_span(reference.data + folder_len,
                                                   reference.len - folder_len));

        if (str_is(json_string(json_get(own, STR("name")), arena), name) &&
            str_is(json_string(json_get(own, STR("in")), arena), "query"))
            return true;
    }
    return false;
}

static void the_description_has_every_route_and_no_other(void **state)
{
    const struct embedded *file = embedded_find("server/assets/openapi.json");
    struct arena arena = ARENA_INIT(0);
    struct str document, paths;
    struct json_member path;
    struct json_iter iter;
    uint32_t count = 0;

    (void)state;
    assert_non_null(file);
    assert_int_equal(json_check(str_span(file->data, file->len), &document, NULL), 0);
    paths = json_get(document, STR("paths"));
    for (const struct route *route = routes; route->pattern; route++) {
        struct str operation = described(paths, route);

        assert_true(operation.data);
        assert_true(str_is(json_string(json_get(operation, STR("summary")), &arena),
                           route->summary));
        for (int i = 0; i < ROUTE_PARAMETERS_MAX && route->parameters[i]; i++)
            assert_true(parameter_described(document, operation, route->parameters[i], &arena));
    }
    json_begin(paths, &iter);
    while (json_next_member(&iter, &path))
        count += (uint32_t)json_count(path.value);
    assert_int_equal(count, routes_count());
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_find_their_routes),
        cmocka_unit_test(unknown_paths_and_verbs_are_not_found),
        cmocka_unit_test(another_method_is_refused_with_those_there_are),
        cmocka_unit_test(a_path_may_have_two_names),
        cmocka_unit_test(bad_escapes_in_a_name_are_malformed),
        cmocka_unit_test(queries_go_by_the_routes_own_parameters),
        cmocka_unit_test(the_description_has_every_route_and_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
