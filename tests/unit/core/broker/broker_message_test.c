/* Which task a message of a broker becomes, and why it is refused (A13). */
#include "core/broker/broker_message.h"

#include "core/bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const struct broker_input plain = {
    .queue = STR("q"), .type = STR("t"), .namespace_name = STR("default")};
static const struct broker_input mapped = {
    .queue = STR("q"), .type = STR("t"), .namespace_name = STR("default"),
    .task_queue = STR("orders"), .payload = STR("/body"), .key = STR("/id"),
    .options = STR("/task")};

struct fixture {
    struct arena arena;
    struct task_input task;
    struct err err;
};

static int parse(struct fixture *fx, const struct broker_input *input, const char *body,
                 const char *id)
{
    const struct broker_message message = {str_of(body), str_of(id)};

    arena_reset(&fx->arena);
    fx->err = (struct err){0};
    return broker_message_parse(STR("b"), input, &message, NULL, &fx->arena, &fx->task, &fx->err);
}

static void a_body_is_the_payload_byte_for_byte(void **state)
{
    struct fixture fx = {.arena = ARENA_INIT(0)};

    (void)state;
    assert_int_equal(parse(&fx, &plain, " {\"b\":1 , \"a\":2.50}", "m1"), 0);
    assert_true(str_is(fx.task.spec.payload, "{\"b\":1 , \"a\":2.50}"));
    assert_true(str_is(fx.task.spec.type, "t"));
    assert_true(str_is(fx.task.spec.queue, "default"));
    assert_true(str_is(fx.task.spec.idempotency_key, "perdura:broker:b:q:m1"));
    assert_int_equal(fx.task.given_key, 0);
    arena_deinit(&fx.arena);
}

static void members_are_payload_key_and_options(void **state)
{
    struct fixture fx = {.arena = ARENA_INIT(0)};

    (void)state;
    assert_int_equal(parse(&fx, &mapped, "{\"body\":[1],\"id\":17,\"task\":{\"priority\":5}}",
                           "unused"), 0);
    assert_true(str_is(fx.task.spec.payload, "[1]"));
    assert_true(str_is(fx.task.spec.queue, "orders"));
    assert_true(str_is(fx.task.spec.idempotency_key, "perdura:broker:b:q:17"));
    assert_int_equal(fx.task.priority, 5);
    assert_int_equal(parse(&fx, &mapped, "{\"body\":1,\"id\":\"\\u00e9\",\"task\":{\"queue\":"
                           "\"other\"}}", NULL), 0);
    assert_true(str_is(fx.task.spec.queue, "other"));
    assert_true(str_is(fx.task.spec.idempotency_key, "perdura:broker:b:q:\xc3\xa9"));
    arena_deinit(&fx.arena);
}

static void keys_that_are_too_long_are_hashes_that_differ(void **state)
{
    struct fixture fx = {.arena = ARENA_INIT(0)};
    char id[251], first[BOUND_KEY_BYTES];

    (void)state;
    memset(id, 'x', 250);
    id[250] = '\0';
    assert_int_equal(parse(&fx, &plain, "1", id), 0);
    assert_true(str_starts(fx.task.spec.idempotency_key, STR("perdura:broker:sha256:")));
    assert_int_equal(fx.task.spec.idempotency_key.len, 22 + 64);
    memcpy(first, fx.task.spec.idempotency_key.data, 86);
    id[249] = 'y';
    assert_int_equal(parse(&fx, &plain, "1", id), 0);
    assert_memory_not_equal(first, fx.task.spec.idempotency_key.data, 86);
    arena_deinit(&fx.arena);
}

static void a_poison_message_says_why(void **state)
{
    static const struct {
        const struct broker_input *input;
        const char *body, *id, *says;
    } rows[] = {
        {&plain, "", "m", "JSON"},
        {&plain, "{", "m", "JSON"},
        {&plain, "{\"a\":1,\"a\":2}", "m", "twice"},
        {&plain, "1e999", "m", "number"},
        {&plain, "1", NULL, "message_id"},
        {&plain, "1", "", "message_id"},
        {&plain, "1", "\xff", "UTF-8"},
        {&mapped, "{\"body\":1}", "m", "map.key"},
        {&mapped, "{\"body\":1,\"id\":null}", "m", "text or a number"},
        {&mapped, "{\"body\":1,\"id\":\"\"}", "m", "text or a number"},
        {&mapped, "{\"id\":1}", "m", "map.payload"},
        {&mapped, "[]", "m", "map.key"},
        {&mapped, "{\"body\":1,\"id\":1,\"task\":[]}", "m", "object"},
        {&mapped, "{\"body\":1,\"id\":1,\"task\":{\"colour\":1}}", "m", "colour"},
        {&mapped, "{\"body\":1,\"id\":1,\"task\":{\"type\":\"x\"}}", "m", "twice"},
        {&mapped, "{\"body\":1,\"id\":1,\"task\":{\"payload\":2}}", "m", "twice"},
        {&mapped, "{\"body\":1,\"id\":1,\"task\":{\"idempotency_key\":\"k\"}}", "m",
         "idempotency_key"},
    };
    struct fixture fx = {.arena = ARENA_INIT(0)};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(parse(&fx, rows[i].input, rows[i].body, rows[i].id) < 0);
        if (!strstr(fx.err.text, rows[i].says))
            fail_msg("'%s' does not say %s", fx.err.text, rows[i].says);
    }
    arena_deinit(&fx.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_is_the_payload_byte_for_byte),
        cmocka_unit_test(members_are_payload_key_and_options),
        cmocka_unit_test(keys_that_are_too_long_are_hashes_that_differ),
        cmocka_unit_test(a_poison_message_says_why),
    };

    return cmocka_run_group_tests_name("messages of brokers", tests, NULL, NULL);
}
