/* What an agent has used, and what that means: nothing, an end that is near, or a stop. Costs are
 * whole numbers (trillionths of the currency), so that a sum never drifts. Pure. */
#ifndef CORE_AGENT_BUDGET_H
#define CORE_AGENT_BUDGET_H

#include "core/agent/agent_rules.h"

struct agent_usage {
    int64_t calls;
    int64_t input_tokens;
    int64_t output_tokens;
    int64_t cost; /* trillionths of the currency */
    int64_t time_ms;
};

enum budget_verdict { BUDGET_FINE, BUDGET_NEARLY, BUDGET_USED_UP };

/* One call more; negative numbers of an API count as 0, sums stop at the largest number. */
void usage_add_call(struct agent_usage *usage, const struct model_rule *model,
                    int64_t input_tokens, int64_t output_tokens);
void usage_add(struct agent_usage *usage, const struct agent_usage *more);
int64_t usage_tokens(const struct agent_usage *usage);

/* *what: the word of the limit that decided ("calls", "tokens", "cost", "time"). The last call that
 * a budget allows is near its end however small the budget is, unless it is the first. */
enum budget_verdict budget_judge(const struct agent_budget *budget,
                                 const struct agent_usage *usage, const char **what);

/* Limits of `raised` that are above 0 take the place of those of the configuration. */
struct agent_budget budget_with(const struct agent_budget *budget,
                                const struct agent_budget *raised);

#endif
