/* The words of gRPC (D10): statuses and what they mean for a task, deadlines, paths, frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "core/service/grpc_status.h"

/* F-G8 */
static void what_may_be_better_next_time_is_retried(void **state)
{
    static const enum service_end ends[GRPC_STATUS_COUNT] = {
        SERVICE_DONE,    SERVICE_RETRY, SERVICE_RETRY,   SERVICE_REFUSED, SERVICE_RETRY,
        SERVICE_REFUSED, SERVICE_REFUSED, SERVICE_REFUSED, SERVICE_RETRY,   SERVICE_REFUSED,
        SERVICE_RETRY,   SERVICE_REFUSED, SERVICE_REFUSED, SERVICE_RETRY,   SERVICE_RETRY,
        SERVICE_REFUSED, SERVICE_REFUSED};

    (void)state;
    for (int i = 0; i < GRPC_STATUS_COUNT; i++) {
        struct service_verdict plain = grpc_judge(i, false), waits = grpc_judge(i, true);

        assert_int_equal(plain.end, ends[i]);
        assert_int_equal(waits.end, i == 8 || i == 14 ? SERVICE_WAIT : ends[i]);
        assert_true(plain.end == SERVICE_RETRY || !plain.is_down);
        assert_false(waits.end == SERVICE_WAIT && waits.is_down);
        assert_int_equal(grpc_judge_lookup(i), i == 0   ? SERVICE_FOUND
                                               : i == 5 ? SERVICE_NOT_THERE
                                                        : SERVICE_NOT_KNOWN);
    }
    assert_string_equal(grpc_status_word(14), "UNAVAILABLE");
    assert_string_equal(grpc_status_word(99), "UNKNOWN");
    assert_string_equal(grpc_status_word(-1), "UNKNOWN");
}

static void other_texts_than_a_status_are_unknown(void **state)
{
    (void)state;
    assert_int_equal(grpc_status_read(STR("0")), 0);
    assert_int_equal(grpc_status_read(STR("16")), 16);
    assert_int_equal(grpc_status_read(STR("17")), GRPC_STATUS_UNKNOWN);
    assert_int_equal(grpc_status_read(STR("-1")), GRPC_STATUS_UNKNOWN);
    assert_int_equal(grpc_status_read(STR("")), GRPC_STATUS_UNKNOWN);
    assert_int_equal(grpc_status_read(STR("1x")), GRPC_STATUS_UNKNOWN);
    assert_int_equal(grpc_status_of_http(503), 14);
    assert_int_equal(grpc_status_of_http(404), 12);
    assert_int_equal(grpc_status_of_http(200), GRPC_STATUS_UNKNOWN);
}

static void a_deadline_has_at_most_eight_digits(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{-5, "1m"},           {0, "1m"},          {1, "1m"},
                 {30000, "30000m"},    {99999999, "99999999m"}, {100000000, "100000S"},
                 {INT64_MAX, "99999999S"}};
    char text[GRPC_TIMEOUT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grpc_timeout_write(cases[i].ms, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void a_message_is_decoded_as_far_as_it_is_encoded(void **state)
{
    static const char *const cases[][2] = {{"", ""},           {"plain", "plain"},
                                           {"a%20b%21", "a b!"}, {"%c3%BC", "\xc3\xbc"},
                                           {"%", "%"},         {"%4", "%4"},
                                           {"%zz%41", "%zzA"}, {"100 %", "100 %"}};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(str_is(grpc_message_read(str_of(cases[i][0]), &arena), cases[i][1]));
}

static void a_method_is_a_path_or_a_name_of_the_package(void **state)
{
    static const struct {
        const char *package, *method, *path;
    } cases[] = {{"p.S", "M", "/p.S/M"},     {NULL, "/p.S/M", "/p.S/M"}, {"q.T", "p.S/M", "/p.S/M"},
                 {NULL, "M", NULL},          {"p.S", "", NULL},          {"p.S", NULL, NULL},
                 {"p.S", "PUT /x", NULL},    {"p.S", "a/b/c", NULL},     {"p.S", "/M", "/p.S/M"},
                 {"p.S", "{payload/x}", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        BUF_AUTO struct buf out = BUF_INIT(100);
        struct err err = {0};
        int rc = grpc_path_write(str_of(cases[i].package), str_of(cases[i].method), &out, &err);

        assert_int_equal(rc, cases[i].path ? 0 : -(int)ERR_INVALID);
        assert_true(!cases[i].path || str_is(buf_view(&out), cases[i].path));
    }
}

static void a_message_may_come_in_any_pieces(void **state)
{
    static const uint8_t bytes[] = {0, 0, 0, 0, 3, 'a', 'b', 'c'};

    (void)state;
    for (size_t step = 1; step <= sizeof bytes; step++) {
        BUF_AUTO struct buf message = BUF_INIT(3);
        struct grpc_frame frame = {.left = 0};

        for (size_t at = 0; at < sizeof bytes; at += step) {
            size_t len = sizeof bytes - at < step ? sizeof bytes - at : step;

            assert_false(frame.complete);
            assert_int_equal(grpc_frame_read(&frame, bytes + at, len, &message), GRPC_FRAME_OK);
        }
        assert_true(frame.complete && str_is(buf_view(&message), "abc"));
        assert_int_equal(grpc_frame_read(&frame, bytes, 1, &message), GRPC_FRAME_SECOND);
    }
}

static void a_message_beyond_its_bound_is_refused_by_its_head(void **state)
{
    static const uint8_t large[] = {0, 0, 0, 0, 4}, packed[] = {1, 0, 0, 0, 0};
    BUF_AUTO struct buf message = BUF_INIT(3);
    struct grpc_frame frame = {.left = 0}, other = {.left = 0};

    (void)state;
    assert_int_equal(grpc_frame_read(&frame, large, 5, &message), GRPC_FRAME_TOO_LARGE);
    assert_int_equal(grpc_frame_read(&other, packed, 5, &message), GRPC_FRAME_COMPRESSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_be_better_next_time_is_retried),
        cmocka_unit_test(other_texts_than_a_status_are_unknown),
        cmocka_unit_test(a_deadline_has_at_most_eight_digits),
        cmocka_unit_test(a_message_is_decoded_as_far_as_it_is_encoded),
        cmocka_unit_test(a_method_is_a_path_or_a_name_of_the_package),
        cmocka_unit_test(a_message_may_come_in_any_pieces),
        cmocka_unit_test(a_message_beyond_its_bound_is_refused_by_its_head),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
