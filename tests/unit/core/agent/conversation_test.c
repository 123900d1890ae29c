/* C9, C3: what comes next in a conversation, and that a checkpoint is enough to continue it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/agent/conversation.h"
#include "base/json.h"

static struct tool_call call(const char *id, const char *name, const char *arguments)
{
    return (struct tool_call){str_of(id), str_of(name), str_of(arguments)};
}

static void answer(struct conversation *talk, struct tool_call *calls, uint32_t count,
                   const char *text)
{
    struct model_answer said = {.content = str_of(text), .calls = calls, .calls_count = count};
    struct err err = {0};

    assert_int_equal(conversation_add_answer(talk, &said, &err), 0);
}

static void say(struct conversation *talk, const char *role, const char *text)
{
    struct err err = {0};

    assert_int_equal(conversation_add(talk, role, str_of(text), &err), 0);
}

static void result(struct conversation *talk, uint32_t index, const char *text)
{
    struct err err = {0};

    assert_int_equal(conversation_add_result(talk, index, str_of(text), &err), 0);
}

/* What a worker finds after a crash must lead to the same next act. */
static enum conversation_next next_of(const struct conversation *talk)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    BUF_AUTO struct buf state = BUF_INIT(1 << 20), again = BUF_INIT(1 << 20);
    struct conversation loaded;
    struct err err = {0};

    conversation_write(talk, &state);
    conversation_init(&loaded, &arena);
    assert_int_equal(conversation_load(&loaded, buf_view(&state), &err), 0);
    conversation_write(&loaded, &again);
    assert_true(str_eq(buf_view(&state), buf_view(&again)));
    assert_int_equal(conversation_next(&loaded), conversation_next(talk));
    return conversation_next(talk);
}

static void what_comes_next_follows_from_the_last_answer(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct tool_call two[] = {call("a", "search", "{}"), call("b", FINAL_ANSWER, "{}")};
    struct conversation talk;

    (void)state;
    conversation_init(&talk, &arena);
    say(&talk, "system", "s");
    say(&talk, "user", "u");
    assert_int_equal(next_of(&talk), NEXT_MODEL);
    answer(&talk, NULL, 0, "just text");
    assert_int_equal(next_of(&talk), NEXT_NUDGE);
    talk.nudged = true;
    say(&talk, "user", "use a tool");
    assert_int_equal(next_of(&talk), NEXT_MODEL);
    answer(&talk, NULL, 0, "text again");
    assert_int_equal(next_of(&talk), NEXT_TEXT_ENDS);
    answer(&talk, two, 2, NULL); /* a tool call: the next text is asked about again */
    assert_false(talk.nudged);
    assert_int_equal(next_of(&talk), NEXT_TOOLS);
    assert_int_equal(conversation_final(&talk), 1);
    result(&talk, 0, "found");
    assert_int_equal(next_of(&talk), NEXT_FINAL);
    result(&talk, 1, "Noted.");
    assert_int_equal(next_of(&talk), NEXT_MODEL);
}

static void a_checkpoint_knows_which_calls_may_have_happened(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0), other = ARENA_INIT(0);
    BUF_AUTO struct buf out = BUF_INIT(1 << 20);
    struct tool_call three[] = {call("a", "x", "{}"), call("b", "x", "{}"), call("c", "x", "{}")};
    struct conversation talk, loaded;
    struct err err = {0};

    (void)state;
    conversation_init(&talk, &arena);
    say(&talk, "user", "u");
    answer(&talk, three, 3, NULL);
    talk.calls[0].begun = talk.calls[1].begun = true;
    result(&talk, 0, "done");
    talk.usage = (struct agent_usage){2, 30, 4, 5000, 600};
    talk.raised = (struct agent_budget){7, 8, 9, 10};
    talk.step = 3;
    conversation_write(&talk, &out);
    conversation_init(&loaded, &other);
    assert_int_equal(conversation_load(&loaded, buf_view(&out), &err), 0);
    assert_true(loaded.calls[0].has_result);
    assert_true(loaded.calls[1].begun && !loaded.calls[1].has_result);
    assert_false(loaded.calls[2].begun);
    assert_int_equal(loaded.usage.cost, 5000);
    assert_int_equal(loaded.raised.time_ms, 10);
    assert_int_equal(loaded.step, 3);
}

static void what_is_no_conversation_is_refused(void **state)
{
    static const char *const states[] = {
        "", "7", "{}", "{\"conversation\":2,\"messages\":[]}", "{\"conversation\":1}",
        "{\"conversation\":1,\"messages\":[7]}",
        "{\"conversation\":1,\"messages\":[{\"role\":\"king\",\"content\":\"x\"}]}",
        "{\"conversation\":1,\"messages\":[{\"role\":\"assistant\"}]}"};

    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct conversation talk;
        struct err err = {0};

        conversation_init(&talk, &arena);
        assert_int_equal(conversation_load(&talk, str_of(states[i]), &err), -ERR_INVALID);
    }
}

static void old_results_make_room_and_new_ones_stay(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    char text[1001];
    struct conversation talk;
    struct err err = {0};

    (void)state;
    memset(text, 'x', 1000);
    text[1000] = '\0';
    conversation_init(&talk, &arena);
    say(&talk, "user", "the task");
    for (int i = 0; i < 10; i++) {
        struct tool_call one = call("a", "x", "{}");

        answer(&talk, &one, 1, NULL);
        result(&talk, 0, text);
    }
    assert_int_equal(conversation_trim(&talk, 8000, &err), 0);
    assert_true(talk.bytes <= 8000);
    assert_true(str_eq(json_get(talk.messages[0], STR("content")), STR("\"the task\"")));
    assert_null(memmem(talk.messages[2].data, talk.messages[2].len, "xxx", 3));
    assert_non_null(memmem(talk.messages[20].data, talk.messages[20].len, "xxx", 3));
    assert_int_equal(conversation_trim(&talk, 1000, &err), -ERR_TOO_LARGE);
}

static void a_final_answer_needs_both_of_its_parts(void **state)
{
    static const struct {
        const char *arguments, *why;
    } cases[] = {{"{\"answer\":\"a\",\"taskFinished\":true}", NULL},
                 {"{\"answer\":{\"x\":1},\"taskFinished\":false}", NULL},
                 {"{\"answer\":\"a\"}", "taskFinished"},
                 {"{\"answer\":\"a\",\"taskFinished\":\"yes\"}", "taskFinished"},
                 {"{\"taskFinished\":true}", "answer"},
                 {"answer: a", "no JSON object"},
                 {"[]", "no JSON object"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct tool_call one = call("a", FINAL_ANSWER, cases[i].arguments);
        struct str said;
        bool finished;
        struct err err = {0};
        int rc = conversation_final_read(&one, &arena, &said, &finished, &err);

        assert_int_equal(rc, cases[i].why ? -ERR_INVALID : 0);
        if (cases[i].why)
            assert_non_null(strstr(err.text, cases[i].why));
    }
}

static void an_answer_of_a_person_counts_once(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct conversation talk;

    (void)state;
    conversation_init(&talk, &arena);
    talk.warned = true;
    assert_int_equal(conversation_resume(&talk, STR_NONE), RESUME_NONE);
    assert_int_equal(conversation_resume(&talk, STR("{\"event\":5,\"decision\":\"skip\"}")),
                     RESUME_SKIP);
    assert_int_equal(conversation_resume(&talk, STR("{\"event\":5,\"decision\":\"skip\"}")),
                     RESUME_NONE);
    assert_true(talk.warned);
    assert_int_equal(conversation_resume(
        &talk, STR("{\"event\":9,\"budget\":{\"calls\":40,\"cost\":0.5,\"time\":\"2m\"}}")),
        RESUME_NONE);
    assert_int_equal(talk.raised.calls, 40);
    assert_int_equal(talk.raised.tokens, 0);
    assert_int_equal(talk.raised.cost, 500000);
    assert_int_equal(talk.raised.time_ms, 120000);
    assert_false(talk.warned); /* the end is far again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_next_follows_from_the_last_answer),
        cmocka_unit_test(a_checkpoint_knows_which_calls_may_have_happened),
        cmocka_unit_test(what_is_no_conversation_is_refused),
        cmocka_unit_test(old_results_make_room_and_new_ones_stay),
        cmocka_unit_test(a_final_answer_needs_both_of_its_parts),
        cmocka_unit_test(an_answer_of_a_person_counts_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
