/* What a process remembers of the chains it wrote (F-J5, store/log_memory.h). */
#include "store/log_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define ROOM 100000

struct fixture {
    struct log_memory *memory;
    struct arena arena;
};

static int setup(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){.memory = log_memory_new(), .arena = ARENA_INIT(0)};
    *state = &fixture;
    return fixture.memory ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    log_memory_free(fixture->memory);
    arena_deinit(&fixture->arena);
    return 0;
}

static struct uuid run(uint32_t number)
{
    struct uuid id = {{1}};

    memcpy(id.bytes + 8, &number, sizeof number);
    return id;
}

static void write_runs(struct fixture *fixture, uint32_t first, uint32_t count, int64_t seq)
{
    struct log_cuts written = {.arena = &fixture->arena}, none = {.count = 0};

    for (uint32_t i = 0; i < count; i++) {
        struct uuid id = run(first + i);

        assert_int_equal(log_cuts_add(&written, &id, seq, STR_NONE, 0, 0), 0);
    }
    log_memory_commit(fixture->memory, &written, &none, &none, 1);
}

/* A record goes by memory alone. */
static void sign_all(struct fixture *fixture)
{
    uint64_t now = log_memory_now(fixture->memory);
    struct log_cuts found = {.arena = &fixture->arena}, none = {.count = 0};

    assert_int_equal(log_memory_list(fixture->memory, now, false, NULL, NULL, 0, &found), 0);
    log_memory_signed(fixture->memory, now, &found, &none, 0);
}

static bool may_follow(struct fixture *fixture, uint32_t number, int64_t seq)
{
    const struct log_last last = {.execution_id = run(number), .seq = seq};

    return log_memory_fits(fixture->memory, log_memory_now(fixture->memory), &last);
}

static void j5_what_was_signed_by_memory_alone_is_still_known(void **state)
{
    struct fixture *fixture = *state;

    write_runs(fixture, 1, 1, 5);
    assert_false(may_follow(fixture, 1, 4));
    sign_all(fixture);
    assert_false(may_follow(fixture, 1, 4));
    assert_true(may_follow(fixture, 1, 6));
}

static void j5_what_notes_have_named_is_forgotten(void **state)
{
    struct fixture *fixture = *state;
    const struct log_part part = {.head = {.execution_id = run(1), .seq = 6}}, *named[] = {&part};
    const uint32_t counts[] = {1};
    struct log_cuts found = {.arena = &fixture->arena}, none = {.count = 0};
    uint64_t now;

    write_runs(fixture, 1, 1, 5);
    now = log_memory_now(fixture->memory);
    assert_int_equal(log_memory_list(fixture->memory, now, true, named, counts, 1, &found), 0);
    assert_int_equal(found.count, 1); /* another node may have put others in their place */
    found.count = 0;
    assert_int_equal(log_memory_list(fixture->memory, now, false, named, counts, 1, &found), 0);
    assert_int_equal(found.count, 0);
    log_memory_signed(fixture->memory, now, &found, &none, 0);
    assert_true(may_follow(fixture, 1, 4));
}

static void j5_what_waits_for_another_node_is_kept_and_counted(void **state)
{
    struct fixture *fixture = *state;
    struct log_cuts found, none = {.count = 0};

    write_runs(fixture, 1, 2, 5);
    for (int round = 1; round <= 3; round++) {
        uint64_t now = log_memory_now(fixture->memory);

        assert_false(log_memory_waits(fixture->memory));
        found = (struct log_cuts){.arena = &fixture->arena};
        assert_int_equal(log_memory_list(fixture->memory, now, false, NULL, NULL, 0, &found), 0);
        assert_int_equal(found.count, round == 1 ? 2 : 1);
        found.count = 1; /* the other one is named */
        log_memory_signed(fixture->memory, now, &none, &found, 7);
        assert_int_equal(log_memory_found(fixture->memory), 0);
    }
    assert_true(log_memory_waits(fixture->memory));
    log_memory_signed(fixture->memory, log_memory_now(fixture->memory), &none, &none, 9);
    assert_false(log_memory_waits(fixture->memory));
    assert_int_equal(log_memory_found(fixture->memory), 7);
    assert_true(may_follow(fixture, 1, 4) && may_follow(fixture, 2, 4));
}

static void j5_a_record_comes_before_there_is_no_room_and_what_it_signed_makes_room(void **state)
{
    struct fixture *fixture = *state;

    write_runs(fixture, 0, ROOM / 4 - 1, 5);
    assert_false(log_memory_is_full(fixture->memory));
    write_runs(fixture, ROOM / 4 - 1, 1, 5);
    assert_true(log_memory_is_full(fixture->memory));
    sign_all(fixture);
    assert_false(log_memory_is_full(fixture->memory));
    assert_false(may_follow(fixture, 7, 4));
    write_runs(fixture, ROOM, ROOM, 5);
    assert_false(may_follow(fixture, 2 * ROOM - 1, 4));
}

static void j5_an_execution_is_refused_once(void **state)
{
    struct fixture *fixture = *state;
    struct log_cuts refused = {.arena = &fixture->arena}, none = {.count = 0};
    struct uuid id = run(1), other = run(2);

    assert_int_equal(log_cuts_add(&refused, &id, 0, STR_NONE, 0, 0), 0);
    assert_false(log_memory_refused(fixture->memory, &id));
    log_memory_commit(fixture->memory, &none, &refused, &none, 1);
    assert_true(log_memory_refused(fixture->memory, &id));
    assert_false(log_memory_refused(fixture->memory, &other));
}

static void j6_the_newest_record_is_known_until_the_database_has_another_past(void **state)
{
    struct fixture *fixture = *state;
    const char made[HASH_HEX_BYTES + 1] = "ab", older[HASH_HEX_BYTES + 1] = "cd";
    char hash[HASH_HEX_BYTES + 1];

    assert_int_equal(log_memory_newest(fixture->memory, hash), 0);
    log_memory_put_newest(fixture->memory, 7, made);
    log_memory_put_newest(fixture->memory, 6, older);
    assert_int_equal(log_memory_newest(fixture->memory, hash), 7);
    assert_string_equal(hash, "ab");
    write_runs(fixture, 1, 1, 5);
    log_memory_forget(fixture->memory);
    assert_int_equal(log_memory_newest(fixture->memory, hash), 0);
    assert_true(may_follow(fixture, 1, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(j5_what_was_signed_by_memory_alone_is_still_known, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j5_what_notes_have_named_is_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(
            j5_a_record_comes_before_there_is_no_room_and_what_it_signed_makes_room, setup,
            teardown),
        cmocka_unit_test_setup_teardown(j5_what_waits_for_another_node_is_kept_and_counted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j5_an_execution_is_refused_once, setup, teardown),
        cmocka_unit_test_setup_teardown(
            j6_the_newest_record_is_known_until_the_database_has_another_past, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
