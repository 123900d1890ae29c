/* What is known of a service, for those that show it: routes, metrics, `why`. Filled by what makes
 * the calls. Pure data. */
#ifndef CORE_SERVICE_SERVICE_VIEW_H
#define CORE_SERVICE_SERVICE_VIEW_H

#include "base/histogram.h"
#include "base/str.h"

#define SERVICE_METHODS_MAX 32 /* that are counted by name; others are together */
#define SERVICE_METHOD_BYTES 103
#define SERVICE_ERROR_BYTES 256

#define SERVICE_RESULT_TABLE(X)       \
    X(SERVICE_RESULT_DONE, "done")       \
    X(SERVICE_RESULT_FAILED, "failed")   \
    X(SERVICE_RESULT_TIMEOUT, "timeout") \
    X(SERVICE_RESULT_REFUSED, "refused") \
    X(SERVICE_RESULT_WAIT, "wait")

enum service_result {
#define X(name, word) name,
    SERVICE_RESULT_TABLE(X)
#undef X
        SERVICE_RESULT_COUNT
};

static inline const char *service_result_word(enum service_result result)
{
    static const char *const words[] = {
#define X(name, word) [name] = word,
        SERVICE_RESULT_TABLE(X)
#undef X
    };

    return words[result];
}

struct service_method_figures {
    char name[SERVICE_METHOD_BYTES + 1]; /* "" = all others */
    int64_t calls[SERVICE_RESULT_COUNT];
};

/* Calls that came to an end within a span of time. */
struct service_span {
    int64_t number; /* of the span since the start of time */
    int64_t good, bad;
};

#define SERVICE_MINUTES 60
#define SERVICE_HOURS 24

struct service_figures {
    struct service_method_figures methods[SERVICE_METHODS_MAX + 1];
    uint32_t methods_count;
    struct histogram seconds;
    struct service_span minutes[SERVICE_MINUTES], hours[SERVICE_HOURS];
    char last_error[SERVICE_ERROR_BYTES];
    int64_t last_error_us; /* wall clock; 0 = none */
    bool succeeded;        /* the last word of the service was a good one */
    bool failed;           /* or a bad one; neither = it was not called yet */
};

void service_figures_add(struct service_figures *figures, struct str method,
                         enum service_result result, int64_t duration_us, int64_t wall_us);
/* The same for many, without their durations. */
void service_figures_count(struct service_figures *figures, struct str method,
                           enum service_result result, int64_t calls, int64_t wall_us);
/* Adds those of other callers of the service. */
void service_figures_merge(struct service_figures *to, const struct service_figures *from);
/* Good and bad ends of the last hour, and of the last day. */
void service_figures_rates(const struct service_figures *figures, int64_t wall_us,
                           struct service_span *hour, struct service_span *day);

struct service_view {
    struct str name;
    struct str url;
    const char *status;    /* up, down, degraded, unknown */
    int64_t down_since_us; /* wall clock, here and below; 0 = its breaker is closed */
    int64_t next_try_us;
    int64_t wait_until_us; /* it asked not to be called before; 0 = it did not */
    int64_t in_flight;
    int64_t concurrency;
    struct service_figures figures;
};

/* Any thread. */
struct service_views {
    void *ctx;
    uint32_t (*count)(void *ctx);
    bool (*read)(void *ctx, uint32_t index, struct service_view *view);
    /* The service that tasks of this type go to; without its figures. */
    bool (*of_type)(void *ctx, struct str type, struct service_view *view);
};

#endif
