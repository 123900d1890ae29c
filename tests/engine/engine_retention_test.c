/* What leaves the store and what goes out: windows per status and type with the archive (A9),
 * purge of a user (B8), history windows, callbacks in the transaction of the end (A2, C7), dead
 * letters that escalate (D13). */
#include "engine_fixture.h"

#include <zstd.h>

#define WINDOW_MS 60

static struct uuid end_one(struct fixture *fx, const char *json, enum report_op op)
{
    struct uuid id = enqueue(fx, "%s", json);
    struct task *held = claim_one(fx, "w")->task;

    assert_true(uuid_eq(&held->id, &id));
    report_ok(fx, "w", held, .op = op, .retryable = false, .result = STR("{\"r\": 1}"));
    return id;
}

/* Opens again when the windows are over, which makes retention run at once. */
static void let_windows_pass(struct fixture *fx)
{
    fx_close(fx);
    fx_pause_ms(WINDOW_MS + 10);
    fx_open(fx);
}

static void ended_tasks_go_after_the_window_of_their_status_and_type(void **state) /* A9 */
{
    struct fixture *fx = *state;
    struct uuid completed, failed, kept, brief, cancelled, open;

    worker(fx, "w", "default");
    completed = end_one(fx, "{\"type\":\"t\"}", REPORT_COMPLETE);
    failed = end_one(fx, "{\"type\":\"t\"}", REPORT_FAIL);
    kept = end_one(fx, "{\"type\":\"keep:a\"}", REPORT_COMPLETE);
    brief = end_one(fx, "{\"type\":\"brief\"}", REPORT_FAIL);
    cancelled = enqueue(fx, "{\"type\":\"t\"}");
    assert_int_equal(control(fx, cancelled, CONTROL_CANCEL), ERR_NONE);
    open = enqueue(fx, "{\"type\":\"t\"}");
    fx->wanted.settings.retention.completed_ms = WINDOW_MS;
    fx->wanted.settings.retention.failed_ms = 3600000;
    fx->wanted.handlers[0] = (struct handler_rule){.type = STR("keep:*"), .retention_ms = 3600000};
    fx->wanted.handlers[1] = (struct handler_rule){.type = STR("brief"), .retention_ms = WINDOW_MS};
    fx->wanted.settings.handlers_count = 2;
    let_windows_pass(fx);
    wait_until(!get_or_null(fx, completed) && !get_or_null(fx, brief));
    assert_status(fx, failed, STATUS_FAILED);
    assert_status(fx, kept, STATUS_COMPLETED);
    assert_status(fx, cancelled, STATUS_CANCELLED);
    assert_status(fx, open, STATUS_PENDING);
    assert_int_equal(stats_of(fx).totals[TOTAL_PRUNED], 2);
    fx->wanted.settings.retention.failed_ms = WINDOW_MS;
    let_windows_pass(fx);
    wait_until(!get_or_null(fx, failed) && !get_or_null(fx, cancelled));
    assert_status(fx, open, STATUS_PENDING);
    fx_verify(fx);
}

static void many_tasks_go_in_small_steps(void **state) /* A9 */
{
    struct fixture *fx = *state;

    for (int i = 0; i < 450; i++)
        assert_int_equal(control(fx, enqueue(fx, "{\"type\":\"t\"}"), CONTROL_CANCEL), ERR_NONE);
    fx->wanted.settings.retention.failed_ms = WINDOW_MS;
    let_windows_pass(fx);
    wait_until(stats_of(fx).counts[STATUS_CANCELLED] == 0);
    assert_int_equal(stats_of(fx).totals[TOTAL_PRUNED], 450);
    fx_verify(fx);
}

static void relatives_that_are_needed_stay(void **state) /* A9 */
{
    struct fixture *fx = *state;
    struct uuid needed, dependent, child = {{0}};
    struct task *parent, *held;

    worker(fx, "w", "default");
    needed = end_one(fx, "{\"type\":\"t\"}", REPORT_COMPLETE);
    dependent = enqueue(fx, "{\"type\":\"d\",\"queue\":\"later\",\"depends_on\":[\"%s\"]}",
                        id_text(fx, needed));
    enqueue(fx, "{\"type\":\"p\"}");
    parent = claim_one(fx, "w")->task;
    report_ok(fx, "w", parent, .op = REPORT_SPAWN, .tasks = STR("[{\"type\":\"k\"}]"));
    held = claim_one(fx, "w")->task;
    child = held->id;
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    fx->wanted.settings.retention.completed_ms = WINDOW_MS;
    fx->wanted.settings.retention.failed_ms = WINDOW_MS;
    let_windows_pass(fx);
    fx_pause_ms(50);
    assert_non_null(get_or_null(fx, needed));
    assert_non_null(get_or_null(fx, child));
    assert_int_equal(control(fx, dependent, CONTROL_CANCEL), ERR_NONE);
    report_ok(fx, "w", parent, .op = REPORT_COMPLETE);
    let_windows_pass(fx);
    wait_until(!get_or_null(fx, needed) && !get_or_null(fx, child));
    fx_verify(fx);
}

/* The whole archive as text. */
static struct str read_archive(struct fixture *fx)
{
    struct buf text = BUF_INIT(64 * 1024 * 1024);
    ZSTD_DStream *stream = ZSTD_createDStream();
    DIR *dir = opendir(fx->archive);
    struct dirent *entry;
    struct str copy;
    char path[400], in_bytes[4096], out_bytes[65536];

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        FILE *file;
        size_t len;

        if (entry->d_name[0] == '.')
            continue;
        assert_non_null(strstr(entry->d_name, ".jsonl.zst"));
        snprintf(path, sizeof path, "%s/%s", fx->archive, entry->d_name);
        file = fopen(path, "rb");
        assert_non_null(file);
        while ((len = fread(in_bytes, 1, sizeof in_bytes, file)) > 0) {
            ZSTD_inBuffer in = {in_bytes, len, 0};

            while (in.pos < in.size) {
                ZSTD_outBuffer out = {out_bytes, sizeof out_bytes, 0};

                assert_false(ZSTD_isError(ZSTD_decompressStream(stream, &out, &in)));
                buf_append(&text, out_bytes, out.pos);
            }
        }
        fclose(file);
    }
    closedir(dir);
    ZSTD_freeDStream(stream);
    copy = arena_str(&fx->arena, buf_view(&text));
    buf_deinit(&text);
    return copy;
}

static void the_archive_holds_everything_that_was_removed(void **state) /* A9 */
{
    struct fixture *fx = *state;
    struct uuid ids[20];
    struct str text;
    uint32_t lines = 0, events = 0;

    worker(fx, "w", "default");
    for (int i = 0; i < 20; i++)
        ids[i] = end_one(fx, "{\"type\":\"t\",\"payload\":{\"b\":1, \"a\":[0.10]},"
                         "\"note\":\"se\xc3\xa9""n\"}", REPORT_COMPLETE);
    fx->wanted.settings.retention.completed_ms = WINDOW_MS;
    fx->wanted.settings.retention.archive = str_of(fx->archive);
    let_windows_pass(fx);
    wait_until(stats_of(fx).counts[STATUS_COMPLETED] == 0);
    text = read_archive(fx);
    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        struct str line, task;

        assert_non_null(end);
        line = str_span(text.data, (size_t)(end - text.data));
        assert_int_equal(json_check(line, NULL, &fx->err), 0);
        task = json_get(line, STR("task"));
        assert_true(has_text(json_get(task, STR("id")), id_text(fx, ids[lines++])));
        assert_true(str_is(json_get(task, STR("payload")), "{\"b\":1, \"a\":[0.10]}"));
        assert_true(str_is(json_get(task, STR("result")), "{\"r\": 1}"));
        assert_true(str_is(json_get(task, STR("note")), "\"se\xc3\xa9""n\""));
        events += (uint32_t)json_count(json_get(line, STR("events")));
        text = str_span(end + 1, text.len - line.len - 1);
    }
    assert_int_equal(lines, 20);
    assert_int_equal(events, 80); /* pending, claimed, running, completed */
}

static void the_archive_holds_more_events_than_a_list_shows(void **state) /* A9 */
{
    struct fixture *fx = *state;
    struct report reports[1500];
    struct report_request *request;
    struct task *held;
    struct str events;

    worker(fx, "w", "default");
    enqueue(fx, "{\"type\":\"t\"}");
    held = claim_one(fx, "w")->task;
    for (int i = 0; i < 1500; i++)
        reports[i] = REPORT(held, .op = REPORT_PROGRESS, .state = i % 2 ? STR("a") : STR("b"));
    request = report_prepare(fx, &fx->arena, "w", reports, 1500);
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    fx->wanted.settings.retention.completed_ms = WINDOW_MS;
    fx->wanted.settings.retention.archive = str_of(fx->archive);
    let_windows_pass(fx);
    wait_until(!get_or_null(fx, held->id));
    events = json_get(read_archive(fx), STR("events"));
    assert_int_equal(json_count(events), 1504);
    assert_true(has_text(str_span(events.data, 300), "\"status\":\"pending\"")); /* oldest first */
}

static void events_of_a_task_that_has_not_ended_stay(void **state) /* A9 */
{
    struct fixture *fx = *state;
    struct uuid open, ended;

    worker(fx, "w", "default");
    ended = end_one(fx, "{\"type\":\"t\"}", REPORT_COMPLETE);
    open = enqueue(fx, "{\"type\":\"t\",\"delay_ms\":600000}");
    fx->wanted.settings.retention.events_ms = WINDOW_MS;
    fx->wanted.settings.retention.executions_ms = WINDOW_MS;
    fx->wanted.settings.retention.logs_ms = WINDOW_MS;
    let_windows_pass(fx);
    wait_until(story_of(fx, ended)[0] == '\0');
    assert_string_equal(story_of(fx, open), "delayed");
    assert_status(fx, ended, STATUS_COMPLETED); /* the task itself has another window */
    fx_verify(fx);
}

static void a_purge_removes_all_ended_tasks_of_a_user_and_no_others(void **state) /* B8 */
{
    struct fixture *fx = *state;
    struct purge_request purge = {.base = {.kind = REQUEST_PURGE, .arena = &fx->arena},
                                  .user_id = STR("u")};
    struct uuid other = enqueue(fx, "{\"type\":\"t\",\"user_id\":\"v\"}");
    uint32_t removed = 0;

    for (int i = 0; i < 230; i++)
        assert_int_equal(control(fx, enqueue(fx, "{\"type\":\"t\",\"user_id\":\"u\"}"),
                                 CONTROL_CANCEL), ERR_NONE);
    for (int i = 0; i < 230; i++) /* younger ones that have not ended hide nothing */
        enqueue(fx, "{\"type\":\"t\",\"user_id\":\"u\"}");
    assert_int_equal(control(fx, other, CONTROL_CANCEL), ERR_NONE);
    do {
        assert_int_equal(engine_call(fx->engine, &purge.base), 0);
        removed += purge.removed;
    } while (purge.removed > 0);
    assert_int_equal(removed, 230);
    assert_int_equal(stats_of(fx).counts[STATUS_PENDING], 230);
    assert_status(fx, other, STATUS_CANCELLED);
    fx_verify(fx);
}

static struct outbox_take_request *take_outbox(struct fixture *fx)
{
    struct outbox_take_request *request = arena_alloc(&fx->arena, sizeof *request);

    *request = (struct outbox_take_request){
        .base = {.kind = REQUEST_OUTBOX_TAKE, .arena = &fx->arena}, .limit = 100};
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    return request;
}

static void an_end_writes_its_callback_in_the_same_transaction(void **state) /* A2, C7 */
{
    struct fixture *fx = *state;
    const struct str allowed = STR("http://127.0.0.1");
    const char *json = "{\"type\":\"t\",\"callback_url\":\"http://127.0.0.1:9/x\",\"payload\":7}";
    struct outbox_take_request *taken;
    struct uuid id;

    fx->wanted.settings.callbacks.allow = &allowed;
    fx->wanted.settings.callbacks.allow_count = 1;
    reopen(fx);
    worker(fx, "w", "default");
    end_one(fx, "{\"type\":\"t\"}", REPORT_COMPLETE); /* none asked for */
    assert_int_equal(take_outbox(fx)->count, 0);
    id = end_one(fx, json, REPORT_COMPLETE);
    taken = take_outbox(fx);
    assert_int_equal(taken->count, 1);
    assert_true(uuid_eq(&taken->messages[0].task_id, &id));
    assert_true(str_is(taken->messages[0].kind, "webhook"));
    assert_true(str_is(taken->messages[0].target, "http://127.0.0.1:9/x"));
    assert_int_equal(json_check(taken->messages[0].body, NULL, &fx->err), 0);
    assert_true(str_is(json_get(taken->messages[0].body, STR("status")), "\"completed\""));
    assert_true(str_is(json_get(taken->messages[0].body, STR("payload")), "7"));
    reopen(fx); /* it is as durable as the end */
    assert_int_equal(take_outbox(fx)->count, 1);
    assert_int_equal(control(fx, enqueue(fx, "%s", json), CONTROL_CANCEL), ERR_NONE);
    assert_int_equal(take_outbox(fx)->count, 2);
}

static void each_end_is_called_back_once_per_commit(void **state)
{
    struct fixture *fx = *state;
    const struct str allowed = STR("http://127.0.0.1");
    struct arena arenas[3] = {{0}};
    struct control_request *requests[3];
    struct engine_call calls[3];
    struct uuid id, other;

    fx->wanted.settings.callbacks.allow = &allowed;
    fx->wanted.settings.callbacks.allow_count = 1;
    reopen(fx);
    id = enqueue(fx, "{\"type\":\"t\",\"callback_url\":\"http://127.0.0.1:9/x\"}");
    other = enqueue(fx, "{\"type\":\"t\"}");
    requests[0] = control_prepare(&arenas[0], id, CONTROL_CANCEL);
    requests[1] = control_prepare(&arenas[1], other, CONTROL_CANCEL);
    requests[2] = control_prepare(&arenas[2], other, CONTROL_DELETE);
    fx_hold(fx);
    for (int i = 0; i < 3; i++)
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    fx_let_go(fx);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(engine_call_finish(&requests[i]->base, &calls[i]), 0);
        arena_deinit(&arenas[i]);
    }
    assert_int_equal(take_outbox(fx)->count, 1);
}

static void a_dead_letter_escalates_to_its_queue_once(void **state) /* D13 */
{
    struct fixture *fx = *state;
    struct uuid id;
    struct task *held, *note;

    fx->wanted.rules[0] = (struct queue_rule){.name = STR("default"),
                                              .dead_letter_queue = STR("dead")};
    fx->wanted.settings.queues_count = 1;
    reopen(fx); /* the queue comes into being with this start */
    worker(fx, "w", "default");
    worker(fx, "d", "dead");
    id = end_one(fx, "{\"type\":\"t\"}", REPORT_FAIL); /* failed, not dead */
    claim_none(fx, "d");
    id = enqueue(fx, "{\"type\":\"t\",\"max_retries\":0,\"correlation_id\":\"c\"}");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_FAIL);
    note = claim_one(fx, "d")->task;
    assert_true(has_text(note->spec.payload, id_text(fx, id)));
    assert_true(str_is(note->spec.type, "t"));
    assert_true(str_is(note->spec.correlation_id, "c"));
    claim_none(fx, "d");
    assert_int_equal(control(fx, id, CONTROL_RETRY), ERR_NONE);
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_FAIL);
    claim_one(fx, "d"); /* another death, another note */
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(ended_tasks_go_after_the_window_of_their_status_and_type),
        QUEUE_TEST(many_tasks_go_in_small_steps),
        QUEUE_TEST(relatives_that_are_needed_stay),
        QUEUE_TEST(the_archive_holds_everything_that_was_removed),
        QUEUE_TEST(the_archive_holds_more_events_than_a_list_shows),
        QUEUE_TEST(events_of_a_task_that_has_not_ended_stay),
        QUEUE_TEST(a_purge_removes_all_ended_tasks_of_a_user_and_no_others),
        QUEUE_TEST(an_end_writes_its_callback_in_the_same_transaction),
        QUEUE_TEST(each_end_is_called_back_once_per_commit),
        QUEUE_TEST(a_dead_letter_escalates_to_its_queue_once),
    };

    return cmocka_run_group_tests_name("queue retention", tests, NULL, NULL);
}
