/* Log lines: one whole, valid line per event whatever the values hold. */
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

struct sink {
    int fds[2];
    struct log log;
    char text[16384];
    size_t len;
};

static void sink_open(struct sink *sink, enum log_level level)
{
    assert_int_equal(pipe(sink->fds), 0);
    log_init(&sink->log, level, STR("auto"), sink->fds[1]);
}

/* What was written, as a C string; ends the log. */
static struct str sink_close(struct sink *sink)
{
    ssize_t got;

    close(sink->fds[1]);
    sink->len = 0;
    while ((got = read(sink->fds[0], sink->text + sink->len,
                       sizeof sink->text - 1 - sink->len)) > 0)
        sink->len += (size_t)got;
    close(sink->fds[0]);
    sink->text[sink->len] = '\0';
    return str_span(sink->text, sink->len);
}

/* Exactly one line, and it is a JSON object. */
static struct str assert_one_object(struct str text)
{
    struct str object;

    assert_true(text.len > 0 && text.data[text.len - 1] == '\n');
    assert_ptr_equal(memchr(text.data, '\n', text.len), text.data + text.len - 1);
    assert_int_equal(json_check(text, &object, NULL), 0);
    assert_int_equal(json_kind(object), JSON_OBJECT);
    return object;
}

static void a_pipe_gets_json_lines_with_time_level_and_event(void **state)
{
    struct sink sink;
    struct str object;
    int64_t number, time_us;

    (void)state;
    sink_open(&sink, LOG_DEBUG);
    assert_true(sink.log.json);
    LOG(&sink.log, LOG_WARN, "task.lost", KC("task", "a\"b\n"), KI("lease", -7), KC("none", NULL));
    object = assert_one_object(sink_close(&sink));
    assert_true(str_is(json_get(object, STR("level")), "\"warn\""));
    assert_true(str_is(json_get(object, STR("event")), "\"task.lost\""));
    assert_true(str_is(json_get(object, STR("task")), "\"a\\\"b\\n\""));
    assert_true(json_int64(json_get(object, STR("lease")), &number) && number == -7);
    assert_true(clock_parse(json_string(json_get(object, STR("time")), NULL), &time_us));
}

static void events_below_the_level_and_without_a_log_are_not_written(void **state)
{
    struct sink sink;

    (void)state;
    sink_open(&sink, LOG_WARN);
    LOG(&sink.log, LOG_DEBUG, "a");
    LOG(&sink.log, LOG_INFO, "b", KI("n", 1));
    LOG(NULL, LOG_ERROR, "c", KI("n", 1));
    assert_int_equal(sink_close(&sink).len, 0);
    sink_open(&sink, LOG_WARN);
    LOG(&sink.log, LOG_WARN, "d");
    LOG(&sink.log, LOG_ERROR, "e");
    assert_non_null(strstr(sink_close(&sink).data, "\"event\":\"e\"}\n"));
}

static void hostile_bytes_never_break_a_line(void **state)
{
    struct sink sink;
    char bytes[256];

    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    sink_open(&sink, LOG_DEBUG);
    LOG(&sink.log, LOG_INFO, "x", KS("bytes", str_span(bytes, sizeof bytes)));
    assert_one_object(sink_close(&sink));
    sink_open(&sink, LOG_DEBUG);
    sink.log.json = false;
    LOG(&sink.log, LOG_INFO, "x", KS("bytes", str_span(bytes, sizeof bytes)),
        KC("escape", "\xC2\x9B" "31m"), KC("bell", "\a"));
    sink_close(&sink);
    assert_ptr_equal(strchr(sink.text, '\n'), sink.text + sink.len - 1);
    assert_true(str_is_utf8(str_span(sink.text, sink.len)));
    for (size_t i = 0; i + 1 < sink.len; i++)
        assert_true((unsigned char)sink.text[i] >= 0x20);
    assert_null(strstr(sink.text, "\xC2\x9B"));
}

static void long_values_are_cut_at_a_character_and_the_line_stays_valid(void **state)
{
    static char text[5000];

    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        struct sink sink;
        struct str value;

        for (size_t i = 0; i < sizeof text; i++)
            text[i] = i < shift ? 'a' : "\xE2\x82\xAC"[(i - shift) % 3];
        sink_open(&sink, LOG_DEBUG);
        LOG(&sink.log, LOG_INFO, "x", KS("long", str_span(text, sizeof text)), KI("after", 1));
        value = json_get(assert_one_object(sink_close(&sink)), STR("long"));
        assert_true(value.len > 1000 && value.len < 1040);
        assert_null(strstr(sink.text, "\xEF\xBF\xBD"));
        assert_non_null(strstr(sink.text, "\xE2\x80\xA6\",\"after\":1}"));
    }
}

static void too_many_pairs_are_left_out_and_said_so(void **state)
{
    static char text[1024];
    struct log_pair pairs[40];

    (void)state;
    memset(text, 1, sizeof text); /* six bytes each once escaped */
    for (int i = 0; i < 39; i++)
        pairs[i] = KS("key", str_span(text, (size_t)(i + 1) * 20));
    pairs[39] = KI(NULL, 0);
    for (int json = 0; json < 2; json++) {
        struct sink sink;

        sink_open(&sink, LOG_DEBUG);
        sink.log.json = json;
        log_write(&sink.log, LOG_INFO, "x", pairs);
        sink_close(&sink);
        assert_true(sink.len <= 8192);
        assert_ptr_equal(strchr(sink.text, '\n'), sink.text + sink.len - 1);
        assert_non_null(strstr(sink.text, json ? "\",\"more\":true}\n" : "\" more=true\n"));
    }
}

static void text_lines_quote_what_needs_it(void **state)
{
    struct sink sink;

    (void)state;
    sink_open(&sink, LOG_DEBUG);
    sink.log.json = false;
    LOG(&sink.log, LOG_ERROR, "node.start", KC("a", "plain"), KC("b", "two words"), KC("c", ""),
        KI("d", 5), KC("e", "\xC3\xA9"));
    sink_close(&sink);
    assert_string_equal(sink.text + 8,
                        " error node.start a=plain b=\"two words\" c=\"\" d=5 e=\xC3\xA9\n");
    sink_open(&sink, LOG_DEBUG);
    sink.log.json = false;
    sink.log.colour = true;
    LOG(&sink.log, LOG_INFO, "x");
    sink_close(&sink);
    assert_string_equal(sink.text + 8, " \033[32minfo \033[0m x\n");
}

static void a_log_that_cannot_be_written_is_no_error(void **state)
{
    struct log log = {.level = LOG_DEBUG, .json = true, .fd = -1};

    (void)state;
    errno = EAGAIN;
    LOG(&log, LOG_ERROR, "x", KI("n", 1));
    assert_int_equal(errno, EAGAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_gets_json_lines_with_time_level_and_event),
        cmocka_unit_test(events_below_the_level_and_without_a_log_are_not_written),
        cmocka_unit_test(hostile_bytes_never_break_a_line),
        cmocka_unit_test(long_values_are_cut_at_a_character_and_the_line_stays_valid),
        cmocka_unit_test(too_many_pairs_are_left_out_and_said_so),
        cmocka_unit_test(text_lines_quote_what_needs_it),
        cmocka_unit_test(a_log_that_cannot_be_written_is_no_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
