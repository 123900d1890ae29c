/* What verification finds of changed, added, removed and emptied lines (D9, F-J5, F-J6, V7). */
#include "logverify_fixture.h"

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
    chain_again(model, 2);
    assert_found(model, "log", 2, 5);
    model->lines[7].line.seq = 0;
    chain_again(model, 2);
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

static void j5_lines_of_an_unknown_execution_are_named(void **state)
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
    chain_again(model, 1);
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
    chain_again(model, 3);
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
        TEST(j5_a_changed_line_is_named),
        TEST(j5_a_deleted_line_is_named),
        TEST(j5_lines_of_two_executions_that_are_swapped_are_named),
        TEST(j5_a_chain_made_again_is_not_the_signed_one),
        TEST(j5_an_added_line_is_named),
        TEST(j5_lines_of_an_unknown_execution_are_named),
        TEST(j6_a_missing_end_is_named),
        TEST(j6_a_missing_execution_is_named),
        TEST(d9_lines_without_hashes_are_of_the_time_before),
        TEST(d9_emptied_lines_are_whole_where_a_record_says_so_and_only_there),
        TEST(j5_nothing_may_follow_a_closed_chain),
        TEST(j5_since_when_lines_need_proof_is_said_once),
        TEST(j5_lines_from_before_are_those_that_were_named),
        TEST(j5_a_line_may_wait_for_its_record_only_for_a_while),
        TEST(j5_no_line_of_tomorrow_waits_for_its_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
