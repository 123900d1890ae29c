/* Arrays of tasks and what they wait for (C4): bounds, refs, duplicates, and cycles that are
 * refused with their path (F-H11) without deep recursion. */
#include "core/spec/spec.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/json.h"
#include "core/bounds.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define ID_A "\"01890a5d-ac96-774b-bcce-b302099a8057\""

struct parsed {
    struct arena arena;
    struct task_input *inputs;
    uint32_t count;
    bool is_array;
    struct err err;
    int rc;
};

static struct parsed parse(struct str text)
{
    struct parsed parsed = {.arena = ARENA_INIT(0)};
    struct str checked;

    if (json_check(text, &checked, &parsed.err) < 0)
        fail_msg("%s", parsed.err.text);
    parsed.rc = spec_parse_all(checked, NULL, &parsed.arena, &parsed.inputs, &parsed.count,
                               &parsed.is_array, &parsed.err);
    return parsed;
}

static void assert_refused(const char *text, enum err_code code, const char *field,
                           const char *says)
{
    struct parsed parsed = parse(str_of(text));

    if (parsed.rc != -(int)code || strcmp(parsed.err.field, field) != 0 ||
        !strstr(parsed.err.text, says))
        fail_msg("%s: %d, '%s', %s", text, parsed.rc, parsed.err.field, parsed.err.text);
    arena_deinit(&parsed.arena);
}

static void one_task_is_no_array(void **state)
{
    struct parsed one = parse(STR("{\"type\":\"t\"}"));
    struct parsed array = parse(STR(" [ {\"type\":\"t\"} , {\"type\":\"u\"} ] "));

    (void)state;
    assert_int_equal(one.rc, 0);
    assert_int_equal(one.count, 1);
    assert_false(one.is_array);
    assert_int_equal(array.rc, 0);
    assert_int_equal(array.count, 2);
    assert_true(array.is_array);
    assert_true(str_is(array.inputs[1].spec.type, "u"));
    arena_deinit(&one.arena);
    arena_deinit(&array.arena);
}

static void refs_are_linked_to_their_elements(void **state)
{
    struct parsed parsed = parse(STR(
        "[{\"type\":\"t\",\"depends_on\":[{\"ref\":\"c\"},{\"ref\":\"b\",\"type\":\"failure\"}]},"
        "{\"type\":\"t\",\"ref\":\"b\",\"depends_on\":[" ID_A ",{\"ref\":\"c\"}]},"
        "{\"type\":\"t\",\"ref\":\"\\u0063\"}]"));

    (void)state;
    if (parsed.rc < 0)
        fail_msg("%s", parsed.err.text);
    assert_int_equal(parsed.inputs[0].depends_on_count, 2);
    assert_int_equal(parsed.inputs[0].depends_on[0].element, 2);
    assert_int_equal(parsed.inputs[0].depends_on[0].kind, DEPENDENCY_SUCCESS);
    assert_int_equal(parsed.inputs[0].depends_on[1].element, 1);
    assert_int_equal(parsed.inputs[0].depends_on[1].kind, DEPENDENCY_FAILURE);
    assert_false(uuid_is_nil(&parsed.inputs[1].depends_on[0].task_id));
    assert_null(parsed.inputs[1].depends_on[0].ref.data);
    assert_true(uuid_is_nil(&parsed.inputs[1].depends_on[1].task_id));
    assert_null(parsed.inputs[0].spec.workflow_id.data);
    arena_deinit(&parsed.arena);
}

static void wrong_arrays_are_refused_with_what_is_wrong(void **state)
{
    (void)state;
    assert_refused("[]", ERR_INVALID, "", "empty");
    assert_refused("5", ERR_INVALID, "", "object");
    assert_refused("null", ERR_INVALID, "", "object");
    assert_refused("[{\"type\":\"t\"},7]", ERR_INVALID, "", "element 1");
    assert_refused("[{\"type\":\"t\"},{}]", ERR_INVALID, "type", "element 1");
    assert_refused("[{\"type\":\"t\",\"ref\":\"a\"},{\"type\":\"t\",\"ref\":\"a\"}]", ERR_INVALID,
                   "ref", "\"a\"");
    assert_refused("[{\"type\":\"t\",\"depends_on\":[{\"ref\":\"missing\"}]}]", ERR_INVALID,
                   "depends_on", "\"missing\"");
    assert_refused("[{\"type\":\"t\",\"ref\":\"b\"},"
                   "{\"type\":\"t\",\"depends_on\":[{\"ref\":\"b\"},"
                   "{\"ref\":\"b\",\"type\":\"failure\"}]}]",
                   ERR_INVALID, "depends_on", "\"b\" twice");
    assert_refused("[{\"type\":\"t\",\"depends_on\":[" ID_A "," ID_A "]}]", ERR_INVALID,
                   "depends_on", "01890a5d-ac96-774b-bcce-b302099a8057");
}

static void cycles_are_refused_with_their_path(void **state) /* F-H11 */
{
    (void)state;
    assert_refused("{\"type\":\"t\",\"ref\":\"a\",\"depends_on\":[{\"ref\":\"a\"}]}", ERR_INVALID,
                   "depends_on", "a -> a");
    assert_refused("[{\"type\":\"t\",\"ref\":\"a\",\"depends_on\":[{\"ref\":\"b\"}]},"
                   "{\"type\":\"t\",\"ref\":\"b\",\"depends_on\":[{\"ref\":\"a\"}]}]",
                   ERR_INVALID, "depends_on", "cycle: a -> b -> a");
    assert_refused("[{\"type\":\"t\",\"depends_on\":[{\"ref\":\"x\"}]},"
                   "{\"type\":\"t\",\"ref\":\"x\",\"depends_on\":[{\"ref\":\"y\"}]},"
                   "{\"type\":\"t\",\"ref\":\"y\",\"depends_on\":[{\"ref\":\"end\"},"
                   "{\"ref\":\"z\"}]},{\"type\":\"t\",\"ref\":\"end\"},"
                   "{\"type\":\"t\",\"ref\":\"z\",\"depends_on\":[{\"ref\":\"x\"}]}]",
                   ERR_INVALID, "depends_on", "cycle: x -> y -> z -> x");
}

static void diamond_is_no_cycle(void **state)
{
    struct parsed parsed = parse(STR(
        "[{\"type\":\"t\",\"ref\":\"top\",\"depends_on\":[{\"ref\":\"l\"},{\"ref\":\"r\"}]},"
        "{\"type\":\"t\",\"ref\":\"l\",\"depends_on\":[{\"ref\":\"end\"}]},"
        "{\"type\":\"t\",\"ref\":\"r\",\"depends_on\":[{\"ref\":\"end\"}]},"
        "{\"type\":\"t\",\"ref\":\"end\"}]"));

    (void)state;
    assert_int_equal(parsed.rc, 0);
    arena_deinit(&parsed.arena);
}

/* count elements, each waiting for the next; the last for the element `back`, or for none. */
static struct parsed parse_chain(uint32_t count, int64_t back, const char *prefix)
{
    struct buf text = BUF_INIT(64 << 20);
    struct parsed parsed;

    buf_byte(&text, '[');
    for (uint32_t i = 0; i < count; i++) {
        int64_t next = i + 1 < count ? (int64_t)i + 1 : back;

        buf_format(&text, "%s{\"type\":\"t\",\"ref\":\"%s%u\"", i ? "," : "", prefix, i);
        if (next >= 0)
            buf_format(&text, ",\"depends_on\":[{\"ref\":\"%s%lld\"}]", prefix, (long long)next);
        buf_byte(&text, '}');
    }
    buf_byte(&text, ']');
    assert_false(text.failed);
    parsed = parse(buf_view(&text));
    buf_deinit(&text); /* only texts of the inputs point into it */
    return parsed;
}

static void chain_as_long_as_the_array_is_walked_without_recursion(void **state) /* F-H11 */
{
    struct parsed chain = parse_chain(BOUND_ARRAY, -1, "n");
    struct parsed ring = parse_chain(BOUND_ARRAY, 0, "n");
    struct parsed tail = parse_chain(BOUND_ARRAY, BOUND_ARRAY - 2, "n");

    (void)state;
    assert_int_equal(chain.rc, 0);
    assert_int_equal(chain.inputs[0].depends_on[0].element, 1);
    assert_int_equal(ring.rc, -ERR_INVALID);
    assert_non_null(strstr(ring.err.text, "n0 -> n1 -> n2 -> "));
    assert_non_null(strstr(ring.err.text, " -> ... -> n0"));
    assert_int_equal(tail.rc, -ERR_INVALID);
    assert_non_null(strstr(tail.err.text, "cycle: n9998 -> n9999 -> n9998"));
    arena_deinit(&chain.arena);
    arena_deinit(&ring.arena);
    arena_deinit(&tail.arena);
}

static void path_of_long_names_still_fits_the_sentence(void **state)
{
    char prefix[196];
    struct parsed ring;

    (void)state;
    memset(prefix, 'p', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    ring = parse_chain(5, 0, prefix);
    assert_int_equal(ring.rc, -ERR_INVALID);
    assert_string_equal(ring.err.text + strlen(ring.err.text) - 2, "pp");
    arena_deinit(&ring.arena);
}

static void array_beyond_its_bound_is_too_large(void **state)
{
    struct parsed parsed = parse_chain(BOUND_ARRAY + 1, -1, "n");

    (void)state;
    assert_int_equal(parsed.rc, -ERR_TOO_LARGE);
    arena_deinit(&parsed.arena);
}

/* One task that depends on `count` ids, the last of them equal to the first if asked for. */
static struct parsed parse_parents(uint32_t count, bool again)
{
    struct buf text = BUF_INIT(1 << 20);
    struct parsed parsed;

    buf_text(&text, "{\"type\":\"t\",\"depends_on\":[");
    for (uint32_t i = 0; i < count; i++)
        buf_format(&text, "%s\"01890a5d-ac96-774b-bcce-%012u\"", i ? "," : "",
                   again && i + 1 == count ? 0 : i);
    buf_text(&text, "]}");
    parsed = parse(buf_view(&text));
    buf_deinit(&text);
    return parsed;
}

static void task_may_have_a_thousand_different_parents(void **state)
{
    static const struct {
        uint32_t count;
        bool again;
        int rc;
    } rows[] = {
        {BOUND_DEPENDS_ON, false, 0},
        {BOUND_DEPENDS_ON, true, -ERR_INVALID},
        {BOUND_DEPENDS_ON + 1, false, -ERR_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct parsed parsed = parse_parents(rows[i].count, rows[i].again);

        assert_int_equal(parsed.rc, rows[i].rc);
        if (rows[i].rc < 0)
            assert_string_equal(parsed.err.field, "depends_on");
        arena_deinit(&parsed.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_task_is_no_array),
        cmocka_unit_test(refs_are_linked_to_their_elements),
        cmocka_unit_test(wrong_arrays_are_refused_with_what_is_wrong),
        cmocka_unit_test(cycles_are_refused_with_their_path),
        cmocka_unit_test(diamond_is_no_cycle),
        cmocka_unit_test(chain_as_long_as_the_array_is_walked_without_recursion),
        cmocka_unit_test(path_of_long_names_still_fits_the_sentence),
        cmocka_unit_test(array_beyond_its_bound_is_too_large),
        cmocka_unit_test(task_may_have_a_thousand_different_parents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
