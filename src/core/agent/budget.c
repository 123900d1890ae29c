/* Sums and limits of agents. */
#include "core/agent/budget.h"

#define NEARLY_PERCENT 80

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t multiply(int64_t a, int64_t b)
{
    int64_t product;

    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

void usage_add_call(struct agent_usage *usage, const struct model_rule *model,
                    int64_t input_tokens, int64_t output_tokens)
{
    int64_t input = input_tokens > 0 ? input_tokens : 0;
    int64_t output = output_tokens > 0 ? output_tokens : 0;

    usage->calls = add(usage->calls, 1);
    usage->input_tokens = add(usage->input_tokens, input);
    usage->output_tokens = add(usage->output_tokens, output);
    usage->cost = add(usage->cost, add(multiply(input, model->price_input),
                                       multiply(output, model->price_output)));
}

void usage_add(struct agent_usage *usage, const struct agent_usage *more)
{
    usage->calls = add(usage->calls, more->calls);
    usage->input_tokens = add(usage->input_tokens, more->input_tokens);
    usage->output_tokens = add(usage->output_tokens, more->output_tokens);
    usage->cost = add(usage->cost, more->cost);
    usage->time_ms = add(usage->time_ms, more->time_ms);
}

int64_t usage_tokens(const struct agent_usage *usage)
{
    return add(usage->input_tokens, usage->output_tokens);
}

static enum budget_verdict judge_one(int64_t used, int64_t limit)
{
    if (limit <= 0)
        return BUDGET_FINE;
    if (used >= limit)
        return BUDGET_USED_UP;
    /* used / limit >= 80 %, without an overflow */
    return used >= limit - limit / 100 * (100 - NEARLY_PERCENT) -
                       limit % 100 * (100 - NEARLY_PERCENT) / 100
               ? BUDGET_NEARLY : BUDGET_FINE;
}

enum budget_verdict budget_judge(const struct agent_budget *budget,
                                 const struct agent_usage *usage, const char **what)
{
    const struct {
        const char *word;
        int64_t used, limit;
    } parts[] = {{"calls", usage->calls, budget->calls},
                 {"tokens", usage_tokens(usage), budget->tokens},
                 {"cost", usage->cost, multiply(budget->cost, 1000000)},
                 {"time", usage->time_ms, budget->time_ms}};
    enum budget_verdict worst = BUDGET_FINE;

    *what = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        enum budget_verdict verdict = judge_one(parts[i].used, parts[i].limit);

        if (verdict > worst) {
            worst = verdict;
            *what = parts[i].word;
        }
    }
    if (worst == BUDGET_FINE && usage->calls > 0 && budget->calls > 0 &&
        usage->calls + 1 >= budget->calls) {
        *what = "calls";
        return BUDGET_NEARLY;
    }
    return worst;
}

struct agent_budget budget_with(const struct agent_budget *budget,
                                const struct agent_budget *raised)
{
    return (struct agent_budget){raised->calls > 0 ? raised->calls : budget->calls,
                                 raised->tokens > 0 ? raised->tokens : budget->tokens,
                                 raised->cost > 0 ? raised->cost : budget->cost,
                                 raised->time_ms > 0 ? raised->time_ms : budget->time_ms};
}
