/* A store that is two arrays, for the tests of verification: lines in chains, and signed records of
 * them. Included by test programs only; all functions are static. */
#ifndef TESTS_LOGVERIFY_FIXTURE_H
#define TESTS_LOGVERIFY_FIXTURE_H

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

static inline int setup(void **state)
{
    struct model *model = calloc(1, sizeof *model);
    uint8_t seed[SIGN_SEED_BYTES] = {7};

    model->key = sign_key_new(seed);
    *state = model;
    return 0;
}

static inline int teardown(void **state)
{
    struct model *model = *state;

    for (int i = 0; i < RECORDS_MAX; i++)
        buf_deinit(&model->records[i].text);
    sign_key_free(model->key);
    free(model);
    return 0;
}

static inline struct uuid execution(int number)
{
    struct uuid id = {{0x01, 0x9a, 0, 0, 0, (uint8_t)number, 0x70}}; /* of 2025 */

    return id;
}

static inline struct log_head head_of(const struct model *model, int number)
{
    struct log_head head = {.execution_id = execution(number)};

    for (int i = 0; i < model->count; i++)
        if (uuid_eq(&model->lines[i].line.execution_id, &head.execution_id))
            logchain_resume(&head, &head.execution_id, model->lines[i].line.seq,
                            str_of(model->lines[i].hash));
    return head;
}

static inline void add_lines(struct model *model, int number, int count)
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

static inline struct anchor *add_record(struct model *model, struct anchor *anchor,
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

static inline void record_heads(struct model *model, int first, int last)
{
    struct anchor anchor = {.kind = ANCHOR_HEADS};
    struct log_part items[8] = {{.lines = 0}};
    uint32_t count = 0;

    for (int i = first; i <= last; i++)
        items[count++].head = head_of(model, i);
    add_record(model, &anchor, items, count);
}

static inline void on_finding(void *ctx, const struct logverify_finding *finding)
{
    struct model *model = ctx;

    if (model->findings++ > 0)
        return;
    snprintf(model->kind, sizeof model->kind, "%s", finding->kind);
    snprintf(model->subject, sizeof model->subject, STR_FMT, STR_ARG(finding->subject));
    snprintf(model->detail, sizeof model->detail, STR_FMT, STR_ARG(finding->detail));
}

static inline void feed_file(struct model *model, struct logverify *verify, int at)
{
    struct buf line = BUF_INIT(ANCHOR_LINE_BYTES_MAX);

    anchor_line_write(&line, &model->records[at].row);
    logverify_anchor_line(verify, str_span(line.data, line.len - 1));
    buf_deinit(&line);
}

/* With these records in the file and in the store; both lists end with -1. */
static inline int verify_lists(struct model *model, const int *file, const int *store)
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
static inline int verify_some(struct model *model, int from, int to)
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

static inline int verify(struct model *model)
{
    return verify_some(model, 0, model->records_count);
}

static inline void assert_found(struct model *model, const char *kind, int number, int seq)
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
static inline struct model *given(void **state)
{
    struct model *model = *state;

    for (int i = 1; i <= 3; i++)
        add_lines(model, i, 5);
    record_heads(model, 1, 3);
    model->file_count = 1;
    assert_int_equal(verify(model), 0);
    return model;
}

static inline void chain_again(struct model *model, int number)
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

static inline void record_part(struct model *model, enum anchor_kind kind, struct log_part part)
{
    struct anchor anchor = {.kind = kind};

    add_record(model, &anchor, &part, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
