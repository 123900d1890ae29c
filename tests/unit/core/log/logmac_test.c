/* The code of notes about chains (D9, F-J5): the same for ever, and another one for every other key
 * and every field that differs; which newest lines are believed by it. */
#include "core/log/logmac.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static struct log_mac *mac_of(uint8_t byte)
{
    uint8_t seed[SIGN_SEED_BYTES];
    struct sign_key *key;
    struct log_mac *mac;

    memset(seed, byte, sizeof seed);
    key = sign_key_new(seed);
    assert_non_null(key);
    mac = logmac_new(key);
    assert_non_null(mac);
    sign_key_free(key);
    return mac;
}

static struct log_note note_of(void)
{
    struct log_note note = {.part = {.head = {.execution_id = {{1, 0x9a}}, .seq = 3,
                                              .hashed = true, .hash = {7}},
                                     .lines = 2},
                            .task_id = {{9}},
                            .task_type = STR("mail"),
                            .logged_at_us = 1000,
                            .closed = STR("")};

    return note;
}

/* Stores are full of these. */
static void d9_the_code_of_a_note_never_changes(void **state)
{
    struct log_mac *mac = mac_of(1);
    struct log_note note = note_of();

    (void)state;
    assert_int_equal(logmac_make(mac, &note, note.mac), 0);
    assert_string_equal(note.mac, "e7077c6956a9afffa1ea85aba1f291bc9e5bc215"
                                  "d52b14f837f5d9c7e1ad287a");
    assert_true(logmac_good(mac, &note));
    logmac_free(mac);
}

static void j5_every_field_and_the_key_count(void **state)
{
    struct log_mac *mac = mac_of(1), *other = mac_of(2);
    struct log_note changed[9], note = note_of();

    (void)state;
    assert_int_equal(logmac_make(mac, &note, note.mac), 0);
    for (int i = 0; i < 9; i++)
        changed[i] = note;
    changed[0].part.head.execution_id.bytes[15] = 1;
    changed[1].part.head.seq = 4;
    changed[2].part.head.hash[31] = 1;
    changed[3].part.lines = 0;
    changed[4].task_id.bytes[0] = 8;
    changed[5].task_type = STR("mai");
    changed[6].logged_at_us = 999;
    changed[7].closed = STR("completed");
    changed[8].part.head.hashed = false;
    for (int i = 0; i < 9; i++)
        assert_false(logmac_good(mac, &changed[i]));
    assert_false(logmac_good(other, &note));
    note.mac[0] = '\0';
    assert_false(logmac_good(mac, &note));
    logmac_free(mac);
    logmac_free(other);
}

static void j5_only_a_line_that_a_note_names_is_believed(void **state)
{
    struct log_mac *mac = mac_of(1);
    struct log_last last = {.execution_id = {{1, 0x9a}}, .seq = 3, .logged_at_us = 1000,
                            .noted = true, .note = note_of()};
    char hex[HASH_HEX_BYTES + 1];

    (void)state;
    assert_int_equal(logmac_make(mac, &last.note, last.note.mac), 0);
    hash_hex(last.note.part.head.hash, HASH_BYTES, hex);
    last.chain_hash = str_of(hex);
    assert_true(logmac_trusts(mac, &last));
    last.logged_at_us = 1;
    assert_false(logmac_trusts(mac, &last));
    last.logged_at_us = 1000;
    last.seq = 4;
    assert_false(logmac_trusts(mac, &last));
    last.seq = 3;
    last.noted = false;
    assert_false(logmac_trusts(mac, &last));
    assert_false(logmac_adopted(&last.execution_id, 1000, 999)); /* younger than the key */
    assert_false(logmac_adopted(&last.execution_id, 1000, 1000)); /* and so is its execution */
    assert_true(logmac_adopted(&(struct uuid){{0}}, 1000, 1000));
    logmac_free(mac);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d9_the_code_of_a_note_never_changes),
        cmocka_unit_test(j5_every_field_and_the_key_count),
        cmocka_unit_test(j5_only_a_line_that_a_note_names_is_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
