/* A15: which rows of an inbox one look reads, the note of those that became tasks, and what is
 * written into damaged ones. */
#include "core/inbox/inbox_row.h"

#include "core/bounds.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MIB ((int64_t)1024 * 1024)

static void one_look_reads_what_fits(void **state)
{
    struct inbox_size sizes[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        sizes[i] = (struct inbox_size){i, 1, MIB - 1, 0};
    assert_int_equal(inbox_fit(sizes, 20), 16);
    assert_int_equal(inbox_fit(sizes, 3), 3);
    assert_int_equal(inbox_fit(sizes, 0), 0);
    sizes[0].payload_bytes = 64 * MIB; /* is not read, so that it takes no room */
    assert_int_equal(inbox_fit(sizes, 20), 17);
}

static void rows_beyond_a_bound_are_not_read(void **state)
{
    static const struct inbox_size good = {1, 10, BOUND_PAYLOAD_BYTES, INBOX_OPTIONS_BYTES};
    static const struct inbox_size bad[] = {{1, 10, BOUND_PAYLOAD_BYTES + 1, 2},
                                            {1, 10, 2, INBOX_OPTIONS_BYTES + 1},
                                            {1, INBOX_TYPE_BYTES + 1, 2, 2}};

    (void)state;
    assert_null(inbox_size_fault(&good));
    for (size_t i = 0; i < 3; i++)
        assert_non_null(inbox_size_fault(&bad[i]));
}

static void the_note_comes_back_as_it_was_written(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    BUF_AUTO struct buf note = BUF_INIT(4096);
    struct inbox_row rows[] = {
        {.id = INT64_MAX, .created_at = STR("2026-01-02 \"\\\n"), .verdict = INBOX_TAKEN,
         .task_id = {{1, 2, 3}}},
        {.id = 2, .verdict = INBOX_DAMAGED, .error = STR("no")},
        {.id = -3, .created_at = STR(""), .verdict = INBOX_TAKEN, .task_id = {{9}}},
        {.id = 4, .verdict = INBOX_WAITS}};
    struct inbox_row *read;
    struct err err = {0};
    int64_t session;
    uint32_t count;

    (void)state;
    inbox_note_write(&note, 77, rows, 4);
    assert_int_equal(inbox_note_read(buf_view(&note), &arena, &session, &read, &count, &err), 0);
    assert_int_equal(session, 77);
    assert_int_equal(count, 2);
    assert_int_equal(read[0].id, INT64_MAX);
    assert_true(str_eq(read[0].created_at, rows[0].created_at));
    assert_true(uuid_eq(&read[0].task_id, &rows[0].task_id));
    assert_int_equal(read[1].id, -3);
    assert_int_equal(read[1].verdict, INBOX_TAKEN);
    assert_int_equal(inbox_note_read(STR_NONE, &arena, &session, &read, &count, &err), 0);
    assert_int_equal(session + count, 0);
}

static void a_damaged_note_is_an_error(void **state)
{
    static const char *const notes[] = {"", "{", "{}", "[]", "{\"session\":1,\"rows\":[[1]]}",
                                        "{\"session\":1,\"rows\":[[1,\"\",\"x\"]]}",
                                        "{\"session\":\"1\",\"rows\":[]}"};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct inbox_row *rows;
    int64_t session;
    uint32_t count;

    (void)state;
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        struct err err = {0};

        assert_true(inbox_note_read(str_of(notes[i]), &arena, &session, &rows, &count, &err) < 0);
        assert_int_not_equal(err.code, ERR_NONE);
    }
}

static void errors_in_rows_are_printable_ascii(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    char text[2 * INBOX_ERROR_BYTES];
    struct str kept = inbox_error_text("'gr\xc3\xb6\xc3\x9f" "er'\n\x01", &arena);

    (void)state;
    assert_true(str_is(kept, "'gr????er'??"));
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(inbox_error_text(text, &arena).len, INBOX_ERROR_BYTES);
}

static void a_table_has_a_plain_name(void **state)
{
    (void)state;
    assert_true(inbox_table_valid(STR("perdura_inbox"), false));
    assert_true(inbox_table_valid(STR("App.Box_2"), true));
    assert_false(inbox_table_valid(STR("app.box"), false));
    assert_false(inbox_table_valid(STR("a.b.c"), true));
    assert_false(inbox_table_valid(STR(""), true));
    assert_false(inbox_table_valid(STR("a."), true));
    assert_false(inbox_table_valid(STR("2box"), true));
    assert_false(inbox_table_valid(STR("box\"; DROP TABLE x; --"), true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_look_reads_what_fits),
        cmocka_unit_test(rows_beyond_a_bound_are_not_read),
        cmocka_unit_test(the_note_comes_back_as_it_was_written),
        cmocka_unit_test(a_damaged_note_is_an_error),
        cmocka_unit_test(errors_in_rows_are_printable_ascii),
        cmocka_unit_test(a_table_has_a_plain_name)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
