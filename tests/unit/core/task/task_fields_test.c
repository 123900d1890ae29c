/* The list of fields and the document of the API say the same: what a request may set, within which
 * bounds, and what an answer shows (F-H4). */
#include "core/task/task_fields.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/embedded.h"
#include "base/json.h"

#include <stdio.h>

static struct str schemas(void)
{
    const struct embedded *file = embedded_find("server/assets/openapi.json");

    assert_non_null(file);
    return json_get(json_get(str_span(file->data, file->len), STR("components")), STR("schemas"));
}

static struct str properties(const char *schema)
{
    return json_get(json_get(schemas(), str_of(schema)), STR("properties"));
}

/* Through {"$ref": …} and {"oneOf": [{…}, {"type": "null"}]} to what says the bounds. */
static struct str resolve(struct str property)
{
    static const char before[] = "\"#/components/schemas/";

    for (;;) {
        struct str ref = json_get(property, STR("$ref"));
        struct str choice = json_get(property, STR("oneOf"));
        struct json_iter iter;

        if (ref.data) {
            size_t skip = sizeof before - 1;

            assert_memory_equal(ref.data, before, skip);
            property = json_get(schemas(), str_span(ref.data + skip, ref.len - skip - 1));
        } else if (choice.data) {
            json_begin(choice, &iter);
            assert_true(json_next_element(&iter, &property));
        } else {
            return property;
        }
    }
}

static void says(struct str property, const char *word, int64_t value, const char *name)
{
    int64_t found = -1;

    if (!json_int64(json_get(property, str_of(word)), &found) || found != value)
        fail_msg("\"%s\" of the document has %s %lld, the list of fields %lld", name, word,
                 (long long)found, (long long)value);
}

enum bound { TEXT_BYTES, NUMBER };

struct asked {
    const char *name;
    enum bound bound;
    int64_t min;
    int64_t max;
};

#define GIVEN(flag) 0
#define ASK_NOT
#define ASK_TEXT(name, path, bytes, flag, value, help) {#name, TEXT_BYTES, 1, bytes},
#define ASK_EDIT ASK_TEXT
#define ASK_COUNT(name, path, given, max, flag, help) {#name, NUMBER, 0, max},
#define ASK_MS(name, path, given, min, flag, help) {#name, NUMBER, min, BOUND_DELAY_MS},
#define ASKED(name, path, kind, flags, empty, words, show, ask) ask

static void every_member_that_a_request_may_set_is_documented_with_its_bounds(void **state)
{
    static const struct asked rows[] = {TASK_FIELDS_ALL(ASKED)};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct str property = json_get(properties("TaskRequest"), str_of(rows[i].name));

        if (!property.data)
            fail_msg("TaskRequest of the document has no \"%s\"", rows[i].name);
        property = resolve(property);
        if (rows[i].bound == TEXT_BYTES) {
            says(property, "x-max-bytes", rows[i].max, rows[i].name);
        } else {
            says(property, "minimum", rows[i].min, rows[i].name);
            says(property, "maximum", rows[i].max, rows[i].name);
        }
    }
}

/* A change of a task, and a task as it was, have what can be edited. */
static void every_text_that_can_be_edited_is_documented_with_its_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; task_edits[i].name; i++) {
        struct str property = json_get(properties("TaskPatch"), str_of(task_edits[i].name));

        if (!property.data || !json_get(properties("TaskPast"), str_of(task_edits[i].name)).data)
            fail_msg("TaskPatch or TaskPast of the document has no \"%s\"", task_edits[i].name);
        says(resolve(property), "x-max-bytes", task_edits[i].bytes_max, task_edits[i].name);
        assert_true(task_edits[i].bytes_max <= BOUND_EDIT_BYTES);
    }
}

/* The names of the fields that answers show, from the list they are expanded from. */
#define NAME_SHOW(name) #name,
#define NAME_SHOW_JSON NAME_SHOW
#define NAME_SHOW_OBJECT NAME_SHOW
#define NAME_SHOW_LIST NAME_SHOW
#define NAME_SHOW_CONTENT NAME_SHOW
#define NAME_SHOW_CONTENT_TEXT NAME_SHOW
#define NAME_SHOW_DATA NAME_SHOW
#define NAME_SHOW_RUN_AT NAME_SHOW
#define NAME_SHOW_QUEUE NAME_SHOW
#define NAME_SHOW_TRACE NAME_SHOW
#define NAME_SHOW_NOT(name)
#define NAME(name, path, kind, flags, empty, words, show, ask) NAME_##show(name)
static const char *const shown[] = {TASK_FIELDS_ALL(NAME)};
#define SHOWN_COUNT (sizeof shown / sizeof shown[0])

static bool is_shown(struct str name)
{
    for (size_t i = 0; i < SHOWN_COUNT; i++)
        if (str_is(name, shown[i]))
            return true;
    return false;
}

static void every_field_that_is_shown_is_documented_and_no_other(void **state)
{
    struct json_iter iter;
    struct json_member member;
    size_t documented = 0;

    (void)state;
    for (size_t i = 0; i < SHOWN_COUNT; i++)
        if (!json_get(properties("Task"), str_of(shown[i])).data)
            fail_msg("Task of the document has no \"%s\"", shown[i]);
    json_begin(properties("Task"), &iter);
    while (json_next_member(&iter, &member)) {
        struct str name = member.key;

        if (str_is(name, "redacted")) /* says that fields were left out */
            continue;
        documented++;
        if (!is_shown(name))
            fail_msg("Task of the document has \"%.*s\", which is not shown", (int)name.len,
                     name.data);
    }
    assert_int_equal(SHOWN_COUNT, documented);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_that_a_request_may_set_is_documented_with_its_bounds),
        cmocka_unit_test(every_text_that_can_be_edited_is_documented_with_its_bounds),
        cmocka_unit_test(every_field_that_is_shown_is_documented_and_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
