/* A remote worker's calls against a server that answers anything: who it takes itself for, what it
 * asks again and where it stops asking (E3). The bodies are tested in source_remote_json_test,
 * the real routes in http_client_test. */
#include "odd_server.h"

#include "base/uuid7.h"
#include "worker/sources/source_remote.h"

#define REGISTERED "{\"id\":\"w\",\"heartbeat_ms\":100,\"lease_ms\":300}"
#define UNKNOWN "{\"error\":{\"code\":\"not_found\",\"message\":\"who?\"}}"

struct world {
    struct odd_server *server;
    struct source *source;
    struct arena arena;
    struct err err;
};

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    world->server = odd_start();
    world->source = source_remote_open(str_of(world->server->url), STR_NONE, STR_NONE, NULL,
                                       &world->err);
    assert_non_null(world->source);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    world->source->verbs->free(world->source);
    arena_deinit(&world->arena);
    odd_stop(world->server);
    free(world);
    return 0;
}

static int register_as(struct world *world, const struct source_worker *worker, struct str *id)
{
    struct source_registration registered = {.id = STR_NONE};
    int rc = world->source->verbs->register_worker(world->source, worker, &world->arena,
                                                   &registered, &world->err);

    *id = registered.id;
    return rc;
}

static void a_registration_is_kept_and_repeated_under_the_same_id(void **state)
{
    const struct str types[] = {STR("a")};
    const struct source_worker worker = {.hostname = STR("h"), .pool_size = 1, .types = types,
                                         .types_count = 1};
    struct world *world = *state;
    struct str id;

    odd_put_one(world->server, 201, REGISTERED);
    assert_int_equal(register_as(world, &worker, &id), 0);
    assert_true(str_is(id, "w"));
    assert_int_equal(register_as(world, &worker, &id), 0);
    assert_true(str_is(id, "w"));
}

static void something_that_is_no_server_of_ours_is_told(void **state)
{
    const struct source_worker worker = {.id = STR("w"), .pool_size = 1};
    struct world *world = *state;
    struct str id;

    odd_put_one(world->server, 404, "<html>not found</html>");
    assert_int_equal(register_as(world, &worker, &id), -ERR_IO);
    assert_non_null(strstr(world->err.text, "no Perdura server"));
    odd_put_one(world->server, 200, "<html>");
    assert_int_equal(register_as(world, &worker, &id), -ERR_IO);
    odd_put_one(world->server, 401, "");
    assert_int_equal(register_as(world, &worker, &id), -ERR_UNAUTHORIZED);
    odd_put_one(world->server, 200, NULL);
    assert_true(register_as(world, &worker, &id) < 0);
}

static void leaving_a_server_that_forgot_is_fine(void **state)
{
    const struct source_worker worker = {.id = STR("w"), .pool_size = 1};
    struct world *world = *state;
    struct str id;

    odd_put_one(world->server, 201, REGISTERED);
    assert_int_equal(register_as(world, &worker, &id), 0);
    odd_put_one(world->server, 404, UNKNOWN);
    assert_int_equal(world->source->verbs->leave(world->source, &world->err), 0);
    odd_put_one(world->server, 503, "");
    assert_int_equal(world->source->verbs->leave(world->source, &world->err), -ERR_UNAVAILABLE);
}

static void bodies_beyond_what_one_request_may_have_are_not_sent(void **state)
{
    struct world *world = *state;
    size_t len = (size_t)65 << 20;
    char *result = malloc(len + 1);
    struct report report = {.op = REPORT_COMPLETE, .progress = -1, .delay_ms = -1};
    struct report_result answer;

    assert_non_null(result);
    memset(result, '1', len);
    result[len] = '\0';
    report.result = str_span(result, len);
    assert_int_equal(world->source->verbs->report(world->source, &report, 1, &answer, &world->err),
                     -ERR_TOO_LARGE);
    assert_int_equal(world->server->requests, 0);
    free(result);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_registration_is_kept_and_repeated_under_the_same_id),
        EACH(something_that_is_no_server_of_ours_is_told),
        EACH(leaving_a_server_that_forgot_is_fine),
        EACH(bodies_beyond_what_one_request_may_have_are_not_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
