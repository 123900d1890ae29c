/* Tamper-evident logs, as the engine keeps them: records while lines are written and at a
 * clean stop, cuts of retention, deletion and purges, the anchor file, a store that was set back
 * (D9, F-J5 to F-J9, F-A17, V7). */
#include "engine_fixture.h"

#include "log_fixture.h"
#include "log_time_fixture.h"

#include <fcntl.h>

static struct task *start_one(struct fixture *fx)
{
    enqueue(fx, "{\"type\":\"t\",\"user_id\":\"ann\"}");
    return claim_one(fx, "w")->task;
}

static void say(struct fixture *fx, struct task *held, int lines)
{
    struct report reports[100];
    struct report_request *request;

    assert_in_range(lines, 1, 100);
    for (int i = 0; i < lines; i++)
        reports[i] = REPORT(held, .op = REPORT_LOG, .level = SEVERITY_INFO,
                            .message = arena_format(&fx->arena, "line %d", i),
                            .context = STR("{\"n\":1}"));
    request = report_prepare(fx, &fx->arena, "w", reports, (uint32_t)lines);
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
}

static struct uuid log_one(struct fixture *fx, int lines)
{
    struct task *held = start_one(fx);

    say(fx, held, lines);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    return held->id;
}

static int64_t waiting(struct fixture *fx)
{
    return fx_ask(fx, "SELECT count(*) FROM log_heads WHERE lines > 0");
}

static int64_t records(struct fixture *fx)
{
    return fx_ask(fx, "SELECT count(*) FROM log_anchors");
}

static void d9_records_come_while_lines_are_written_and_only_then(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = keep_anchor(fx);
    struct task *held;

    worker(fx, "w", "default");
    held = start_one(fx);
    say(fx, held, 10);
    assert_whole(fx, anchor); /* also before there is a record */
    wait_until(waiting(fx) == 0);
    assert_int_equal(records(fx), 2); /* the first one begins */
    fx_pause_ms(3 * EVERY_MS);
    assert_int_equal(records(fx), 2);
    say(fx, held, 10);
    wait_until(records(fx) == 3 && waiting(fx) == 0);
    wait_until(log_fixture_check(fx, anchor).counts.anchor_records == 3);
    assert_whole(fx, anchor);
    assert_int_equal(log_fixture_check(fx, anchor).counts.lines, 20);
    assert_int_equal(log_fixture_check(fx, anchor).counts.unsigned_records, 0);
}

static void d9_a_clean_stop_leaves_no_chain_without_a_record(void **state)
{
    struct fixture *fx = *state;

    fx->wanted.settings.logs.anchor_every_ms = 3600000;
    fx->wanted.settings.logs.key = path_of(fx, "key");
    reopen(fx);
    worker(fx, "w", "default");
    log_one(fx, 5);
    assert_int_equal(waiting(fx), 1);
    reopen(fx);
    assert_int_equal(waiting(fx), 0);
    assert_int_equal(records(fx), 2);
    assert_whole(fx, NULL);
}

static void d9_where_nobody_logs_nothing_is_written(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = keep_anchor(fx);

    worker(fx, "w", "default");
    report_ok(fx, "w", start_one(fx), .op = REPORT_COMPLETE);
    fx_pause_ms(3 * EVERY_MS);
    reopen(fx);
    assert_int_equal(records(fx), 0);
    assert_int_not_equal(access(anchor, F_OK), 0);
    assert_int_not_equal(access(fx->wanted.settings.logs.key.data, F_OK), 0);
}

/* F-J8: by retention, by deletion, by purge. */
static void j8_what_is_removed_in_order_leaves_a_signed_record(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = keep_anchor(fx);
    struct purge_request purge = {.base = {.kind = REQUEST_PURGE, .arena = &fx->arena},
                                  .user_id = STR("ann")};
    struct uuid deleted;

    worker(fx, "w", "default");
    deleted = log_one(fx, 3);
    for (int i = 0; i < 5; i++)
        log_one(fx, 60);
    wait_until(waiting(fx) == 0);
    assert_int_equal(control(fx, deleted, CONTROL_DELETE), ERR_NONE);
    assert_whole(fx, anchor);
    fx->wanted.settings.retention.logs_ms = 1;
    reopen(fx);
    wait_until(fx_ask(fx, "SELECT count(*) FROM execution_logs") == 0);
    assert_whole(fx, anchor);
    assert_true(fx_ask(fx, "SELECT count(*) FROM log_anchors WHERE record LIKE "
                           "'%\"kind\":\"cuts\"%retention%'") >= 1);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM log_anchors WHERE record LIKE "
                                "'%\"kind\":\"cuts\"%delete%'"), 1);
    fx->wanted.settings.retention.logs_ms = 0;
    reopen(fx);
    worker(fx, "w", "default");
    log_one(fx, 4);
    assert_int_equal(engine_call(fx->engine, &purge.base), 0);
    assert_int_equal(purge.removed, 6);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM log_anchors WHERE record LIKE "
                                "'%\"kind\":\"cuts\"%purge%'"), 1);
    reopen(fx);
    assert_whole(fx, anchor);
    fx_verify(fx);
}

/* A window that ends within an execution leaves the rest of its chain whole. */
static void j8_an_execution_removed_in_steps_is_whole_at_every_step(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = keep_anchor(fx);
    struct task *held;

    worker(fx, "w", "default");
    held = start_one(fx);
    for (int i = 0; i < 9; i++)
        say(fx, held, 100);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    fx->wanted.settings.retention.logs_ms = 1;
    reopen(fx);
    while (fx_ask(fx, "SELECT count(*) FROM execution_logs") > 0)
        assert_whole(fx, NULL);
    reopen(fx);
    assert_whole(fx, anchor);
}

static void j8_what_is_removed_by_hand_is_found(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = keep_anchor(fx);

    worker(fx, "w", "default");
    log_one(fx, 3);
    wait_until(waiting(fx) == 0);
    fx_sql(fx, "DELETE FROM execution_logs WHERE seq = 3");
    assert_int_equal(log_fixture_check(fx, NULL).findings, 1);
    fx_sql(fx, "DELETE FROM execution_logs");
    assert_int_equal(log_fixture_check(fx, anchor).findings, 1);
    fx_sql(fx, "DELETE FROM log_anchors");
    log_one(fx, 1);
    wait_until(records(fx) >= 2); /* who serves it has seen both, and tells */
    assert_int_equal(log_fixture_check(fx, NULL).findings, 2); /* and the note is still there */
    assert_true(log_fixture_check(fx, anchor).findings >= 2);
}

static void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char bytes[65536];
    size_t len;

    assert_non_null(in);
    assert_non_null(out);
    while ((len = fread(bytes, 1, sizeof bytes, in)) > 0)
        assert_int_equal(fwrite(bytes, 1, len, out), len);
    fclose(in);
    fclose(out);
}

/* F-J7: told at the start, served all the same, and never forgotten. */
static void j7_a_store_that_was_set_back_is_told_of(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = keep_anchor(fx);
    const char *old = path_of(fx, "old.db").data;

    if (pg_schema_wanted())
        skip(); /* a copy of a file; a set-back database is in j7_lost_records below */
    worker(fx, "w", "default");
    log_one(fx, 3);
    fx_close(fx);
    copy_file(fx->path, old);
    fx_open(fx);
    assert_false(stats_of(fx).log_regression);
    worker(fx, "w", "default");
    log_one(fx, 2);
    fx_close(fx);
    copy_file(old, fx->path);
    fx_open(fx);
    assert_true(stats_of(fx).log_regression);
    worker(fx, "w", "default");
    log_one(fx, 4);
    reopen(fx);
    assert_false(stats_of(fx).log_regression); /* the file continues behind the seam */
    assert_string_equal(log_fixture_check(fx, anchor).kind, "regression");
    worker(fx, "w", "default");
    log_one(fx, 1);
    reopen(fx);
    assert_string_equal(log_fixture_check(fx, anchor).kind, "regression");
    assert_whole(fx, NULL);
}

static void j7_lost_records_are_told_of(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = keep_anchor(fx);

    worker(fx, "w", "default");
    log_one(fx, 3);
    wait_until(records(fx) >= 2 && log_fixture_check(fx, anchor).counts.anchor_records >= 2);
    fx_sql(fx, "DELETE FROM log_anchors");
    assert_true(stats_of(fx).log_regression);
    assert_string_equal(log_fixture_check(fx, anchor).kind, "regression");
}

static void d9_the_anchor_file_gets_what_it_lacks(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = keep_anchor(fx);
    int64_t before;
    FILE *file;

    worker(fx, "w", "default");
    for (int i = 0; i < 3; i++) {
        log_one(fx, 2);
        reopen(fx);
        worker(fx, "w", "default");
    }
    wait_until((before = log_fixture_check(fx, anchor).counts.anchor_records) == records(fx));
    fx_close(fx);
    unlink(anchor);
    fx_open(fx);
    worker(fx, "w", "default");
    log_one(fx, 1);
    fx_close(fx);
    assert_true(log_fixture_check(fx, anchor).counts.anchor_records > before);
    before = log_fixture_check(fx, anchor).counts.anchor_records;
    file = fopen(anchor, "r+"); /* as a crash in the middle of a line leaves it */
    assert_non_null(file);
    fseek(file, -40, SEEK_END);
    assert_int_equal(ftruncate(fileno(file), ftell(file)), 0);
    fclose(file);
    fx_open(fx);
    worker(fx, "w", "default");
    log_one(fx, 1);
    fx_close(fx);
    assert_true(log_fixture_check(fx, anchor).counts.anchor_records > before);
    assert_whole(fx, anchor);
    fx_open(fx); /* on a shared store the ends of runs are recorded a moment later */
    wait_until(log_fixture_check(fx, anchor).counts.anchor_records == records(fx));
}

/* So many bytes at once; how many lines have ended in what was read so far. */
static int read_lines(int pipe_fd, int *lines)
{
    char bytes[4096];
    ssize_t got = read(pipe_fd, bytes, sizeof bytes);

    for (ssize_t i = 0; i < got; i++)
        *lines += bytes[i] == '\n';
    return *lines;
}

/* As on a network mount that does not answer: a full pipe in its place. */
static void d9_an_anchor_file_that_hangs_holds_up_nobody(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = keep_anchor(fx);
    char zeros[4096] = {0};
    int pipe_fd, lines = 0;

    alarm(150); /* a queue that hangs answers no request */
    worker(fx, "w", "default");
    log_one(fx, 1);
    wait_until(waiting(fx) == 0 &&
               log_fixture_check(fx, anchor).counts.anchor_records == records(fx));
    assert_int_equal(unlink(anchor), 0);
    assert_int_equal(mkfifo(anchor, 0600), 0);
    pipe_fd = open(anchor, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(pipe_fd >= 0);
    while (write(pipe_fd, zeros, sizeof zeros) > 0)
        ;
    for (int i = 0; i < 3; i++) {
        log_one(fx, 1);
        wait_until(waiting(fx) == 0);
    }
    fx_pause_ms(2 * EVERY_MS);
    log_one(fx, 1); /* and everything else continues */
    wait_until(read_lines(pipe_fd, &lines) >= 3); /* it answers again */
    fx_close(fx);
    unlink(anchor);
    close(pipe_fd);
    fx_open(fx); /* the file starts over, with all there is */
    wait_until(records(fx) >= 6 &&
               log_fixture_check(fx, anchor).counts.anchor_records == records(fx));
    assert_whole(fx, anchor);
    alarm(0);
}

static void d9_without_a_key_file_records_on_a_shared_store_are_not_signed(void **state)
{
    struct fixture *fx = *state;

    fx->wanted.settings.logs.anchor_every_ms = EVERY_MS;
    reopen(fx);
    worker(fx, "w", "default");
    log_one(fx, 1);
    wait_until(records(fx) == 2);
    assert_int_equal(log_fixture_check(fx, NULL).counts.unsigned_records, pg_schema_wanted() ? 2 : 0);
    assert_whole(fx, NULL);
}

/* A key that is lost is replaced where the store is ours alone, and that is not hidden. */
static void d9_a_lost_key_is_replaced_in_the_open(void **state)
{
    struct fixture *fx = *state;
    struct log_check found;

    keep_anchor(fx);
    worker(fx, "w", "default");
    log_one(fx, 1);
    fx_close(fx);
    assert_int_equal(unlink(fx->wanted.settings.logs.key.data), 0);
    fx_open(fx);
    worker(fx, "w", "default");
    log_one(fx, 1);
    reopen(fx);
    found = log_fixture_check(fx, NULL);
    if (pg_schema_wanted()) { /* nodes must share one key: what was logged waits for it */
        assert_int_equal(waiting(fx), 1);
        assert_int_equal(found.findings, 0);
    } else {
        assert_int_equal(waiting(fx), 0);
        assert_non_null(strstr(found.detail, "signed by another key"));
    }
}

/* One record by the same key, as versions before notes wrote it, in place of all there are. */
static void make_older(struct fixture *fx)
{
    struct store_options options = {.allow_network_fs = true};
    struct anchor old = {.kind = ANCHOR_HEADS, .serial = 1, .at_us = clock_wall_us()}, read;
    struct buf text = BUF_INIT(ANCHOR_BYTES_MAX);
    struct log_part items[8] = {{.lines = 0}};
    struct anchor_row *rows, row;
    struct sign_key *key;
    struct store *store;
    struct json_iter iter;
    uint32_t count, found = 0;

    assert_int_equal(store_open(&store, str_of(fx->where), &options, &fx->err), 0);
    assert_int_equal(sign_key_load(fx->wanted.settings.logs.key.data, true, &key, &fx->err), 0);
    assert_int_equal(store->verbs->logs->anchors_read(store, 0, 50, &fx->arena, &rows, &count,
                                                      &fx->err), 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(anchor_parse(rows[i].record, &read));
        json_begin(read.items, &iter);
        while (found < 8 && anchor_next_item(&iter, &items[found]))
            items[found++].closed = false;
    }
    assert_int_equal(anchor_make(&old, items, found, key, &text, &row), 0);
    assert_int_equal(store->verbs->begin(store, &fx->err), 0);
    assert_int_equal(store->verbs->logs->anchors_trim(store, INT64_MAX, &fx->err), 0);
    assert_int_equal(store->verbs->logs->anchor_insert(store, &row, &fx->err), 0);
    assert_int_equal(store->verbs->commit(store, &fx->err), 0);
    store->verbs->close(store);
    sign_key_free(key);
    buf_deinit(&text);
}

/* What it holds is taken as it is, once, and what comes is proven. */
static void d9_a_store_of_an_older_version_is_adopted(void **state)
{
    struct fixture *fx = *state;

    keep_anchor(fx);
    fx->wanted.settings.logs.anchor = STR_NONE;
    reopen(fx);
    worker(fx, "w", "default");
    log_one(fx, 3);
    fx_close(fx);
    make_older(fx);
    fx_open(fx);
    worker(fx, "w", "default");
    log_one(fx, 2);
    reopen(fx);
    worker(fx, "w", "default");
    log_one(fx, 2);
    reopen(fx);
    assert_whole(fx, NULL);
    assert_false(stats_of(fx).log_regression);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM log_anchors WHERE record LIKE "
                                "'%\"kind\":\"begin\"%'"), 1);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM log_anchors WHERE record LIKE "
                                "'%\"since\":0,%'"), 0);
}

/* Records go when all they cover is long gone; what still counts of them is recorded again. */
static void j8_old_records_go_and_leave_no_gap(void **state)
{
    struct fixture *fx = *state;
    const char *anchor;
    struct task *held;
    char later[160];

    if (pg_schema_wanted())
        skip(); /* time cannot be set there; the verbs are in the conformance suite */
    fx->wanted.settings.lease_ms = 90LL * 86400000; /* what runs is not lost meanwhile */
    anchor = keep_anchor(fx);
    worker(fx, "w", "default");
    enqueue(fx, "{\"type\":\"t\",\"timeout_ms\":7776000000}");
    held = claim_one(fx, "w")->task;
    say(fx, held, 5);
    wait_until(waiting(fx) == 0);
    for (int i = 0; i < 60; i++)
        assert_int_equal(control(fx, log_one(fx, 1), CONTROL_DELETE), ERR_NONE);
    assert_true(records(fx) >= 60);
    fx->wanted.settings.retention.logs_ms = 86400000;
    snprintf(later, sizeof later, "INSERT OR REPLACE INTO store_info VALUES ('last_time_us', '%lld')",
             (long long)(clock_wall_us() + 40LL * 86400 * CLOCK_SECOND_US));
    wall_ahead_us = 41LL * 86400 * CLOCK_SECOND_US;
    fx_sql(fx, later);
    wait_until(fx_ask(fx, "SELECT min(serial) FROM log_anchors") == 51);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM execution_logs"), 5);
    assert_whole(fx, NULL);
    reopen(fx);
    assert_whole(fx, anchor);
    assert_true(log_fixture_check(fx, anchor).counts.anchor_records > records(fx));
    fx_sql(fx, "DELETE FROM log_anchors WHERE serial = 51");
    assert_true(log_fixture_check(fx, NULL).findings > 0);
    wall_ahead_us = 0;
}

/* What an attacker wrote without the key is never made good by a record that carries old ones on. */
static void j8_what_was_refused_stays_so_when_its_record_goes(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    char later[160];

    if (pg_schema_wanted())
        skip(); /* time cannot be set there */
    fx->wanted.settings.lease_ms = 90LL * 86400000;
    keep_anchor(fx);
    worker(fx, "w", "default");
    enqueue(fx, "{\"type\":\"t\",\"timeout_ms\":7776000000}");
    held = claim_one(fx, "w")->task;
    say(fx, held, 5);
    wait_until(waiting(fx) == 0);
    fx_sql(fx, "INSERT INTO log_heads (execution_id, seq, chain_hash, lines) SELECT DISTINCT "
               "execution_id, 9, hex(zeroblob(32)), 4 FROM execution_logs");
    wait_until(waiting(fx) == 0);
    for (int i = 0; i < 60; i++)
        assert_int_equal(control(fx, log_one(fx, 1), CONTROL_DELETE), ERR_NONE);
    fx->wanted.settings.retention.logs_ms = 86400000;
    snprintf(later, sizeof later, "INSERT OR REPLACE INTO store_info VALUES ('last_time_us', '%lld')",
             (long long)(clock_wall_us() + 40LL * 86400 * CLOCK_SECOND_US));
    wall_ahead_us = 41LL * 86400 * CLOCK_SECOND_US;
    fx_sql(fx, later);
    wait_until(fx_ask(fx, "SELECT min(serial) FROM log_anchors") == 51);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM log_anchors WHERE record LIKE "
                                "'%\"kind\":\"refused\"%'"), 0);
    assert_non_null(strstr(log_fixture_check(fx, NULL).detail, "refused to sign"));
    wall_ahead_us = 0;
}

/* What they told of was signed again when the new key began. */
static void j8_old_records_by_a_key_that_was_replaced_go_too(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    char later[160];

    if (pg_schema_wanted())
        skip(); /* a lost key is not replaced there, and time cannot be set */
    fx->wanted.settings.lease_ms = 90LL * 86400000;
    keep_anchor(fx);
    fx->wanted.settings.logs.anchor = STR_NONE;
    reopen(fx);
    worker(fx, "w", "default");
    enqueue(fx, "{\"type\":\"t\",\"timeout_ms\":7776000000}");
    held = claim_one(fx, "w")->task;
    say(fx, held, 5);
    for (int i = 0; i < 60; i++)
        assert_int_equal(control(fx, log_one(fx, 1), CONTROL_DELETE), ERR_NONE);
    fx_close(fx);
    assert_int_equal(unlink(fx->wanted.settings.logs.key.data), 0);
    fx->wanted.settings.retention.logs_ms = 86400000;
    fx_open(fx);
    worker(fx, "w", "default");
    for (int i = 0; i < 60; i++)
        assert_int_equal(control(fx, log_one(fx, 1), CONTROL_DELETE), ERR_NONE);
    snprintf(later, sizeof later, "INSERT OR REPLACE INTO store_info VALUES ('last_time_us', '%lld')",
             (long long)(clock_wall_us() + 40LL * 86400 * CLOCK_SECOND_US));
    wall_ahead_us = 41LL * 86400 * CLOCK_SECOND_US;
    fx_sql(fx, later);
    wait_until(fx_ask(fx, "SELECT min(serial) FROM log_anchors") >= 51);
    reopen(fx);
    wait_until(fx_ask(fx, "SELECT min(serial) FROM log_anchors") >= 101);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM execution_logs"), 5);
    assert_whole(fx, NULL); /* only records by the new key are left */
    wall_ahead_us = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(d9_records_come_while_lines_are_written_and_only_then),
        QUEUE_TEST(d9_a_clean_stop_leaves_no_chain_without_a_record),
        QUEUE_TEST(d9_where_nobody_logs_nothing_is_written),
        QUEUE_TEST(j8_what_is_removed_in_order_leaves_a_signed_record),
        QUEUE_TEST(j8_an_execution_removed_in_steps_is_whole_at_every_step),
        QUEUE_TEST(j8_what_is_removed_by_hand_is_found),
        QUEUE_TEST(j8_old_records_go_and_leave_no_gap),
        QUEUE_TEST(j8_what_was_refused_stays_so_when_its_record_goes),
        QUEUE_TEST(j8_old_records_by_a_key_that_was_replaced_go_too),
        QUEUE_TEST(j7_a_store_that_was_set_back_is_told_of),
        QUEUE_TEST(j7_lost_records_are_told_of),
        QUEUE_TEST(d9_the_anchor_file_gets_what_it_lacks),
        QUEUE_TEST(d9_an_anchor_file_that_hangs_holds_up_nobody),
        QUEUE_TEST(d9_without_a_key_file_records_on_a_shared_store_are_not_signed),
        QUEUE_TEST(d9_a_lost_key_is_replaced_in_the_open),
        QUEUE_TEST(d9_a_store_of_an_older_version_is_adopted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
