/* When a failed task runs again. Pure. */
#ifndef CORE_TASK_RETRY_H
#define CORE_TASK_RETRY_H

#include "base/str.h"

enum retry_policy {
    RETRY_POLYNOMIAL,  /* (n + 1)^2 x delay: 1, 4, 9, ... */
    RETRY_EXPONENTIAL, /* 2^n x delay: 1, 2, 4, ... */
    RETRY_LINEAR,      /* (n + 1) x delay */
    RETRY_FIXED,
    RETRY_POLICY_COUNT
};

struct retry_rule {
    enum retry_policy policy;
    int64_t max_retries;
    int64_t delay_ms;
    int64_t max_delay_ms;
};

const char *retry_policy_word(enum retry_policy policy);
bool retry_policy_parse(struct str word, enum retry_policy *policy);

/* Delay before the next try after `failures` earlier counted failures (0 = this was the first).
 * Never overflows, never above max_delay_ms. */
int64_t retry_delay_ms(const struct retry_rule *rule, int64_t failures);

#endif
