/* Signed records about logs and the key that signs them (D9, F-J6, F-J8). */
#include "core/log/loganchor.h"
#include "remove_folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static const uint8_t seed[SIGN_SEED_BYTES] = {1, 2, 3};

static struct log_part part(int i)
{
    struct log_part item = {.head = {.seq = i + 1, .hashed = i % 2 == 0}, .lines = i + 1};

    item.head.execution_id.bytes[0] = (uint8_t)i;
    item.head.hash[31] = (uint8_t)i;
    return item;
}

static void make(struct anchor *anchor, struct buf *text, struct anchor_row *row, bool is_signed)
{
    struct sign_key *key = is_signed ? sign_key_new(seed) : NULL;
    const struct log_part items[3] = {part(0), part(1), part(2)};

    assert_int_equal(anchor_make(anchor, items, 3, key, text, row), 0);
    sign_key_free(key);
}

static void d9_a_record_says_what_was_put_into_it(void **state)
{
    struct anchor anchor = {.kind = ANCHOR_CUTS, .serial = 7, .lines = 99, .reason = STR("purge"),
                            .at_us = INT64_C(1800000000123456), .previous = {9}};
    struct buf text = BUF_INIT(ANCHOR_BYTES_MAX);
    struct anchor_row row;
    struct anchor read;
    struct json_iter iter;
    struct log_part item;

    (void)state;
    make(&anchor, &text, &row, true);
    assert_true(anchor_parse(row.record, &read));
    assert_int_equal(read.serial, 7);
    assert_int_equal(read.lines, 99);
    assert_int_equal(read.kind, ANCHOR_CUTS);
    assert_int_equal(read.at_us, anchor.at_us);
    assert_true(str_is(read.reason, "purge"));
    assert_memory_equal(read.previous, anchor.previous, HASH_BYTES);
    assert_memory_equal(read.hash, anchor.hash, HASH_BYTES);
    json_begin(read.items, &iter);
    for (int i = 0; i < 3; i++) {
        const struct log_part want = part(i);

        assert_true(anchor_next_item(&iter, &item));
        assert_true(uuid_eq(&item.head.execution_id, &want.head.execution_id));
        assert_int_equal(item.head.seq, want.head.seq);
        assert_int_equal(item.lines, want.lines);
        assert_int_equal(item.head.hashed, want.head.hashed);
    }
    assert_false(anchor_next_item(&iter, &item));
    buf_deinit(&text);
}

/* Closed chains, times and windows of what went, and since when all lines need proof. */
static void d9_what_items_and_records_say_beside_that_is_read_back(void **state)
{
    struct anchor anchor = {.kind = ANCHOR_CUTS, .serial = 1, .has_since = true, .since_us = 77};
    const struct log_part items[5] = {
        {.head = {.seq = 1}, .closed = true},
        {.head = {.seq = 2}, .lines = 2, .at_us = 5000, .window_ms = 9},
        {.head = {.seq = 3}, .emptied = true, .level = SEVERITY_WARN, .at_us = 1, .window_ms = 2},
        {.head = {.seq = 4}, .lines = 4},
        {.head = {.seq = 5}, .refused = true}};
    struct buf text = BUF_INIT(ANCHOR_BYTES_MAX);
    struct anchor_row row;
    struct anchor read;
    struct json_iter iter;
    struct log_part item;

    (void)state;
    assert_int_equal(anchor_make(&anchor, items, 5, NULL, &text, &row), 0);
    assert_true(anchor_parse(row.record, &read));
    assert_true(read.has_since);
    assert_int_equal(read.since_us, 77);
    json_begin(read.items, &iter);
    for (int i = 0; i < 5; i++) {
        assert_true(anchor_next_item(&iter, &item));
        assert_int_equal(item.refused, items[i].refused);
        assert_int_equal(item.head.seq, items[i].head.seq);
        assert_int_equal(item.lines, items[i].lines);
        assert_int_equal(item.closed, items[i].closed);
        assert_int_equal(item.emptied, items[i].emptied);
        assert_int_equal(item.level, items[i].level);
        assert_int_equal(item.at_us, items[i].at_us);
        assert_int_equal(item.window_ms, items[i].window_ms);
    }
    buf_deinit(&text);
}

/* An item that says nothing is reported, and those behind it are read. */
static void j6_an_item_that_cannot_be_read_hides_no_other(void **state)
{
    struct anchor anchor = {.kind = ANCHOR_HEADS, .serial = 1};
    const struct log_part items[3] = {{.head = {.seq = 5}, .lines = -95, .closed = true},
                                      {.head = {.seq = -1}},
                                      {.head = {.seq = 3}, .lines = 3}};
    struct buf text = BUF_INIT(ANCHOR_BYTES_MAX);
    struct anchor_row row;
    struct anchor read;
    struct json_iter iter;
    struct log_part item;

    (void)state;
    assert_int_equal(anchor_make(&anchor, items, 3, NULL, &text, &row), 0);
    assert_true(anchor_parse(row.record, &read));
    json_begin(read.items, &iter);
    for (int i = 0; i < 2; i++) {
        assert_true(anchor_next_item(&iter, &item));
        assert_true(item.unread);
    }
    assert_true(anchor_next_item(&iter, &item));
    assert_false(item.unread);
    assert_int_equal(item.lines, 3);
    assert_false(anchor_next_item(&iter, &item));
    buf_deinit(&text);
}

static void j6_every_changed_byte_spoils_the_signature(void **state)
{
    struct anchor anchor = {.kind = ANCHOR_HEADS, .serial = 1};
    struct buf text = BUF_INIT(ANCHOR_BYTES_MAX);
    struct anchor_row row;
    struct anchor read;

    (void)state;
    make(&anchor, &text, &row, true);
    assert_true(anchor_parse(row.record, &read));
    assert_true(anchor_signature_good(&read, row.record, str_of(row.signature)));
    for (size_t i = 0; i < row.record.len; i++) {
        text.data[i] ^= 1;
        if (anchor_parse(row.record, &read))
            assert_false(anchor_signature_good(&read, row.record, str_of(row.signature)));
        text.data[i] ^= 1;
    }
    row.signature[5] = row.signature[5] == '0' ? '1' : '0';
    assert_true(anchor_parse(row.record, &read));
    assert_false(anchor_signature_good(&read, row.record, str_of(row.signature)));
    buf_deinit(&text);
}

static void d9_an_unsigned_record_is_never_taken_for_a_signed_one(void **state)
{
    struct anchor anchor = {.kind = ANCHOR_HEADS, .serial = 1};
    struct buf text = BUF_INIT(ANCHOR_BYTES_MAX);
    struct anchor_row row;
    struct anchor read;

    (void)state;
    make(&anchor, &text, &row, false);
    assert_string_equal(row.signature, "");
    assert_true(anchor_parse(row.record, &read));
    assert_false(read.is_signed);
    assert_false(anchor_signature_good(&read, row.record, STR("")));
    buf_deinit(&text);
}

static void d9_a_line_of_the_anchor_file_comes_back_byte_for_byte(void **state)
{
    struct anchor anchor = {.kind = ANCHOR_SEAM, .serial = 12, .through = 11, .through_hash = {5}};
    struct buf text = BUF_INIT(ANCHOR_BYTES_MAX), line = BUF_INIT(ANCHOR_LINE_BYTES_MAX);
    struct str record, signature;
    struct anchor_row row;
    struct anchor read;

    (void)state;
    make(&anchor, &text, &row, true);
    anchor_line_write(&line, &row);
    assert_int_equal(line.data[line.len - 1], '\n');
    assert_true(anchor_line_parse(buf_view(&line), &record, &signature));
    assert_true(str_eq(record, row.record));
    assert_true(str_is(signature, row.signature));
    assert_true(anchor_parse(record, &read));
    assert_int_equal(read.through, 11);
    assert_memory_equal(read.through_hash, anchor.through_hash, HASH_BYTES);
    for (size_t cut = 0; cut + 1 < line.len; cut++)
        assert_false(anchor_line_parse(str_span(line.data, cut), &record, &signature));
    buf_deinit(&line);
    buf_deinit(&text);
}

static void d9_what_is_no_record_is_refused(void **state)
{
    static const char *const texts[] = {
        "", "{}", "[]", "{\"serial\":1}", "{\"serial\":0,\"kind\":\"heads\",\"items\":[]}",
        "{\"serial\":1,\"kind\":\"others\",\"lines\":0,\"items\":[]}",
        ("{\"serial\":1,\"previous\":\"00\",\"at\":\"2026-01-01T00:00:00Z\",\"kind\":\"heads\","
         "\"lines\":0,\"items\":[]}")};
    struct anchor anchor;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(anchor_parse(str_of(texts[i]), &anchor));
}

static void d9_a_key_is_made_once_and_only_its_owner_may_read_it(void **state)
{
    char folder[] = "/tmp/perdura-key-XXXXXX";
    char path[64];
    struct sign_key *key, *again;
    uint8_t a[SIGN_PUBLIC_BYTES], b[SIGN_PUBLIC_BYTES];
    struct stat info;
    struct err err = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/k", folder);
    assert_int_equal(sign_key_load(path, false, &key, &err), 0);
    assert_null(key);
    assert_int_equal(sign_key_make(path, &key, &err), 0);
    assert_int_equal(sign_key_make(path, &again, &err), -(int)ERR_CONFLICT);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(sign_key_load(path, false, &again, &err), 0);
    sign_key_public(key, a);
    sign_key_public(again, b);
    assert_memory_equal(a, b, sizeof a);
    sign_key_free(key);
    sign_key_free(again);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(sign_key_load(path, false, &key, &err), 0); /* and other users may not any
                                                                  * more */
    sign_key_free(key);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(truncate(path, 20), 0);
    assert_int_equal(sign_key_load(path, false, &key, &err), -(int)ERR_INVALID);
    remove_folder(folder);
}

/* The first test vector of RFC 8032. */
static void d9_signatures_are_those_of_everybody_elses_ed25519(void **state)
{
    uint8_t secret[32], signature[SIGN_BYTES], public_key[32];
    char hex[2 * SIGN_BYTES + 1];
    struct sign_key *key;

    (void)state;
    assert_true(hash_from_hex(STR("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"),
                              secret, 32));
    key = sign_key_new(secret);
    sign_key_public(key, public_key);
    hash_hex(public_key, 32, hex);
    assert_string_equal(hex, "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    sign_make(key, STR(""), signature);
    hash_hex(signature, SIGN_BYTES, hex);
    assert_string_equal(hex, "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb88215"
                             "90a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b");
    assert_true(sign_check(public_key, STR(""), signature));
    assert_false(sign_check(public_key, STR("x"), signature));
    sign_key_free(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d9_a_record_says_what_was_put_into_it),
        cmocka_unit_test(d9_what_items_and_records_say_beside_that_is_read_back),
        cmocka_unit_test(j6_an_item_that_cannot_be_read_hides_no_other),
        cmocka_unit_test(j6_every_changed_byte_spoils_the_signature),
        cmocka_unit_test(d9_an_unsigned_record_is_never_taken_for_a_signed_one),
        cmocka_unit_test(d9_a_line_of_the_anchor_file_comes_back_byte_for_byte),
        cmocka_unit_test(d9_what_is_no_record_is_refused),
        cmocka_unit_test(d9_a_key_is_made_once_and_only_its_owner_may_read_it),
        cmocka_unit_test(d9_signatures_are_those_of_everybody_elses_ed25519),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
