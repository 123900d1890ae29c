/* What verification finds of records, of the anchor file, and of lines that records name as gone
 * (F-J6 to F-J8, V7). */
#include "logverify_fixture.h"

static void j7_a_store_behind_its_anchor_file_is_a_regression(void **state)
{
    struct model *model = given(state);

    add_lines(model, 3, 2);
    record_heads(model, 3, 3);
    model->file_count = 2;
    assert_int_equal(verify(model), 0);
    model->count -= 2;
    assert_true(verify_some(model, 0, 1) > 0);
    assert_string_equal(model->kind, "regression");
    assert_int_equal(verify_some(model, 0, 0), 2); /* all records gone, and lines that were cut off */
    assert_string_equal(model->kind, "regression");
}

static void j7_a_store_that_was_set_back_and_continued_is_a_regression(void **state)
{
    struct model *model = given(state);
    struct anchor other = {.kind = ANCHOR_CUTS, .serial = 2};

    record_heads(model, 3, 3);
    hash_from_hex(str_of(model->records[0].row.hash), other.previous, HASH_BYTES);
    add_record(model, &other, NULL, 0); /* a second one with the serial 2 */
    assert_int_equal(verify_lists(model, (int[]){0, 1, -1}, (int[]){0, 1, -1}), 0);
    assert_int_equal(verify_lists(model, (int[]){0, 1, -1}, (int[]){0, 2, -1}), 1);
    assert_string_equal(model->kind, "regression");
    assert_string_equal(model->subject, "record 2");
}

static void j7_a_seam_joins_what_came_after_and_hides_nothing(void **state)
{
    struct model *model = given(state);
    struct anchor seam = {.kind = ANCHOR_SEAM, .serial = 3, .through = 2};

    record_heads(model, 3, 3);
    hash_from_hex(str_of(model->records[1].row.hash), seam.through_hash, HASH_BYTES);
    hash_from_hex(str_of(model->records[0].row.hash), seam.previous, HASH_BYTES);
    add_record(model, &seam, NULL, 0);
    record_heads(model, 1, 1);
    assert_int_equal(verify_lists(model, (int[]){-1}, (int[]){0, 2, 3, -1}), 0);
    assert_int_equal(verify_lists(model, (int[]){0, 1, 2, 3, -1}, (int[]){0, 2, 3, -1}), 1);
    assert_string_equal(model->kind, "regression");
    assert_string_equal(model->subject, "record 2");
}

static void j8_what_retention_removed_is_not_missing(void **state)
{
    struct model *model = given(state);
    struct anchor anchor = {.kind = ANCHOR_CUTS, .reason = STR("retention")};
    struct log_part cuts[2] = {{.lines = 5}, {.lines = 2}};

    cuts[0].head = head_of(model, 1);
    logchain_resume(&cuts[1].head, &model->lines[5].line.execution_id, 2,
                    str_of(model->lines[6].hash));
    for (int i = 0; i < 7; i++)
        model->lines[i].line.seq = 0;
    assert_int_equal(verify(model), 2);
    add_record(model, &anchor, cuts, 2);
    assert_int_equal(verify(model), 0);
    model->lines[8].line.message = STR("forged"); /* what is left is still watched */
    assert_found(model, "log", 2, 4);
    model->lines[8].line.message = STR("hello");
    model->lines[6].line.seq = 2; /* and what is gone does not come back */
    assert_found(model, "log", 2, 2);
}

static void j6_records_that_were_changed_removed_or_made_up_are_named(void **state)
{
    struct model *model = given(state);
    uint8_t seed[SIGN_SEED_BYTES] = {8};
    char *digit;

    model->file_count = 0;
    add_lines(model, 3, 1);
    record_heads(model, 3, 3);
    add_lines(model, 3, 1);
    record_heads(model, 3, 3);
    assert_int_equal(verify(model), 0);
    digit = strstr(model->records[1].text.data, "\"lines\":") + 8;
    *digit = '7';
    assert_true(verify(model) > 0);
    assert_string_equal(model->subject, "record 2");
    *digit = '0';
    assert_true(verify_some(model, 1, 3) > 0); /* the first is missing */
    assert_string_equal(model->subject, "record 1");
    sign_key_free(model->key);
    model->key = sign_key_new(seed);
    record_heads(model, 3, 3); /* by another key */
    assert_int_equal(verify(model), 1);
    assert_string_equal(model->subject, "record 4");
    model->options.keys_count = 1;
    seed[0] = 7;
    {
        struct sign_key *right = sign_key_new(seed);

        sign_key_public(right, model->options.keys[0]);
        sign_key_free(right);
    }
    assert_int_equal(verify(model), 1);
    assert_string_equal(model->subject, "record 4");
    model->records_count--;
    assert_int_equal(verify(model), 0);
    sign_key_free(model->key);
    model->key = NULL;
    record_heads(model, 3, 3);
    assert_int_equal(verify(model), 1);
    assert_non_null(strstr(model->detail, "not signed"));
}

static struct sign_key *use_key(struct model *model, uint8_t first)
{
    uint8_t seed[SIGN_SEED_BYTES] = {first};

    sign_key_free(model->key);
    model->key = sign_key_new(seed);
    return model->key;
}

static void j6_a_cut_signed_with_another_key_removes_nothing(void **state)
{
    struct model *model = given(state);
    struct log_part cut = {.head = head_of(model, 2), .lines = 5};
    struct anchor anchor = {.kind = ANCHOR_CUTS, .reason = STR("retention")};

    sign_key_public(model->key, model->options.key);
    model->options.has_key = true;
    use_key(model, 8);
    add_record(model, &anchor, &cut, 1);
    for (int i = 5; i < 10; i++)
        model->lines[i].line.seq = 0;
    assert_int_equal(verify(model), 2); /* the record, and the lines that are missing all the same */
    assert_string_equal(model->subject, "record 2");
    model->file_count = 2; /* also when it came into the anchor file */
    assert_int_equal(verify(model), 3);
    model->options.has_key = false; /* the first key counts then */
    assert_int_equal(verify(model), 3);
    model->options.has_key = true;
    sign_key_public(model->key, model->options.key); /* the store names the forger's */
    assert_true(verify(model) > 0);
}

static void j6_records_that_are_all_gone_are_missed(void **state)
{
    struct model *model = given(state);

    model->file_count = 0;
    for (int i = 1; i <= 3; i++)
        model->pending[model->pending_count++] = head_of(model, i);
    assert_int_equal(verify_some(model, 0, 0), 0);
    model->options.has_key = true; /* the store says so */
    sign_key_public(model->key, model->options.key);
    assert_int_equal(verify_some(model, 0, 0), 1);
    model->options.has_key = false;
    model->options.keys_count = 1; /* who verifies knows */
    sign_key_public(model->key, model->options.keys[0]);
    assert_int_equal(verify_some(model, 0, 0), 1);
    assert_string_equal(model->subject, "store");
}

static void j6_a_record_between_two_others_cannot_be_left_out(void **state)
{
    struct model *model = given(state);

    record_heads(model, 1, 1);
    record_heads(model, 2, 2);
    assert_int_equal(verify_lists(model, (int[]){-1}, (int[]){0, 2, -1}), 1);
    assert_string_equal(model->subject, "record 2");
    assert_int_equal(verify_lists(model, (int[]){0, 2, -1}, (int[]){0, 1, 2, -1}), 1);
    assert_non_null(strstr(model->detail, "anchor file"));
}

static void j7_two_nodes_may_write_one_anchor_file(void **state)
{
    struct model *model = given(state);

    record_heads(model, 1, 1);
    assert_int_equal(verify_lists(model, (int[]){0, 1, 0, 1, -1}, (int[]){0, 1, -1}), 0);
}

static int verify_piece(struct model *model, size_t piece_len, size_t then_from)
{
    struct buf line = BUF_INIT(ANCHOR_LINE_BYTES_MAX);
    struct logverify_counts counts;
    struct logverify *verify;
    struct err err = {0};

    model->findings = 0;
    model->options.tell = on_finding;
    model->options.ctx = model;
    verify = logverify_new(&model->options);
    anchor_line_write(&line, &model->records[0].row);
    logverify_anchor_line(verify, str_span(line.data, piece_len));
    logverify_anchor_line(verify, str_span(line.data + then_from, line.len - 1 - then_from));
    logverify_record(verify, &model->records[0].row);
    for (int i = 0; i < model->count; i++)
        logverify_line(verify, &model->lines[i].line, str_of(model->lines[i].hash));
    assert_int_equal(logverify_end(verify, &counts, &err), 0);
    logverify_free(verify);
    buf_deinit(&line);
    return model->findings;
}

static void j6_a_piece_of_a_record_is_none_when_the_whole_follows(void **state)
{
    struct model *model = given(state);

    assert_int_equal(verify_piece(model, 40, 0), 0);
    assert_int_equal(verify_piece(model, 40, 1), 2); /* two lines that are no records */
    assert_string_equal(model->subject, "line 1");
}

/* The lines that came behind another part. */
static struct log_part log_part_behind(const struct log_part *before, struct log_head head)
{
    struct log_part part = {.head = head, .lines = head.seq - before->head.seq, .follows = true};

    memcpy(part.from, before->head.hash, sizeof part.from);
    return part;
}

/* Also when the lines are gone by a signed cut: by a record that names them, or by the cut alone. */
static void j8_what_followed_a_closed_chain_is_named_when_it_is_gone(void **state)
{
    struct model *model = *state;
    struct log_part part = {.lines = 3, .closed = true}, cut;

    add_lines(model, 1, 3);
    part.head = head_of(model, 1);
    record_part(model, ANCHOR_HEADS, part);
    cut = part;
    cut.closed = false;
    record_part(model, ANCHOR_CUTS, cut);
    model->count = 0;
    assert_int_equal(verify(model), 0);
    model->records_count = 1;
    add_lines(model, 1, 4);
    part = log_part_behind(&part, head_of(model, 1));
    record_part(model, ANCHOR_HEADS, part);
    part.lines = 4;
    record_part(model, ANCHOR_CUTS, part);
    model->count = 0;
    assert_found(model, "log", 1, 4);
    assert_non_null(strstr(model->detail, "behind the end of its execution"));
    model->records_count = 1;
    record_part(model, ANCHOR_CUTS, part);
    assert_found(model, "log", 1, 4);
}

/* Records name every line once. Where a run was set back and continued, two name the same ones, also
 * when its lines are gone by a signed cut. */
static void j8_lines_that_two_records_name_are_found(void **state)
{
    struct model *model = *state;
    struct log_part part = {.lines = 3};

    add_lines(model, 1, 3);
    part.head = head_of(model, 1);
    record_part(model, ANCHOR_HEADS, part);
    add_lines(model, 1, 2);
    part = (struct log_part){.head = head_of(model, 1), .lines = 2};
    record_part(model, ANCHOR_HEADS, part);
    part.lines = 0;
    part.closed = true;
    record_part(model, ANCHOR_HEADS, part); /* its end, ... */
    part.lines = 2;
    part.closed = false;
    record_part(model, ANCHOR_TRIM, part); /* ... and what a trim repeats: all is in order */
    assert_int_equal(verify(model), 0);
    model->records_count -= 2;
    model->count = 3;
    model->lines[2].line.message = STR("other");
    chain_again(model, 1);
    add_lines(model, 1, 4);
    part = (struct log_part){.head = head_of(model, 1), .lines = 4};
    record_part(model, ANCHOR_HEADS, part);
    part.lines = 7;
    record_part(model, ANCHOR_CUTS, part);
    model->count = 0;
    assert_found(model, "log", 1, 7);
    assert_non_null(strstr(model->detail, "two records name the same lines"));
    model->records_count -= 2;
    part = (struct log_part){.head = head_of(model, 1), .lines = 5};
    part.head = (struct log_head){.execution_id = execution(1), .seq = 5, .hashed = true};
    record_part(model, ANCHOR_HEADS, part); /* up to the same line, which is another one */
    part.lines = 7;
    record_part(model, ANCHOR_CUTS, part);
    assert_found(model, "log", 1, 5);
}

/* Where one node signs what it remembers after another removed the lines, the record of that may be
 * trimmed first. It excuses no record that came with a note. */
static void j8_a_record_by_memory_hides_no_other_when_records_were_trimmed(void **state)
{
    struct model *model = *state;
    struct anchor trim = {.kind = ANCHOR_TRIM, .through = 1};
    struct log_part part = {.written = true};

    add_lines(model, 1, 1);
    record_heads(model, 1, 1);
    add_lines(model, 2, 3);
    part.head = head_of(model, 2);
    record_part(model, ANCHOR_HEADS, part);
    hash_from_hex(str_of(model->records[0].row.hash), trim.through_hash, HASH_BYTES);
    part = (struct log_part){.head = head_of(model, 1)};
    add_record(model, &trim, &part, 1);
    model->count = 1;
    assert_int_equal(verify_some(model, 1, 3), 0);
    model->count = 4;
    add_lines(model, 2, 2);
    part = (struct log_part){.head = head_of(model, 2), .lines = 2};
    record_part(model, ANCHOR_HEADS, part);
    assert_int_equal(verify_some(model, 1, 4), 0);
    model->count = 1;
    assert_int_equal(verify_some(model, 1, 4), 1);
    assert_non_null(strstr(model->detail, "lines up to 5 are missing"));
}

static void j6_unreadable_parts_of_a_record_are_named(void **state)
{
    struct model *model = given(state);

    record_part(model, ANCHOR_HEADS, (struct log_part){.head = head_of(model, 1), .lines = -9,
                                                       .closed = true});
    assert_int_equal(verify(model), 1);
    assert_string_equal(model->kind, "anchor");
    model->records_count--;
    record_part(model, ANCHOR_TRIM, (struct log_part){.head = head_of(model, 1), .refused = true});
    assert_found(model, "log", 1, 5);
    assert_non_null(strstr(model->detail, "refused to sign"));
}

static void j8_what_went_before_its_time_is_named(void **state)
{
    struct model *model = given(state);
    struct anchor anchor = {.kind = ANCHOR_CUTS, .reason = STR("retention")};
    struct log_part cut = {.head = head_of(model, 2), .lines = 5, .at_us = 500000,
                           .window_ms = 500}; /* records are made at 1000000 */

    add_record(model, &anchor, &cut, 1);
    for (int i = 5; i < 10; i++)
        model->lines[i].line.seq = 0;
    assert_int_equal(verify(model), 0);
    cut.window_ms++;
    model->records_count--;
    anchor.serial = 0;
    add_record(model, &anchor, &cut, 1);
    assert_int_equal(verify(model), 1);
    assert_string_equal(model->kind, "anchor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(j7_a_store_behind_its_anchor_file_is_a_regression),
        TEST(j7_a_store_that_was_set_back_and_continued_is_a_regression),
        TEST(j7_a_seam_joins_what_came_after_and_hides_nothing),
        TEST(j8_what_retention_removed_is_not_missing),
        TEST(j6_records_that_were_changed_removed_or_made_up_are_named),
        TEST(j6_a_cut_signed_with_another_key_removes_nothing),
        TEST(j6_records_that_are_all_gone_are_missed),
        TEST(j6_a_record_between_two_others_cannot_be_left_out),
        TEST(j7_two_nodes_may_write_one_anchor_file),
        TEST(j6_a_piece_of_a_record_is_none_when_the_whole_follows),
        TEST(j8_what_followed_a_closed_chain_is_named_when_it_is_gone),
        TEST(j8_lines_that_two_records_name_are_found),
        TEST(j8_a_record_by_memory_hides_no_other_when_records_were_trimmed),
        TEST(j6_unreadable_parts_of_a_record_are_named),
        TEST(j8_what_went_before_its_time_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
