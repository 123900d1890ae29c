/* The table of transitions of the data model, written down a second time as words and walked pair
 * by pair; the dependency table (C4); and the words of statuses and their like. */
#include "core/task/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/task/report.h"
#include "core/task/task.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define NEW "new"
#define NOT_ENDED "blocked delayed pending claimed running paused orphaned recovering"
#define ENDED "completed failed dead_letter cancelled partial"

static const struct {
    enum move move;
    const char *from;
    const char *to;
} expected[] = {
    {MOVE_ENQUEUE, NEW, "blocked delayed pending"},
    {MOVE_RELEASE_DEPENDENCY, "blocked", "pending delayed cancelled failed"},
    {MOVE_PROMOTE, "delayed", "pending"},
    {MOVE_POSTPONE, "pending", "delayed blocked"},
    {MOVE_CLAIM, "pending", "claimed"},
    {MOVE_START, "claimed", "running"},
    {MOVE_GIVE_BACK, "claimed running", "pending paused"},
    {MOVE_OUTCOME, "claimed running", "completed partial failed delayed pending dead_letter"},
    {MOVE_WAIT_CHILDREN, "claimed running", "blocked"}, /* without start, which it implies */
    {MOVE_PAUSE, "pending delayed blocked", "paused"},
    {MOVE_RESUME, "paused", "pending blocked delayed"},
    {MOVE_LOSE, "claimed running", "orphaned"},
    {MOVE_RECOVER, "orphaned partial", "recovering"},
    {MOVE_RECOVERED, "recovering", "pending delayed dead_letter failed completed"},
    {MOVE_CANCEL, NOT_ENDED, "cancelled"},
    {MOVE_RETRY, ENDED " orphaned", "pending"},
    {MOVE_NO_HANDLER, "pending", "failed"},
};

/* True when the list of words between single spaces has this one. */
static bool lists(const char *words, enum status status)
{
    const char *word = status == STATUS_NONE ? NEW : status_word(status);
    size_t len = strlen(word);

    for (const char *at = words; (at = strstr(at, word)) != NULL; at += len)
        if ((at == words || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' '))
            return true;
    return false;
}

static void every_pair_is_allowed_or_refused_as_the_data_model_says(void **state)
{
    (void)state;
    assert_int_equal(ROWS(expected), MOVE_COUNT);
    for (size_t i = 0; i < ROWS(expected); i++)
        for (int from = 0; from < STATUS_COUNT; from++)
            for (int to = 0; to < STATUS_COUNT; to++) {
                bool want = lists(expected[i].from, (enum status)from) &&
                            lists(expected[i].to, (enum status)to);

                if (status_allows((enum status)from, (enum status)to, expected[i].move) != want)
                    fail_msg("move %d from %s to %s should be %s", expected[i].move,
                             status_word((enum status)from), status_word((enum status)to),
                             want ? "allowed" : "refused");
            }
}

static void no_move_leads_to_no_status(void **state)
{
    (void)state;
    for (int move = 0; move < MOVE_COUNT; move++)
        for (int from = 0; from < STATUS_COUNT; from++)
            assert_false(status_allows((enum status)from, STATUS_NONE, (enum move)move));
}

static void ended_task_moves_only_by_retry_and_recovery(void **state)
{
    (void)state;
    for (int move = 0; move < MOVE_COUNT; move++)
        for (int from = 0; from < STATUS_COUNT; from++)
            for (int to = 0; to < STATUS_COUNT; to++) {
                if (!status_ended((enum status)from) ||
                    !status_allows((enum status)from, (enum status)to, (enum move)move))
                    continue;
                assert_true(move == MOVE_RETRY ||
                            (move == MOVE_RECOVER && from == STATUS_PARTIAL));
            }
}

static void five_statuses_are_ended_and_two_are_held(void **state)
{
    (void)state;
    for (int i = 0; i < STATUS_COUNT; i++) {
        enum status status = (enum status)i;

        assert_int_equal(status_ended(status), i && lists(ENDED, status));
        assert_int_equal(status_held(status), i && lists("claimed running", status));
    }
}

static void dependency_is_met_as_its_table_says(void **state)
{
    static const struct {
        enum status ended;
        bool success, completion, failure;
    } rows[] = {
        {STATUS_COMPLETED, true, true, false},   {STATUS_FAILED, false, true, true},
        {STATUS_DEAD_LETTER, false, true, true}, {STATUS_PARTIAL, false, true, true},
        {STATUS_CANCELLED, false, true, false},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_int_equal(dependency_met(DEPENDENCY_SUCCESS, rows[i].ended), rows[i].success);
        assert_int_equal(dependency_met(DEPENDENCY_COMPLETION, rows[i].ended), rows[i].completion);
        assert_int_equal(dependency_met(DEPENDENCY_FAILURE, rows[i].ended), rows[i].failure);
    }
}

static void statuses_and_dependency_kinds_are_read_back_from_their_words(void **state)
{
    enum status status;
    enum dependency kind;

    (void)state;
    for (int i = 1; i < STATUS_COUNT; i++) {
        assert_true(status_parse(str_of(status_word((enum status)i)), &status));
        assert_int_equal(status, i);
    }
    assert_false(status_parse(STR(""), &status));
    assert_false(status_parse(STR("Pending"), &status));
    for (int i = 0; i < DEPENDENCY_COUNT; i++) {
        assert_true(dependency_parse(str_of(dependency_word((enum dependency)i)), &kind));
        assert_int_equal(kind, i);
    }
    assert_false(dependency_parse(STR("successful"), &kind));
}

static void words_of_executions_and_choices_are_read_back(void **state)
{
    enum execution_status execution;
    enum unique_until until;
    enum on_unsatisfied what;

    (void)state;
    for (int i = 0; i < EXECUTION_STATUS_COUNT; i++) {
        assert_true(execution_status_parse(
            str_of(execution_status_word((enum execution_status)i)), &execution));
        assert_int_equal(execution, i);
    }
    for (int i = 0; i <= UNIQUE_ENDED; i++) {
        assert_true(unique_until_parse(str_of(unique_until_word((enum unique_until)i)), &until));
        assert_int_equal(until, i);
    }
    for (int i = 0; i <= UNSATISFIED_RUN; i++) {
        assert_true(on_unsatisfied_parse(str_of(on_unsatisfied_word((enum on_unsatisfied)i)),
                                         &what));
        assert_int_equal(what, i);
    }
    assert_false(execution_status_parse(STR("claimed"), &execution));
    assert_false(unique_until_parse(STR_NONE, &until));
    assert_false(on_unsatisfied_parse(STR("skip"), &what));
    assert_string_equal(actor_word(ACTOR_API), "API");
    assert_string_equal(actor_word(ACTOR_RECOVERY), "RECOVERY");
    assert_string_equal(actor_word(ACTOR_USER), "USER");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_is_allowed_or_refused_as_the_data_model_says),
        cmocka_unit_test(no_move_leads_to_no_status),
        cmocka_unit_test(ended_task_moves_only_by_retry_and_recovery),
        cmocka_unit_test(five_statuses_are_ended_and_two_are_held),
        cmocka_unit_test(dependency_is_met_as_its_table_says),
        cmocka_unit_test(statuses_and_dependency_kinds_are_read_back_from_their_words),
        cmocka_unit_test(words_of_executions_and_choices_are_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
