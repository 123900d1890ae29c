/* The categories a namespace begins with: those that the migrations give to `default`. Pure data;
 * any thread. */
#include "core/plan/catalog.h"

#define FIRST(word, text, level, timeout, retries, rules)                                          \
    {.name = {word, sizeof word - 1},                                                              \
     .description = {text, sizeof text - 1},                                                       \
     .default_priority = (level),                                                                  \
     .default_timeout_s = (timeout),                                                               \
     .default_max_retries = (retries),                                                             \
     .configuration = {rules, sizeof rules - 1},                                                   \
     .is_active = true}

static const struct category first[] = {
    FIRST(CATEGORY_GENERAL, "Tasks without a category", 0, 300, 3, "{\"queue\": \"default\"}"),
    FIRST("messaging", "Tasks about messages", 10, 30, 3,
          "{\"queue\": \"high-priority\", \"service\": \"messaging-service\"}"),
    FIRST("notifications", "Tasks that notify people", 10, 15, 5,
          "{\"queue\": \"high-priority\", \"service\": \"notification-service\"}"),
    FIRST("maintenance", "Maintenance of the system", 0, 600, 2,
          "{\"queue\": \"medium-priority\", \"allowed_windows\": [\"02:00-06:00\"]}"),
    FIRST("cleanup", "Tasks that clean up", -10, 300, 2,
          "{\"queue\": \"low-priority\", \"batch_size\": 100}"),
    FIRST("reports", "Making reports", 0, 120, 1,
          "{\"queue\": \"medium-priority\", \"service\": \"user-service\"}"),
    FIRST("analytics", "Tasks of analytics", -10, 300, 1,
          "{\"queue\": \"low-priority\", \"batch_processing\": true}")};

const struct category *categories_first(uint32_t *count)
{
    *count = sizeof first / sizeof first[0];
    return first;
}
