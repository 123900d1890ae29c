/* What people change on a task (core/spec/task_change): which texts are taken, what differs then,
 * and how an event tells it (A10). */
#include "core/spec/task_change.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/json.h"
#include "core/bounds.h"
#include "core/task/task_fields.h"

#define NOTE 0 /* its row in task_edits */

static void texts_are_checked_by_the_row_of_their_field(void **state)
{
    static char bytes[BOUND_EDIT_BYTES + 1];
    static const char *const wrong[] = {"two\nlines", "\x7f", "\xc2\x85"};
    struct task_change change = {.set = 0};
    struct err err = {0};

    (void)state;
    assert_string_equal(task_edits[NOTE].name, "note");
    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(change_add(&change, NOTE, str_of(wrong[i]), &err), -ERR_INVALID);
    assert_int_equal(change_add(&change, NOTE, str_span(bytes, sizeof bytes), &err), -ERR_INVALID);
    assert_string_equal(err.field, "note");
    assert_int_equal(change.set, 0);
    assert_int_equal(change_add(&change, NOTE, str_span(bytes, sizeof bytes - 1), &err), 0);
    assert_int_equal(change.about.note.len, BOUND_EDIT_BYTES);
    assert_int_equal(change_add(&change, NOTE, STR(""), &err), 0);
    assert_null(change.about.note.data);
    assert_int_equal(change.set, 1U << NOTE);
}

static void only_what_is_set_and_differs_is_changed(void **state)
{
    struct task_about about = {.metadata = STR("{}"), .note = STR("was")};
    struct task_change change = {.about.note = STR("is"), .set = 0};

    (void)state;
    assert_int_equal(change_apply(&change, &about), 0);
    assert_true(str_is(about.note, "was"));
    change.set = 1U << NOTE;
    assert_int_equal(change_apply(&change, &about), 1U << NOTE);
    assert_true(str_is(about.note, "is") && str_is(about.metadata, "{}"));
    assert_int_equal(change_apply(&change, &about), 0);
    assert_int_equal(change_given(&about), 1U << NOTE);
    change.about.note = STR_NONE;
    assert_int_equal(change_apply(&change, &about), 1U << NOTE);
    assert_int_equal(change_given(&about), 0);
    assert_int_equal(change_apply(&change, &about), 0);
}

static void an_event_tells_what_was_set_and_null_for_what_was_taken_away(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct task_about about = {.metadata = STR("{}"), .note = STR("a \"b\"")};
    char worst[BOUND_EDIT_BYTES];
    struct str text;

    (void)state;
    text = change_tell(STR_NONE, &about, 1U << NOTE, &arena);
    assert_true(str_is(text, "{\"note\":\"a \\\"b\\\"\"}"));
    text = change_tell(STR("{\"priority\":1}"), &about, 1U << NOTE, &arena);
    assert_true(str_is(text, "{\"priority\":1,\"note\":\"a \\\"b\\\"\"}"));
    assert_true(str_is(change_tell(STR_NONE, &about, 0, &arena), "{}"));
    memset(worst, '"', sizeof worst);
    about.note = str_span(worst, sizeof worst);
    text = change_tell(STR_NONE, &about, 1U << NOTE, &arena);
    assert_true(str_eq(json_string(json_get(text, STR("note")), &arena), about.note));
    about.note = STR_NONE;
    assert_true(str_is(change_tell(STR_NONE, &about, 1U << NOTE, &arena), "{\"note\":null}"));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_checked_by_the_row_of_their_field),
        cmocka_unit_test(only_what_is_set_and_differs_is_changed),
        cmocka_unit_test(an_event_tells_what_was_set_and_null_for_what_was_taken_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
