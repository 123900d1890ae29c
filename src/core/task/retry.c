#include "core/task/retry.h"

#include "base/enum_words.h"
static const char *const words[RETRY_POLICY_COUNT] = {"polynomial", "exponential", "linear",
                                                      "fixed"};

ENUM_WORDS(retry_policy, words);

static int64_t factor(enum retry_policy policy, int64_t failures)
{
    int64_t n = failures < 0 ? 0 : failures < INT64_MAX ? failures : INT64_MAX - 1;

    switch (policy) {
    case RETRY_POLYNOMIAL:
        return n >= 1000000 ? INT64_C(1000000000000) : (n + 1) * (n + 1);
    case RETRY_EXPONENTIAL:
        return INT64_C(1) << (n > 40 ? 40 : n);
    case RETRY_LINEAR:
        return n + 1;
    case RETRY_FIXED:
    case RETRY_POLICY_COUNT:
        break;
    }
    return 1;
}

int64_t retry_delay_ms(const struct retry_rule *rule, int64_t failures)
{
    int64_t times = factor(rule->policy, failures);

    if (rule->delay_ms <= 0)
        return 0;
    if (times > rule->max_delay_ms / rule->delay_ms)
        return rule->max_delay_ms;
    return times * rule->delay_ms;
}
