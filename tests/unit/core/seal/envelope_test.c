/* The stored form of encrypted texts: it opens where it was written and nowhere else (F-J3). */
#include "core/seal/envelope.h"

#include "base/hash.h"
#include "core/seal/seal_members.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static const uint8_t KEY[SEAL_KEY_BYTES] = {1, 2, 3};
static const uint8_t OTHER_KEY[SEAL_KEY_BYTES] = {1, 2, 4};
static const struct uuid ID = {{0xab, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 15}};

static struct seal_place place_of(const char *table, const char *row, const char *column)
{
    return (struct seal_place){.namespace_name = STR("default"),
                               .table = table,
                               .row = str_of(row),
                               .column = column};
}

static struct str sealed(struct arena *arena, const struct seal_place *place, const char *clear,
                         bool quoted)
{
    uint8_t nonce[SEAL_NONCE_BYTES];
    struct seal_cipher cipher = {0};
    struct str out;

    hash_random(nonce, sizeof nonce);
    assert_int_equal(envelope_seal(&cipher, KEY, &ID, nonce, place, str_of(clear), quoted, arena,
                                   &out), 0);
    seal_cipher_deinit(&cipher);
    return out;
}

static int opened(struct arena *arena, const uint8_t *key, const struct seal_place *place,
                  struct str text, struct str *clear)
{
    struct seal_cipher cipher = {0};
    struct envelope envelope;
    int rc;

    if (!envelope_parse(text, &envelope))
        return -1;
    rc = envelope_open(&cipher, key, &envelope, place, arena, clear);
    seal_cipher_deinit(&cipher);
    return rc;
}

static void a_text_comes_back_as_it_was(void **state)
{
    static const char *const texts[] = {"", "x", "{\"a\":[1,2,3]}", "pdx1|again", "\xc3\xa9\xf0\x9f\x98\x80"};
    struct seal_place place = place_of("tasks", "1", "payload");
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct envelope envelope;
    struct str clear;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int quoted = 0; quoted < 2; quoted++) {
            struct str text = sealed(&arena, &place, texts[i], quoted);

            assert_true(envelope_like(text));
            assert_true(envelope_parse(text, &envelope));
            assert_memory_equal(envelope.key_id.bytes, ID.bytes, 16);
            assert_int_equal(opened(&arena, KEY, &place, text, &clear), 0);
            assert_true(str_is(clear, texts[i]));
        }
}

static void what_a_file_keeps_is_shorter_and_reads_as_the_same_text(void **state)
{
    struct seal_place place = place_of("tasks", "1", "payload");
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    uint8_t packed[2048];
    size_t len;

    (void)state;
    for (size_t clear_len = 0; clear_len < 1100; clear_len += 7) {
        char clear[1100];

        memset(clear, 'x', clear_len);
        clear[clear_len] = '\0';
        for (int quoted = 0; quoted < 2; quoted++) {
            struct str text = sealed(&arena, &place, clear, quoted);

            assert_true(envelope_pack(text, packed, &len));
            assert_int_equal(len, 5 + 1 + 16 + SEAL_NONCE_BYTES + clear_len + SEAL_TAG_BYTES);
            assert_true(envelope_is_packed(str_span((const char *)packed, len)));
            assert_false(envelope_is_packed(text));
            assert_int_equal(envelope_unpacked_len(str_span((const char *)packed, len)), text.len);
            assert_true(str_eq(envelope_keep(str_span((const char *)packed, len), &arena), text));
            assert_true(str_eq(envelope_keep(text, &arena), text));
        }
    }
}

/* A text that would come back in another way stays as it is: its sum and its hash are of the text. */
static void only_what_was_sealed_is_packed(void **state)
{
    struct seal_place place = place_of("tasks", "1", "payload");
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str text = sealed(&arena, &place, "a text", true);
    uint8_t packed[2048], bytes[128];
    size_t len;

    (void)state;
    for (size_t at = 0; at < text.len; at++)
        for (int bit = 0; bit < 8; bit++) {
            char *changed = (char *)(uintptr_t)arena_str(&arena, text).data;
            struct str other = str_span(changed, text.len);

            changed[at] = (char)(changed[at] ^ 1 << bit);
            if (envelope_pack(other, packed, &len))
                assert_true(str_eq(envelope_keep(str_span((const char *)packed, len), &arena),
                                   other));
        }
    for (size_t cut = 0; cut < text.len; cut++)
        if (envelope_pack(str_span(text.data, cut), packed, &len))
            fail();
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "pdx1|\2", 6);
    for (size_t size = 0; size < 5 + 1 + 16 + SEAL_NONCE_BYTES + SEAL_TAG_BYTES; size++)
        assert_false(envelope_is_packed(str_span((const char *)bytes, size)));
}

static void two_seals_of_one_text_differ(void **state)
{
    struct seal_place place = place_of("tasks", "1", "payload");
    ARENA_AUTO struct arena arena = ARENA_INIT(0);

    (void)state;
    assert_false(str_eq(sealed(&arena, &place, "x", false), sealed(&arena, &place, "x", false)));
}

static void a_text_with_any_byte_changed_does_not_open(void **state)
{
    struct seal_place place = place_of("tasks", "1", "payload");
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str clear;

    (void)state;
    for (int quoted = 0; quoted < 2; quoted++) {
        struct str text = sealed(&arena, &place, "{\"card\":\"4711\"}", quoted);
        char *copy = arena_cstr(&arena, text);

        for (size_t i = 0; i < text.len; i++)
            for (int bit = 0; bit < 8; bit++) {
                copy[i] = (char)(text.data[i] ^ 1 << bit);
                assert_int_not_equal(
                    opened(&arena, KEY, &place, str_span(copy, text.len), &clear), 0);
                copy[i] = text.data[i];
            }
        for (size_t len = 0; len < text.len; len++)
            assert_int_not_equal(opened(&arena, KEY, &place, str_span(text.data, len), &clear), 0);
    }
}

static void a_text_opens_only_where_it_was_written(void **state)
{
    struct seal_place places[] = {
        place_of("tasks", "1", "payload"),    place_of("tasks", "2", "payload"),
        place_of("tasks", "1", "data"),       place_of("task_results", "1", "payload"),
        place_of("tasks", "12", "ayload"),    place_of("tasks1", "", "payload"),
        place_of("tasks", "1", "payload"),    place_of("tasks", "1", "payload"),
        place_of("tasks", "1", "payload"),
    };
    size_t count = sizeof places / sizeof places[0];
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str clear;

    (void)state;
    places[6].namespace_name = STR("other");
    places[7].pointer = STR("/a");
    places[8].pointer = STR("");
    for (size_t from = 0; from < count; from++) {
        struct str text = sealed(&arena, &places[from], "secret", false);

        for (size_t to = 0; to < count; to++)
            assert_int_equal(opened(&arena, KEY, &places[to], text, &clear) == 0, from == to);
        assert_int_not_equal(opened(&arena, OTHER_KEY, &places[from], text, &clear), 0);
    }
}

static void a_data_key_is_unwrapped_only_as_what_it_was_wrapped(void **state)
{
    const struct wrap_place good = {ID, STR("default"), STR("2026-01-01"), STR(""), STR("k1")};
    struct wrap_place others[5] = {good, good, good, good, good};
    char text[WRAPPED_CHARS + 1];
    uint8_t key[SEAL_KEY_BYTES];

    (void)state;
    others[0].id.bytes[3] ^= 1;
    others[1].namespace_name = STR("other");
    others[2].day = STR("2026-01-02");
    others[3].user_id = STR("ada");
    others[4].kek_id = STR("k2");
    data_key_wrap(KEY, &good, OTHER_KEY, text);
    assert_true(data_key_unwrap(KEY, &good, str_of(text), key));
    assert_memory_equal(key, OTHER_KEY, sizeof key);
    assert_false(data_key_unwrap(OTHER_KEY, &good, str_of(text), key));
    for (size_t i = 0; i < 5; i++)
        assert_false(data_key_unwrap(KEY, &others[i], str_of(text), key));
    for (size_t i = 0; i < WRAPPED_CHARS; i++) {
        text[i] ^= 1;
        assert_false(data_key_unwrap(KEY, &good, str_of(text), key));
        text[i] ^= 1;
    }
}

/* ---- members ---- */

static int star(void *ctx, struct str pointer, struct str value, struct arena *arena,
                struct str *out)
{
    (void)pointer;
    (void)value;
    (void)arena;
    ++*(int *)ctx;
    *out = STR("\"*\"");
    return 0;
}

static void only_the_members_named_are_replaced(void **state)
{
    static const struct {
        const char *json, *pointers, *whole;
        int replaced;
    } cases[] = {
        {"{\"a\": 1, \"b\":{\"c\":[1, 2]}}", "[\"/b/c/1\",\"/a\"]",
         "{\"a\": \"*\", \"b\":{\"c\":[1, \"*\"]}}", 2},
        {"{\"a\":{\"b\":1}}", "[\"/a/b\",\"/a\"]", "{\"a\":\"*\"}", 1},
        {"{\"a\":1}", "[\"/b\",\"/a/b\"]", "{\"a\":1}", 0},
        {"{\"a/b\":1,\"\":2}", "[\"/a~1b\",\"/\"]", "{\"a/b\":\"*\",\"\":\"*\"}", 2},
        {"\"text\"", "[\"/a\"]", "\"text\"", 0},
        {"{\"a\":1}", "[\"/a\",\"/a\"]", "{\"a\":\"*\"}", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct str out;
        int replaced = 0;

        assert_int_equal(seal_members(str_of(cases[i].json), str_of(cases[i].pointers), star,
                                      &replaced, &arena, &out),
                         0);
        assert_true(str_is(out, cases[i].whole));
        assert_int_equal(replaced, cases[i].replaced);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_comes_back_as_it_was),
        cmocka_unit_test(what_a_file_keeps_is_shorter_and_reads_as_the_same_text),
        cmocka_unit_test(only_what_was_sealed_is_packed),
        cmocka_unit_test(two_seals_of_one_text_differ),
        cmocka_unit_test(a_text_with_any_byte_changed_does_not_open),
        cmocka_unit_test(a_text_opens_only_where_it_was_written),
        cmocka_unit_test(a_data_key_is_unwrapped_only_as_what_it_was_wrapped),
        cmocka_unit_test(only_the_members_named_are_replaced)};

    seal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
