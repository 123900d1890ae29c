#include "core/service/service_outcome.h"

#include <stddef.h>

/* The first row that holds the status decides. */
static const struct row {
    int from, to;
    struct service_verdict plain;
    struct service_verdict asked_to_wait; /* with a Retry-After */
} rows[] = {
    {200, 299, {SERVICE_DONE, false, "done"}, {SERVICE_DONE, false, "done"}},
    /* A redirect could lead anywhere, also to addresses that only this machine can reach. */
    {300, 399, {SERVICE_REFUSED, false, "redirect_refused"},
     {SERVICE_REFUSED, false, "redirect_refused"}},
    {408, 408, {SERVICE_RETRY, true, "service_timeout"}, {SERVICE_RETRY, true, "service_timeout"}},
    {425, 425, {SERVICE_RETRY, false, "too_early"}, {SERVICE_RETRY, false, "too_early"}},
    {429, 429, {SERVICE_RETRY, false, "rate_limited"}, {SERVICE_WAIT, false, "rate_limited"}},
    {400, 499, {SERVICE_REFUSED, false, "service_refused"},
     {SERVICE_REFUSED, false, "service_refused"}},
    {503, 503, {SERVICE_RETRY, true, "service_unavailable"},
     {SERVICE_WAIT, false, "service_unavailable"}},
    {500, 599, {SERVICE_RETRY, true, "service_error"}, {SERVICE_RETRY, true, "service_error"}},
};

struct service_verdict service_judge(int status, bool asks_wait, bool is_async)
{
    if (status == 202 && is_async)
        return (struct service_verdict){SERVICE_ACCEPTED, false, "accepted"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (status >= rows[i].from && status <= rows[i].to)
            return asks_wait ? rows[i].asked_to_wait : rows[i].plain;
    return (struct service_verdict){SERVICE_RETRY, true, "invalid_answer"};
}

enum service_found service_judge_lookup(int status)
{
    if (status >= 200 && status < 300 && status != 204)
        return SERVICE_FOUND;
    return status == 404 || status == 410 || status == 204 ? SERVICE_NOT_THERE : SERVICE_NOT_KNOWN;
}

int64_t service_wait_ms(int64_t seconds)
{
    if (seconds >= SERVICE_WAIT_MS_MAX / 1000)
        return SERVICE_WAIT_MS_MAX;
    return seconds > 0 ? seconds * 1000 : SERVICE_WAIT_MS_MIN;
}
