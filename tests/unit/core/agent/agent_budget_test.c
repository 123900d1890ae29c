/* C9: budgets of agents in calls, tokens, money and time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/agent/budget.h"

#define TRILLION INT64_C(1000000000000)

static void a_budget_warns_at_four_fifths_and_ends_at_all_of_it(void **state)
{
    static const struct {
        struct agent_budget budget;
        struct agent_usage usage;
        enum budget_verdict verdict;
        const char *what;
    } cases[] = {
        {{0, 0, 0, 0}, {1000000, 1000000, 5, TRILLION, 99}, BUDGET_FINE, ""},
        {{.calls = 20}, {.calls = 15}, BUDGET_FINE, ""},
        {{.calls = 20}, {.calls = 16}, BUDGET_NEARLY, "calls"},
        {{.calls = 20}, {.calls = 19}, BUDGET_NEARLY, "calls"},
        {{.calls = 20}, {.calls = 20}, BUDGET_USED_UP, "calls"},
        {{.calls = 20}, {.calls = 21}, BUDGET_USED_UP, "calls"},
        {{.calls = 3}, {.calls = 1}, BUDGET_FINE, ""},
        {{.calls = 3}, {.calls = 2}, BUDGET_NEARLY, "calls"}, /* the last one */
        {{.calls = 1}, {.calls = 0}, BUDGET_FINE, ""},
        {{.calls = 1}, {.calls = 1}, BUDGET_USED_UP, "calls"},
        {{.tokens = 1000}, {.input_tokens = 700, .output_tokens = 99}, BUDGET_FINE, ""},
        {{.tokens = 1000}, {.input_tokens = 700, .output_tokens = 100}, BUDGET_NEARLY, "tokens"},
        {{.tokens = 1000}, {.input_tokens = 900, .output_tokens = 100}, BUDGET_USED_UP, "tokens"},
        {{.cost = 500000}, {.cost = TRILLION * 2 / 5 - 1}, BUDGET_FINE, ""},
        {{.cost = 500000}, {.cost = TRILLION * 2 / 5}, BUDGET_NEARLY, "cost"},
        {{.cost = 500000}, {.cost = TRILLION / 2}, BUDGET_USED_UP, "cost"},
        {{.time_ms = 600000}, {.time_ms = 480000}, BUDGET_NEARLY, "time"},
        {{.calls = 10, .tokens = 10}, {.calls = 9, .input_tokens = 10}, BUDGET_USED_UP, "tokens"},
        {{.tokens = INT64_MAX}, {.input_tokens = INT64_MAX, .output_tokens = INT64_MAX},
         BUDGET_USED_UP, "tokens"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *what;

        assert_int_equal(budget_judge(&cases[i].budget, &cases[i].usage, &what),
                         cases[i].verdict);
        assert_string_equal(what, cases[i].what);
    }
}

static void a_call_costs_what_its_tokens_cost(void **state)
{
    const struct model_rule model = {.price_input = 150000, .price_output = 600000};
    struct agent_usage usage = {0};

    (void)state;
    usage_add_call(&usage, &model, 1000, 100);
    usage_add_call(&usage, &model, -5, 1);
    assert_int_equal(usage.calls, 2);
    assert_int_equal(usage.input_tokens, 1000);
    assert_int_equal(usage.output_tokens, 101);
    assert_int_equal(usage.cost, 1000 * 150000 + 101 * 600000); /* 0.15 and 0.60 per million */
    usage_add_call(&usage, &model, INT64_MAX, INT64_MAX);
    assert_int_equal(usage.cost, INT64_MAX);
    assert_int_equal(usage_tokens(&usage), INT64_MAX);
}

static void raised_limits_take_the_place_of_configured_ones(void **state)
{
    const struct agent_budget budget = {10, 1000, 5, 60000}, raised = {20, 0, 7, 0};
    struct agent_budget both = budget_with(&budget, &raised);

    (void)state;
    assert_int_equal(both.calls, 20);
    assert_int_equal(both.tokens, 1000);
    assert_int_equal(both.cost, 7);
    assert_int_equal(both.time_ms, 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_warns_at_four_fifths_and_ends_at_all_of_it),
        cmocka_unit_test(a_call_costs_what_its_tokens_cost),
        cmocka_unit_test(raised_limits_take_the_place_of_configured_ones)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
