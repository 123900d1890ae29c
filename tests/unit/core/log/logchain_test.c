/* The chain over the lines of an execution: every field and every line before counts (D9, F-J5). */
#include "core/log/logchain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct uuid execution = {{1, 2, 3, 4, 5, 6, 0x70, 8, 0x80, 10, 11, 12, 13, 14, 15, 16}};

static const struct uuid task = {{1, 2, 3, 4, 5, 5, 0x70, 1, 0x80, 2, 3, 5, 7, 11, 13, 17}};

static struct log_line sample(void)
{
    return (struct log_line){.execution_id = execution,
                             .task_id = task,
                             .seq = 1,
                             .level = SEVERITY_WARN,
                             .message = STR("disk nearly full"),
                             .context = STR("{\"disk\":\"sda\"}"),
                             .logged_at_us = INT64_C(1800000000123456)};
}

static struct log_head step(struct log_head head, struct log_line line)
{
    assert_int_equal(logchain_step(&head, &line), 0);
    return head;
}

static void assert_other(struct log_head head, struct log_line changed)
{
    struct log_head usual = step((struct log_head){.seq = 0}, sample());

    head = step(head, changed);
    assert_memory_not_equal(usual.hash, head.hash, HASH_BYTES);
}

static void d9_every_field_changes_the_hash(void **state)
{
    struct log_head none = {.seq = 0}, behind = {.hashed = true, .hash = {1}};
    struct log_line changed = sample();

    (void)state;
    changed.seq = 2;
    assert_other(none, changed);
    changed = sample();
    changed.level = SEVERITY_INFO;
    assert_other(none, changed);
    changed = sample();
    changed.logged_at_us++;
    assert_other(none, changed);
    changed = sample();
    changed.message = STR("disk nearly ful");
    assert_other(none, changed);
    changed = sample();
    changed.context = STR_NONE;
    assert_other(none, changed);
    changed = sample();
    changed.execution_id.bytes[15]++;
    assert_other(none, changed);
    changed = sample();
    changed.task_id.bytes[15]++;
    assert_other(none, changed);
    assert_other(behind, sample());
}

/* F-J5: bytes that move from one field to the next, and an absent context beside an empty one. */
static void j5_no_two_lines_read_alike(void **state)
{
    struct log_head none = {.seq = 0}, a, b;
    struct log_line line = sample(), other = sample();

    (void)state;
    line.message = STR("ab");
    line.context = STR("c");
    other.message = STR("a");
    other.context = STR("bc");
    a = step(none, line);
    b = step(none, other);
    assert_memory_not_equal(a.hash, b.hash, HASH_BYTES);
    line.context = STR("");
    other = line;
    other.context = STR_NONE;
    a = step(none, line);
    b = step(none, other);
    assert_memory_not_equal(a.hash, b.hash, HASH_BYTES);
}

static void put(struct hash_state *state, const void *data, uint64_t len, bool absent)
{
    uint64_t told = absent ? UINT64_MAX : len;
    uint8_t prefix[8];

    for (int i = 0; i < 8; i++)
        prefix[i] = (uint8_t)(told >> (56 - 8 * i));
    hash_sha256_add(state, str_span((const char *)prefix, 8));
    if (len)
        hash_sha256_add(state, str_span(data, (size_t)len));
}

static void put_number(struct hash_state *state, int64_t value)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
    put(state, bytes, 8, false);
}

/* The form as docs/operations.md has it, written down once more. */
static void expect(const void *before, size_t before_len, const struct log_line *line,
                   uint8_t out[HASH_BYTES])
{
    struct hash_state *texts = hash_sha256_begin(), *state = hash_sha256_begin();
    const char *level = severity_word(line->level);
    uint8_t content[HASH_BYTES];

    put(texts, line->message.data, line->message.len, false);
    put(texts, line->context.data, line->context.len, !line->context.data);
    assert_int_equal(hash_sha256_end(texts, content), 0);

    put(state, before, before_len, false);
    put(state, line->execution_id.bytes, 16, false);
    put(state, line->task_id.bytes, 16, false);
    put_number(state, line->seq);
    put(state, level, strlen(level), false);
    put_number(state, line->logged_at_us);
    put(state, content, sizeof content, false);
    assert_int_equal(hash_sha256_end(state, out), 0);
}

static void d9_short_and_long_lines_have_the_documented_hash(void **state)
{
    const size_t lens[] = {0, 1, 100, 2000, 2034, 2035, 2048, 2049, 65536};
    struct log_head head = {.seq = 0};
    char *text = malloc(65536);

    (void)state;
    memset(text, 'x', 65536);
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        struct log_line line = sample();
        struct log_head before = head;
        uint8_t want[HASH_BYTES];

        line.seq = (int64_t)i + 1;
        line.message = str_span(text, lens[i]);
        if (i % 3 == 1)
            line.context = STR_NONE;
        expect(i ? before.hash : execution.bytes, i ? HASH_BYTES : 16, &line, want);
        head = step(head, line);
        assert_memory_equal(head.hash, want, HASH_BYTES);
        assert_int_equal(head.seq, line.seq);
    }
    free(text);
}

static void d9_a_chain_goes_on_from_what_is_stored(void **state)
{
    struct log_head one = step((struct log_head){.seq = 0}, sample()), again = {.seq = 0};
    struct log_line second = sample();
    char hex[HASH_HEX_BYTES + 1];

    (void)state;
    hash_hex(one.hash, HASH_BYTES, hex);
    logchain_resume(&again, &execution, 1, str_of(hex));
    assert_true(again.hashed);
    second.seq = 2;
    one = step(one, second);
    again = step(again, second);
    assert_memory_equal(one.hash, again.hash, HASH_BYTES);
    logchain_resume(&again, &execution, 1, STR_NONE); /* a line from before there were hashes */
    assert_false(again.hashed);
    logchain_resume(&again, &execution, 1, STR("zz"));
    assert_false(again.hashed);
}

/* D9: what a line said may go; number, level, time and place stay proven. */
static void d9_a_line_without_its_text_is_in_the_chain_as_it_was_with_it(void **state)
{
    struct log_head whole = step((struct log_head){.seq = 0}, sample()), emptied = {.seq = 0};
    struct log_line line = sample();
    char hex[HASH_HEX_BYTES + 1];
    uint8_t hash[HASH_BYTES];

    (void)state;
    assert_int_equal(logchain_content(line.message, line.context, hash), 0);
    hash_hex(hash, sizeof hash, hex);
    line.removed = str_of(hex);
    line.message = STR("");
    line.context = STR_NONE;
    emptied = step(emptied, line);
    assert_memory_equal(whole.hash, emptied.hash, HASH_BYTES);
    line.level = SEVERITY_FATAL; /* no other line has this hash, whatever the text was */
    emptied = step((struct log_head){.seq = 0}, line);
    assert_memory_not_equal(whole.hash, emptied.hash, HASH_BYTES);
    line.removed = STR("zz");
    assert_int_equal(logchain_step(&emptied, &line), -(int)ERR_INVALID);
}

/* F-J5: what is shown beside a line is part of it; of older lines it is not. */
static void j5_what_is_shown_beside_a_line_is_in_its_hash(void **state)
{
    struct log_line plain = sample(), line = plain, other;
    struct log_head none = {.seq = 0}, head;

    (void)state;
    line.bound = true;
    assert_int_equal(logchain_about(1, STR("w"), STR_NONE, line.about), 0);
    head = step(none, line);
    assert_memory_not_equal(head.hash, step(none, plain).hash, HASH_BYTES);
    other = line;
    other.id.bytes[3] ^= 1;
    assert_memory_not_equal(head.hash, step(none, other).hash, HASH_BYTES);
    assert_int_equal(logchain_about(1, STR("w"), STR(""), other.about), 0);
    assert_memory_equal(line.about, other.about, HASH_BYTES);
    assert_int_equal(logchain_about(2, STR("w"), STR_NONE, other.about), 0);
    assert_memory_not_equal(line.about, other.about, HASH_BYTES);
    assert_int_equal(logchain_about(1, STR_NONE, STR("w"), other.about), 0);
    assert_memory_not_equal(line.about, other.about, HASH_BYTES);
    other = line;
    other.about[0] ^= 1;
    assert_memory_not_equal(head.hash, step(none, other).hash, HASH_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(j5_what_is_shown_beside_a_line_is_in_its_hash),
        cmocka_unit_test(d9_every_field_changes_the_hash),
        cmocka_unit_test(j5_no_two_lines_read_alike),
        cmocka_unit_test(d9_short_and_long_lines_have_the_documented_hash),
        cmocka_unit_test(d9_a_chain_goes_on_from_what_is_stored),
        cmocka_unit_test(d9_a_line_without_its_text_is_in_the_chain_as_it_was_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
