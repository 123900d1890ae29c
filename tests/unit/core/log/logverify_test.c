/* What verification finds, on a store that is two arrays: every kind of change to lines and records
 * (D9, F-J5 to F-J8, V7). */
#include "core/log/logverify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define LINES_MAX 64
#define RECORDS_MAX 16

struct stored_line {
    struct log_line line;
    char hash[HASH_HEX_BYTES + 1]; /* "" = none */
};

struct stored_record {
    struct anchor_row row;
    struct buf text;
};

struct model {
    struct stored_line lines[LINES_MAX];
    int count;
    struct stored_record records[RECORDS_MAX];
    int records_count;
    int file_count; /* so many of the records are in the anchor file, 0 = there is none */
    struct log_head pending[8];
    int pending_count;
    struct sign_key *key;
    struct logverify_options options;
    int findings;
    char kind[32], subject[128], detail[512]; /* of the first */
};

static int setup(void **state)
{
    struct model *model = calloc(1, sizeof *model);
    uint8_t seed[SIGN_SEED_BYTES] = {7};

    model->key = sign_key_new(seed);
    *state = model;
    return 0;
}

static int teardown(void **state)
{
    struct model *model = *state;

    for (int i = 0; i < RECORDS_MAX; i++)
        buf_deinit(&model->records[i].text);
    sign_key_free(model->key);
    free(model);
    return 0;
}

static struct uuid execution(int number)
{
    struct uuid id = {{0x01, 0x9a, 0, 0, 0, (uint8_t)number, 0x70}}; /* of 2025 */

    return id;
}

static struct log_head head_of(const struct model *model, int number)
{
    struct log_head head = {.execution_id = execution(number)};

    for (int i = 0; i < model->count; i++)
        if (uuid_eq(&model->lines[i].line.execution_id, &head.execution_id))
            logchain_resume(&head, &head.execution_id, model->lines[i].line.seq,
                            str_of(model->lines[i].hash));
    return head;
}

static void add_lines(struct model *model, int number, int count)
{
    struct log_head head = head_of(model, number);

    for (int i = 0; i < count; i++) {
        struct stored_line *stored = &model->lines[model->count++];

        stored->line = (struct log_line){.execution_id = head.execution_id,
                                         .seq = head.seq + 1,
                                         .level = SEVERITY_INFO,
                                         .message = STR("hello"),
                                         .logged_at_us = 5 + head.seq};
        logchain_step(&head, &stored->line);
        hash_hex(head.hash, HASH_BYTES, stored->hash);
    }
}

static struct anchor *add_record(struct model *model, struct anchor *anchor,
                                 const struct log_part *items, uint32_t count)
{
    struct stored_record *stored = &model->records[model->records_count];

    if (model->records_count > 0 && !anchor->serial) {
        const struct anchor_row *last = &model->records[model->records_count - 1].row;

        anchor->serial = last->serial + 1;
        hash_from_hex(str_of(last->hash), anchor->previous, HASH_BYTES);
    }
    if (!anchor->serial)
        anchor->serial = 1;
    anchor->at_us = 1000000;
    buf_deinit(&stored->text);
    stored->text = BUF_INIT(ANCHOR_BYTES_MAX);
    assert_int_equal(anchor_make(anchor, items, count, model->key, &stored->text, &stored->row),
                     0);
    model->records_count++;
    return anchor;
}

static void record_heads(struct model *model, int first, int last)
{
    struct anchor anchor = {.kind = ANCHOR_HEADS};
    struct log_part items[8] = {{.lines = 0}};
    uint32_t count = 0;

    for (int i = first; i <= last; i++)
        items[count++].head = head_of(model, i);
    add_record(model, &anchor, items, count);
}

static void on_finding(void *ctx, const struct logverify_finding *finding)
{
    struct model *model = ctx;

    if (model->findings++ > 0)
        return;
    snprintf(model->kind, sizeof model->kind, "%s", finding->kind);
    snprintf(model->subject, sizeof model->subject, STR_FMT, STR_ARG(finding->subject));
    snprintf(model->detail, sizeof model->detail, STR_FMT, STR_ARG(finding->detail));
}

static void feed_file(struct model *model, struct logverify *verify, int at)
{
    struct buf line = BUF_INIT(ANCHOR_LINE_BYTES_MAX);

    anchor_line_write(&line, &model->records[at].row);
    logverify_anchor_line(verify, str_span(line.data, line.len - 1));
    buf_deinit(&line);
}

/* With these records in the file and in the store; both lists end with -1. */
static int verify_lists(struct model *model, const int *file, const int *store)
{
    struct logverify_counts counts;
    struct logverify *verify;
    struct err err = {0};

    model->findings = 0;
    model->options.tell = on_finding;
    model->options.ctx = model;
    verify = logverify_new(&model->options);
    while (*file >= 0)
        feed_file(model, verify, *file++);
    while (*store >= 0)
        logverify_record(verify, &model->records[*store++].row);
    for (int i = 0; i < model->pending_count; i++)
        logverify_note(verify, &(struct log_note){.part = {model->pending[i], .lines = 1}});
    for (int i = 0; i < model->count; i++) {
        const struct stored_line *stored = &model->lines[i];

        if (stored->line.seq > 0)
            logverify_line(verify, &stored->line, stored->hash[0] ? str_of(stored->hash)
                                                                  : STR_NONE);
    }
    assert_int_equal(logverify_end(verify, &counts, &err), 0);
    logverify_free(verify);
    return model->findings;
}

/* from, to: the records the store has. */
static int verify_some(struct model *model, int from, int to)
{
    int file[RECORDS_MAX + 1], store[RECORDS_MAX + 1];
    int count = 0;

    for (int i = 0; i < model->file_count; i++)
        file[i] = i;
    file[model->file_count] = -1;
    for (int i = from; i < to; i++)
        store[count++] = i;
    store[count] = -1;
    return verify_lists(model, file, store);
}

static int verify(struct model *model)
{
    return verify_some(model, 0, model->records_count);
}

static void assert_found(struct model *model, const char *kind, int number, int seq)
{
    char id[UUID_TEXT_BYTES], subject[128];
    struct uuid of = execution(number);

    assert_true(verify(model) > 0);
    uuid_format(&of, id);
    snprintf(subject, sizeof subject, "execution %s line %d", id, seq);
    assert_string_equal(model->kind, kind);
    assert_string_equal(model->subject, subject);
}

/* Three executions with five lines each, in one record that is in the file too. */
static struct model *given(void **state)
{
    struct model *model = *state;

    for (int i = 1; i <= 3; i++)
        add_lines(model, i, 5);
    record_heads(model, 1, 3);
    model->file_count = 1;
    assert_int_equal(verify(model), 0);
    return model;
}

static void chain_anew(struct model *model, int number)
{
    struct log_head head = {.execution_id = execution(number)};

    for (int i = 0; i < model->count; i++) {
        struct stored_line *stored = &model->lines[i];

        if (!uuid_eq(&stored->line.execution_id, &head.execution_id) || stored->line.seq == 0)
            continue;
        stored->line.seq = head.seq + 1;
        logchain_step(&head, &stored->line);
        hash_hex(head.hash, HASH_BYTES, stored->hash);
    }
}

static void j5_a_changed_line_is_named(void **state)
{
    struct model *model = given(state);

    model->lines[7].line.message = STR("hellO");
    assert_found(model, "log", 2, 3);
    model->lines[7].line.message = STR("hello");
    model->lines[7].hash[3] ^= 1;
    assert_found(model, "log", 2, 3);
}

static void j5_a_deleted_line_is_named(void **state)
{
    struct model *model = given(state);

    model->lines[5].line.seq = 0; /* the first of its execution */
    assert_found(model, "log", 2, 1);
    model->lines[5].line.seq = 1;
    model->lines[8].line.seq = 0;
    assert_found(model, "log", 2, 4);
}

static void j5_lines_of_two_executions_that_are_swapped_are_named(void **state)
{
    struct model *model = given(state);
    struct stored_line swap = model->lines[2];

    model->lines[2].line.message = STR("other");
    memcpy(model->lines[2].hash, model->lines[12].hash, sizeof swap.hash);
    memcpy(model->lines[12].hash, swap.hash, sizeof swap.hash);
    assert_found(model, "log", 1, 3);
    assert_int_equal(model->findings, 2);
}

/* F-J5: an attacker who makes the hashes again does not have the key. */
static void j5_a_chain_made_again_is_not_the_signed_one(void **state)
{
    struct model *model = given(state);

    model->lines[7].line.message = STR("forged");
    chain_anew(model, 2);
    assert_found(model, "log", 2, 5);
    model->lines[7].line.seq = 0;
    chain_anew(model, 2);
    assert_found(model, "log", 2, 5); /* where it ended */
}

static void j5_an_added_line_is_named(void **state)
{
    struct model *model = given(state);

    add_lines(model, 3, 1); /* no note of it */
    assert_found(model, "log", 3, 6);
    model->pending[model->pending_count++] = head_of(model, 3);
    assert_int_equal(verify(model), 0);
    record_heads(model, 3, 3);
    model->pending_count = 0;
    assert_int_equal(verify(model), 0);
}

static void j5_lines_of_an_execution_nobody_knows_are_named(void **state)
{
    struct model *model = given(state);

    add_lines(model, 4, 2);
    assert_found(model, "log", 4, 1);
}

static void j6_a_missing_end_is_named(void **state)
{
    struct model *model = given(state);

    model->lines[9].line.seq = model->lines[8].line.seq = 0;
    assert_found(model, "log", 2, 4);
    assert_non_null(strstr(model->detail, "up to 5"));
    model->lines[9].line.seq = 5;
    model->lines[8].line.seq = 4;
    model->count = 13; /* of the last one */
    assert_found(model, "log", 3, 4);
}

static void j6_a_missing_execution_is_named(void **state)
{
    struct model *model = given(state);

    for (int i = 0; i < 5; i++)
        model->lines[i].line.seq = 0;
    assert_found(model, "log", 1, 1);
    model->count = 0;
    assert_int_equal(verify(model), 3);
}

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

static void j7_a_store_that_was_set_back_and_went_on_is_a_regression(void **state)
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

static void j6_a_cut_that_somebody_signed_himself_removes_nothing(void **state)
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

/* Lines from before there were chains are not blamed; those after are. */
static void d9_lines_without_hashes_are_of_the_time_before(void **state)
{
    struct model *model = *state;
    struct log_head head = {.seq = 3};

    for (int i = 0; i < 3; i++)
        model->lines[model->count++].line = (struct log_line){
            .execution_id = execution(1), .seq = i + 1, .message = STR("old"), .logged_at_us = 1};
    model->options.since_us = uuid7_time_ms(&model->lines[0].line.execution_id) * 1000;
    assert_int_equal(verify(model), 0);
    head.execution_id = execution(1);
    model->lines[3].line = (struct log_line){.execution_id = execution(1), .seq = 4,
                                             .message = STR("new"),
                                             .logged_at_us = model->options.since_us + 1};
    model->count = 4;
    logchain_step(&head, &model->lines[3].line);
    hash_hex(head.hash, HASH_BYTES, model->lines[3].hash);
    record_heads(model, 1, 1);
    assert_int_equal(verify(model), 0);
    model->lines[3].hash[0] = '\0';
    assert_found(model, "log", 1, 4);
    model->options.since_us = 0;
    assert_found(model, "log", 1, 1);
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

/* Lines of a level, as retention leaves them: line 2 and 3 of each execution are DEBUG. */
static void empty(struct stored_line *stored, char hex[HASH_HEX_BYTES + 1])
{
    uint8_t hash[HASH_BYTES];

    assert_int_equal(logchain_content(stored->line.message, stored->line.context, hash), 0);
    hash_hex(hash, sizeof hash, hex);
    stored->line.removed = str_of(hex);
    stored->line.message = STR("");
    stored->line.context = STR_NONE;
}

static void record_blank(struct model *model, int number, int64_t through, int64_t lines)
{
    struct anchor anchor = {.kind = ANCHOR_BLANKS, .reason = STR("retention")};
    struct log_part item = {.head = {.execution_id = execution(number), .seq = through},
                            .lines = lines, .emptied = true, .level = SEVERITY_DEBUG};

    add_record(model, &anchor, &item, 1);
}

static void d9_emptied_lines_are_whole_where_a_record_says_so_and_only_there(void **state)
{
    struct model *model = *state;
    char hexes[3][HASH_HEX_BYTES + 1], kept;
    struct stored_line before;

    add_lines(model, 1, 5);
    model->lines[1].line.level = model->lines[2].line.level = SEVERITY_DEBUG;
    chain_anew(model, 1);
    record_heads(model, 1, 1);
    model->file_count = 1;
    assert_int_equal(verify(model), 0);
    empty(&model->lines[1], hexes[0]);
    assert_found(model, "log", 1, 2); /* no record yet */
    assert_non_null(strstr(model->detail, "no signed record says so"));
    record_blank(model, 1, 3, 2);
    empty(&model->lines[2], hexes[1]);
    assert_int_equal(verify(model), 0);
    assert_int_equal(verify_some(model, 0, 1), 1); /* without the record */

    before = model->lines[3]; /* one of another level, with the right hash of its text */
    empty(&model->lines[3], hexes[2]);
    assert_found(model, "log", 1, 4);
    model->lines[3].line.level = SEVERITY_DEBUG; /* behind what the record says */
    assert_found(model, "log", 1, 4);
    model->lines[3] = before;

    before = model->lines[0]; /* relabelled, to be covered */
    empty(&model->lines[0], hexes[2]);
    model->lines[0].line.level = SEVERITY_DEBUG;
    assert_found(model, "log", 1, 1);
    model->lines[0] = before;

    before = model->lines[1];
    model->lines[1].line.level = SEVERITY_ERROR;
    assert_found(model, "log", 1, 2);
    model->lines[1] = before;
    model->lines[1].line.logged_at_us++;
    assert_found(model, "log", 1, 2);
    model->lines[1] = before;
    model->lines[1].line.message = STR("forged"); /* beside the hash, and in its place */
    assert_found(model, "log", 1, 2);
    model->lines[1].line.removed = STR_NONE;
    assert_found(model, "log", 1, 2);
    model->lines[1] = before;
    kept = hexes[0][5];
    hexes[0][5] = kept == '0' ? '1' : '0';
    assert_found(model, "log", 1, 2);
    hexes[0][5] = kept;
    assert_int_equal(verify(model), 0);
}

static void j5_nothing_may_follow_a_closed_chain(void **state)
{
    struct model *model = *state;
    struct anchor anchor = {.kind = ANCHOR_HEADS};
    struct log_part item = {.closed = true};

    add_lines(model, 1, 3);
    item.head = head_of(model, 1);
    add_record(model, &anchor, &item, 1);
    assert_int_equal(verify(model), 0);
    add_lines(model, 1, 1);
    record_heads(model, 1, 1); /* even if that is signed */
    assert_found(model, "log", 1, 4);
    assert_non_null(strstr(model->detail, "after its execution ended"));
}

/* The lines that came behind another part. */
static struct log_part log_part_behind(const struct log_part *before, struct log_head head)
{
    struct log_part part = {.head = head, .lines = head.seq - before->head.seq, .follows = true};

    memcpy(part.from, before->head.hash, sizeof part.from);
    return part;
}

static void record_part(struct model *model, enum anchor_kind kind, struct log_part part)
{
    struct anchor anchor = {.kind = kind};

    add_record(model, &anchor, &part, 1);
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
static void j8_lines_that_two_records_name_are_told_of(void **state)
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
    chain_anew(model, 1);
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

static void j6_what_a_record_says_and_nobody_can_read_is_told_of(void **state)
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

static void j5_since_when_lines_need_proof_is_said_once(void **state)
{
    struct model *model = given(state);
    struct anchor first = {.kind = ANCHOR_BEGIN, .has_since = true, .since_us = 3},
                  second = {.kind = ANCHOR_HEADS, .has_since = true, .since_us = 3};
    struct log_part refused = {.head = head_of(model, 3)};

    model->options.since_us = INT64_MAX; /* the word of the store counts no more */
    add_record(model, &first, NULL, 0);
    add_record(model, &second, NULL, 0);
    for (int i = 0; i < 3; i++)
        model->pending[model->pending_count++] = head_of(model, i + 1);
    assert_int_equal(verify(model), 0);
    model->lines[14].hash[0] = '\0';
    assert_found(model, "log", 3, 5);
    chain_anew(model, 3);
    second = (struct anchor){.kind = ANCHOR_REFUSED, .has_since = true, .since_us = 3};
    add_record(model, &second, &refused, 1);
    assert_found(model, "log", 3, 5);
    model->records_count--;
    second = (struct anchor){.kind = ANCHOR_HEADS, .has_since = true, .since_us = 9};
    add_record(model, &second, NULL, 0);
    assert_int_equal(verify(model), 1);
    assert_string_equal(model->kind, "anchor");
}

/* F-J5: once a record named all there was, the time a line says proves nothing. */
static void j5_lines_from_before_are_those_that_were_named(void **state)
{
    struct model *model = *state;
    struct uuid id = execution(1);
    int64_t since_us = uuid7_time_ms(&id) * 1000;
    struct anchor begin = {.kind = ANCHOR_BEGIN, .has_since = true, .since_us = since_us,
                           .begin = 1},
                  heads = {.kind = ANCHOR_HEADS, .reason = STR("adopted"), .has_since = true,
                           .since_us = since_us, .begin = 1};
    struct log_part plain = {.head = {.execution_id = execution(1), .seq = 2}};

    for (int i = 0; i < 2; i++)
        model->lines[model->count++].line = (struct log_line){
            .execution_id = execution(1), .seq = i + 1, .message = STR("old"), .logged_at_us = 1};
    add_record(model, &begin, NULL, 0);
    add_record(model, &heads, &plain, 1);
    model->pending[model->pending_count++] = plain.head;
    assert_int_equal(verify(model), 0);
    model->lines[2].line = (struct log_line){.execution_id = execution(1), .seq = 3,
                                             .message = STR("forged"), .logged_at_us = 1};
    model->count = 3;
    assert_found(model, "log", 1, 3);
    model->count = 1; /* and one that is gone is missed */
    assert_found(model, "log", 1, 2);
}

/* Without the key the author of a note is unknown: for a moment it is believed. */
static void j5_a_line_may_wait_for_its_record_only_for_a_while(void **state)
{
    struct model *model = given(state);
    struct anchor begin = {.kind = ANCHOR_BEGIN, .has_since = true};

    add_record(model, &begin, NULL, 0);
    add_lines(model, 3, 1);
    for (int i = 0; i < 3; i++)
        model->pending[model->pending_count++] = head_of(model, i + 1);
    model->options.fresh_us = model->lines[15].line.logged_at_us;
    assert_int_equal(verify(model), 0);
    model->options.fresh_us++;
    assert_found(model, "log", 3, 6);
    assert_non_null(strstr(model->detail, "although one was due"));
}

/* It would wait for ever. The clock of the server, which records show, may be ahead of ours. */
static void j5_no_line_of_tomorrow_waits_for_its_record(void **state)
{
    struct model *model = given(state);
    struct anchor begin = {.kind = ANCHOR_BEGIN, .has_since = true};
    struct stored_line *last = &model->lines[15];
    struct log_head head;

    add_record(model, &begin, NULL, 0); /* at a million */
    head = head_of(model, 3);
    add_lines(model, 3, 1);
    last->line.logged_at_us = 3000000;
    logchain_step(&head, &last->line);
    hash_hex(head.hash, HASH_BYTES, last->hash);
    for (int i = 0; i < 3; i++)
        model->pending[model->pending_count++] = head_of(model, i + 1);
    model->options.fresh_us = 1;
    model->options.ahead_us = 4000001;
    assert_int_equal(verify(model), 0);
    model->options.ahead_us = 2000001;
    assert_found(model, "log", 3, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(j5_a_changed_line_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(j5_a_deleted_line_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(j5_lines_of_two_executions_that_are_swapped_are_named,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(j5_a_chain_made_again_is_not_the_signed_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j5_an_added_line_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(j5_lines_of_an_execution_nobody_knows_are_named, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j6_a_missing_end_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(j6_a_missing_execution_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(j7_a_store_behind_its_anchor_file_is_a_regression, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            j7_a_store_that_was_set_back_and_went_on_is_a_regression, setup, teardown),
        cmocka_unit_test_setup_teardown(j7_a_seam_joins_what_came_after_and_hides_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j7_two_nodes_may_write_one_anchor_file, setup, teardown),
        cmocka_unit_test_setup_teardown(j6_a_piece_of_a_record_is_none_when_the_whole_follows,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(j8_what_retention_removed_is_not_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            j6_records_that_were_changed_removed_or_made_up_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(j6_a_record_between_two_others_cannot_be_left_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j6_a_cut_that_somebody_signed_himself_removes_nothing,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(j6_records_that_are_all_gone_are_missed, setup, teardown),
        cmocka_unit_test_setup_teardown(
            d9_emptied_lines_are_whole_where_a_record_says_so_and_only_there, setup, teardown),
        cmocka_unit_test_setup_teardown(j5_nothing_may_follow_a_closed_chain, setup, teardown),
        cmocka_unit_test_setup_teardown(j8_what_followed_a_closed_chain_is_named_when_it_is_gone,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(j8_lines_that_two_records_name_are_told_of, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j6_what_a_record_says_and_nobody_can_read_is_told_of,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(j8_what_went_before_its_time_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(j5_since_when_lines_need_proof_is_said_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j5_lines_from_before_are_those_that_were_named, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j5_no_line_of_tomorrow_waits_for_its_record, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(j5_a_line_may_wait_for_its_record_only_for_a_while, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(d9_lines_without_hashes_are_of_the_time_before, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
