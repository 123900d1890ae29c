/* `perdura top`: replies to rows (also those of an older server), frames of every size, keys, and
 * that no text of a task reaches the terminal as a command (F-I: hostile names). */
#include "cli/top/top_view.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"

#define ID_A "01a1e1a5-3ed9-78e1-8000-0000009b4980"
#define ID_B "01a1e1a5-3ed9-78e1-8000-00000219c48c"
#define HOSTILE "evil\\u001b[2J\\u009b31m\\u202e\\u0007"

static const char stats[] =
    "{\"version\":\"1.2.3\",\"store\":\"sqlite\",\"uptime_ms\":65000,\"workers\":2,"
    "\"waiting_claims\":1,\"counts\":{\"pending\":5,\"delayed\":2,\"blocked\":1,\"running\":3,"
    "\"claimed\":1},\"totals\":{\"completed\":100,\"failed\":10,\"enqueued\":200},"
    "\"queues\":[{\"name\":\"small\",\"paused\":false,\"counts\":{\"pending\":1}},"
    "{\"name\":\"mail\",\"paused\":true,\"counts\":{\"pending\":4,\"running\":2}}],"
    "\"alerts\":[{\"code\":\"a\",\"severity\":\"warning\",\"text\":\"slow\"},"
    "{\"code\":\"b\",\"severity\":\"critical\",\"text\":\"no worker serves mail\","
    "\"queue\":\"mail\"}]}";
static const char history[] =
    "{\"from\":\"2026-11-15T10:00:00.000Z\",\"step_ms\":5000,\"points\":4,"
    "\"total\":{\"completed\":[null,10,20,30],\"failed\":[0,0,0,0],\"enqueued\":[1,1,1,1]},"
    "\"queues\":[{\"queue\":\"mail\",\"completed\":[0,5,5,5],\"failed\":[0,0,1,0],"
    "\"wait_p50_ms\":[1,2,12.4,null],\"wait_p99_ms\":[null,null,null,null]}]}";
static const char workers[] =
    "{\"items\":[{\"id\":\"w1\",\"status\":\"working\",\"pool_size\":4,\"is_leader\":true,"
    "\"last_heartbeat\":\"2026-11-15T10:00:00.000000Z\",\"current_tasks\":["
    "{\"task_id\":\"" ID_B "\",\"started_at\":\"2026-11-15T10:00:00.000000Z\"},"
    "{\"task_id\":\"" ID_A "\",\"started_at\":\"2026-11-15T09:59:00.000000Z\"}]}]}";
static const char failed[] =
    "{\"items\":[{\"task_id\":\"" ID_A "\",\"attempt_number\":2,\"failed_at\":"
    "\"2026-11-15T09:59:59.000000Z\",\"error_data\":{\"reason\":\"x\",\"message\":\"" HOSTILE
    "\"}}]}";
static const char forecast[] =
    "{\"items\":[{\"at\":\"2026-11-15T10:05:10.000000Z\",\"local\":\"2026-11-15T11:05:10+01:00\","
    "\"schedule_id\":\"" ID_A "\",\"job\":\"nightly\",\"timezone\":\"Europe/Berlin\"},"
    "{\"at\":\"2026-11-15T10:06:10.000000Z\",\"recurring_job_id\":\"" ID_B "\",\"name\":\"weekly\"}]}";

struct fixture {
    struct arena arena;
    struct top_memory memory;
    struct top_snapshot snapshot;
    struct top_view view;
    struct buf frame;
    int64_t now_us;
};

static struct str reply(const char *text)
{
    struct str value = str_of(text);

    assert_int_equal(json_check(value, &value, NULL), 0);
    return value;
}

static int set_up(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    struct top_replies replies = {reply(stats), reply(history), reply(workers), reply(failed),
                                  STR_NONE, reply(forecast)};

    fx->arena = ARENA_INIT(16 << 20);
    fx->frame = BUF_INIT(4 << 20);
    assert_true(clock_parse(STR("2026-11-15T10:00:10Z"), &fx->now_us));
    top_model_learn(&fx->memory, STR(ID_A), reply("{\"type\":\"send\",\"queue\":\"mail\"}"),
                    &fx->arena);
    assert_int_equal(top_model_fill(&replies, &fx->memory, fx->now_us, &fx->arena, &fx->snapshot),
                     0);
    fx->view = (struct top_view){.rows = 24, .columns = 80, .server = STR("http://h:7070")};
    *state = fx;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fx = *state;

    arena_deinit(&fx->arena);
    buf_deinit(&fx->frame);
    free(fx);
    return 0;
}

static const char *draw(struct fixture *fx)
{
    buf_reset(&fx->frame);
    top_view_draw(&fx->view, &fx->snapshot, "\n", &fx->frame);
    buf_byte(&fx->frame, '\0');
    assert_false(fx->frame.failed);
    return fx->frame.data;
}

static enum top_wish press(struct fixture *fx, const char *bytes)
{
    enum top_wish wish = TOP_WISH_NONE;
    size_t len = strlen(bytes);

    while (len > 0) {
        struct top_key key;
        size_t used = top_key_read(bytes, len, true, &key);

        assert_true(used > 0 && used <= len);
        wish = top_view_key(&fx->view, &fx->snapshot, &key);
        bytes += used;
        len -= used;
    }
    return wish;
}

static void assert_cell(const struct fixture *fx, enum top_pane pane, uint32_t row, size_t cell,
                        const char *want)
{
    struct str got = fx->snapshot.rows[pane][row].cells[cell];

    if (!str_is(got, want))
        fail_msg("'%.*s', not '%s'", (int)got.len, got.data ? got.data : "", want);
}

static void replies_become_rows(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(fx->snapshot.waiting, 8);
    assert_int_equal(fx->snapshot.running, 4);
    assert_int_equal(fx->snapshot.done_milli, 4000); /* 60 in the 15 s that are known */
    assert_int_equal(fx->snapshot.failed_milli, 0);
    assert_true(fx->snapshot.critical);
    assert_true(str_is(fx->snapshot.leader, "w1"));
    assert_cell(fx, TOP_QUEUES, 0, 0, "mail"); /* the busiest first */
    assert_cell(fx, TOP_QUEUES, 0, 1, "paused");
    assert_cell(fx, TOP_QUEUES, 0, 4, "0.75");
    assert_cell(fx, TOP_QUEUES, 0, 6, "12ms");
    assert_cell(fx, TOP_QUEUES, 0, 7, "-");
    assert_cell(fx, TOP_QUEUES, 1, 4, "-");
    assert_cell(fx, TOP_RUNNING, 0, 0, ID_A); /* the longest first */
    assert_cell(fx, TOP_RUNNING, 0, 1, "send");
    assert_cell(fx, TOP_RUNNING, 0, 3, "1m 10s");
    assert_cell(fx, TOP_NEXT, 0, 0, "5m 00s");
    assert_cell(fx, TOP_ALERTS, 0, 0, "critical");
}

static void a_server_without_history_is_shown_by_differences(void **state)
{
    struct fixture *fx = *state;
    struct top_replies replies = {
        .stats = reply("{\"totals\":{\"completed\":150,\"failed\":10,\"enqueued\":1}}")};

    fx->now_us += 5 * CLOCK_SECOND_US;
    assert_int_equal(top_model_fill(&replies, &fx->memory, fx->now_us, &fx->arena, &fx->snapshot),
                     0);
    assert_int_equal(fx->snapshot.done_milli, 10000);
    assert_int_equal(fx->snapshot.failed_milli, 0);
    assert_int_equal(fx->snapshot.enqueued_milli, -1); /* it was restarted in between */
    assert_int_equal(fx->snapshot.counts[TOP_QUEUES], 0);
    assert_non_null(strstr(draw(fx), "no queues yet"));
}

static void answers_of_any_other_form_are_passed_over(void **state)
{
    static const char *const odd[] = {
        "[]", "7", "null", "{\"items\":7,\"queues\":{},\"alerts\":\"x\"}",
        "{\"items\":[1,null,\"a\",{}],\"queues\":[1,{}],\"alerts\":[{},1],\"counts\":[]}",
        "{\"step_ms\":0,\"total\":{\"completed\":[1]},\"queues\":[{\"queue\":1}]}",
        "{\"step_ms\":-5,\"total\":{\"completed\":{}},\"uptime_ms\":\"x\"}"};
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct str it = reply(odd[i]);
        struct top_replies replies = {it, it, it, it, it, it};

        assert_int_equal(top_model_fill(&replies, &fx->memory, fx->now_us, &fx->arena,
                                        &fx->snapshot), 0);
        draw(fx);
    }
}

/* Rows and columns of every frame, whatever is shown. */
static void assert_fits(struct fixture *fx)
{
    const char *line = draw(fx);
    uint32_t rows = 0;

    while (*line) {
        size_t len = strcspn(line, "\n");

        if (terminal_width(str_span(line, len)) > fx->view.columns)
            fail_msg("%ux%u: too wide: %.*s", fx->view.columns, fx->view.rows, (int)len, line);
        rows += 1;
        line += len;
        if (*line == '\n' && !line[1])
            rows++;
        line += *line == '\n';
    }
    if (rows > fx->view.rows)
        fail_msg("%ux%u: %u rows", fx->view.columns, fx->view.rows, rows);
}

static void frames_fit_every_terminal(void **state)
{
    struct fixture *fx = *state;

    for (uint32_t rows = 1; rows < 60; rows++)
        for (uint32_t columns = 1; columns < 130; columns += 7)
            for (int pane = 0; pane < TOP_PANES_COUNT; pane++) {
                fx->view.rows = rows;
                fx->view.columns = columns;
                fx->view.pane = (enum top_pane)pane;
                fx->view.mode = (enum top_mode)((rows + columns) % 4);
                assert_fits(fx);
            }
}

static void what_matters_is_seen_in_80_by_24_without_colour(void **state)
{
    static const char *const wanted[] = {
        "perdura 1.2.3", "http://h:7070", "up 1m 05s", "leader w1", "waiting 8", "done/s 4.0",
        "! no worker serves mail (and 1 more)", "[Queues 2]", "Workers 1", "Alerts 2", "WAIT P99",
        ">mail", "paused", "q quit"};
    struct fixture *fx = *state;
    const char *frame = draw(fx);

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!strstr(frame, wanted[i]))
            fail_msg("no '%s' in:\n%s", wanted[i], frame);
    assert_null(strchr(frame, '\033'));
}

static void texts_of_others_cannot_command_the_terminal(void **state)
{
    struct fixture *fx = *state;
    const char *frame;

    fx->view.pane = TOP_FAILURES;
    fx->view.filter[0] = '\0';
    frame = draw(fx);
    assert_null(strchr(frame, '\033'));
    assert_null(strchr(frame, '\007'));
    assert_null(strstr(frame, "\xC2\x9B"));
    assert_null(strstr(frame, "\xE2\x80\xAE"));
    assert_non_null(strstr(frame, "evil\\x1b[2J"));
    fx->view.message = STR("bad\033]0;title\007");
    top_lines_add(&(struct top_lines){.arena = &fx->arena}, "x");
    assert_null(strchr(draw(fx), '\033'));
    fx->view.mode = TOP_DETAIL;
    fx->view.detail = (struct top_lines){.arena = &fx->arena};
    top_lines_task(&fx->view.detail, reply("{\"id\":\"" HOSTILE "\",\"type\":\"" HOSTILE "\"}"),
                   reply("{\"text\":\"" HOSTILE "\"}"),
                   reply("{\"items\":[{\"state\":\"" HOSTILE "\"}]}"),
                   reply("{\"items\":[{\"message\":\"" HOSTILE "\"}]}"));
    fx->view.detail_title = STR("\033[31m");
    assert_null(strchr(draw(fx), '\033'));
    fx->view.mode = TOP_FILTER;
    memcpy(fx->view.filter, "\xC2\x9B", 3);
    assert_null(strstr(draw(fx), "\xC2\x9B"));
}

static void colours_are_the_only_escapes_with_colour(void **state)
{
    struct fixture *fx = *state;
    const char *at;

    fx->view.colour = true;
    fx->view.pane = TOP_FAILURES;
    for (at = strchr(draw(fx), '\033'); at; at = strchr(at + 1, '\033')) {
        size_t len = strspn(at + 1, "[0123456789;");

        assert_int_equal(at[1], '[');
        assert_int_equal(at[1 + len], 'm');
    }
}

static void keys_are_read_whole(void **state)
{
    static const struct {
        const char *bytes;
        bool all;
        size_t used;
        enum top_key_kind kind;
    } rows[] = {
        {"q", false, 1, TOP_KEY_TEXT},         {"\t", false, 1, TOP_KEY_TAB},
        {"\r", false, 1, TOP_KEY_ENTER},       {"\033[A", false, 3, TOP_KEY_UP},
        {"\033OB", false, 3, TOP_KEY_DOWN},    {"\033[Z", false, 3, TOP_KEY_BACK_TAB},
        {"\033[6~", false, 4, TOP_KEY_PAGE_DOWN}, {"\033", false, 0, TOP_KEY_NONE},
        {"\033", true, 1, TOP_KEY_ESCAPE},     {"\033[", false, 0, TOP_KEY_NONE},
        {"\033[", true, 2, TOP_KEY_ESCAPE},    {"\033[200~", false, 6, TOP_KEY_NONE},
        {"\033q", false, 1, TOP_KEY_ESCAPE},   {"\177", false, 1, TOP_KEY_BACKSPACE},
        {"\xC3\xA9", false, 2, TOP_KEY_TEXT},  {"\xC3", false, 0, TOP_KEY_NONE},
        {"\xC3", true, 1, TOP_KEY_NONE},       {"\xFFq", false, 1, TOP_KEY_NONE},
        {"\001", false, 1, TOP_KEY_NONE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct top_key key;
        size_t used = top_key_read(rows[i].bytes, strlen(rows[i].bytes), rows[i].all, &key);

        if (used != rows[i].used || key.kind != rows[i].kind)
            fail_msg("row %zu: %zu bytes, kind %d", i, used, (int)key.kind);
    }
}

static void keys_move_filter_and_ask(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(press(fx, "q"), TOP_WISH_QUIT);
    assert_int_equal(press(fx, "p"), TOP_WISH_PAUSE);
    assert_true(str_is(top_view_selected(&fx->view, &fx->snapshot)->key, "mail"));
    press(fx, "j");
    assert_true(str_is(top_view_selected(&fx->view, &fx->snapshot)->key, "small"));
    press(fx, "jjj\033[B"); /* no further than the last */
    assert_true(str_is(top_view_selected(&fx->view, &fx->snapshot)->key, "small"));
    press(fx, "k\033[A");
    assert_true(str_is(top_view_selected(&fx->view, &fx->snapshot)->key, "mail"));
    press(fx, "/sma\r");
    assert_true(str_is(top_view_selected(&fx->view, &fx->snapshot)->key, "small"));
    assert_null(strstr(draw(fx), "mail  "));
    press(fx, "/llx\177"); /* continues with what was there */
    assert_string_equal(fx->view.filter, "small");
    press(fx, "\033");
    assert_string_equal(fx->view.filter, "");
    press(fx, "\t");
    assert_int_equal(fx->view.pane, TOP_WORKERS);
    assert_int_equal(press(fx, "p"), TOP_WISH_NONE); /* only queues can be paused */
    press(fx, "\033[Z\033[Z");
    assert_int_equal(fx->view.pane, TOP_ALERTS);
    press(fx, "3");
    assert_int_equal(fx->view.pane, TOP_RUNNING);
    assert_int_equal(press(fx, "\r"), TOP_WISH_DETAIL);
    press(fx, "?");
    assert_non_null(strstr(draw(fx), "pause or resume the queue"));
    press(fx, "?");
    assert_int_equal(fx->view.mode, TOP_LIST);
    press(fx, "/nothing-like-this\r");
    assert_null(top_view_selected(&fx->view, &fx->snapshot));
    assert_int_equal(press(fx, "\r"), TOP_WISH_NONE);
    assert_non_null(strstr(draw(fx), "nothing fits the filter"));
}

static void figures_are_short(void **state)
{
    static const struct {
        int64_t milli;
        const char *text;
    } rows[] = {{-1, "-"},      {0, "0"},          {1, "0.01"},        {50, "0.05"},
                {999, "0.99"},  {1000, "1.0"},     {12345, "12.3"},    {99999, "99.9"},
                {100000, "100"}, {9999999, "9999"}, {12345678, "12k"}};
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(str_is(top_rate_text(rows[i].milli, &fx->arena), rows[i].text));
}

static void tasks_are_asked_for_once(void **state)
{
    struct fixture *fx = *state;
    struct top_replies replies = {.workers = reply(workers), .failed = reply(failed)};
    struct str ids[4];

    assert_int_equal(top_model_unknown(&replies, &fx->memory, &fx->arena, ids, 4), 1);
    assert_true(str_is(ids[0], ID_B));
    top_model_learn(&fx->memory, ids[0], STR_NONE, &fx->arena); /* it is gone */
    assert_int_equal(top_model_unknown(&replies, &fx->memory, &fx->arena, ids, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(replies_become_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_without_history_is_shown_by_differences, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(answers_of_any_other_form_are_passed_over, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(frames_fit_every_terminal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_matters_is_seen_in_80_by_24_without_colour, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(texts_of_others_cannot_command_the_terminal, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(colours_are_the_only_escapes_with_colour, set_up,
                                        tear_down),
        cmocka_unit_test(keys_are_read_whole),
        cmocka_unit_test_setup_teardown(keys_move_filter_and_ask, set_up, tear_down),
        cmocka_unit_test_setup_teardown(figures_are_short, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tasks_are_asked_for_once, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
