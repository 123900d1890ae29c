#include "core/service/service_told.h"

#include "base/json.h"

#define MS_US INT64_C(1000)

static void put_int(struct buf *out, const char *key, int64_t value)
{
    json_write_key(out, key);
    buf_int(out, value);
}

static void write_state(const struct service_view *view, int64_t wall_us, struct buf *out)
{
    json_write_member_string(out, "service", view->name);
    json_write_member_string(out, "url", view->url);
    json_write_member_string(out, "status", str_of(view->status));
    put_int(out, "in_flight", view->in_flight);
    put_int(out, "concurrency", view->concurrency);
    if (view->down_since_us) {
        put_int(out, "down_ms", (wall_us - view->down_since_us) / MS_US);
        put_int(out, "next_try_ms", (view->next_try_us - wall_us) / MS_US);
    }
    if (view->wait_until_us)
        put_int(out, "wait_ms", (view->wait_until_us - wall_us) / MS_US);
}

static void write_method(const struct service_method_figures *now,
                         const struct service_method_figures *before, struct buf *out)
{
    bool any = false;

    for (int result = 0; result < SERVICE_RESULT_COUNT; result++) {
        int64_t calls = now->calls[result] - before->calls[result];

        if (calls <= 0)
            continue;
        if (!any) {
            json_comma(out);
            buf_byte(out, '{');
            json_write_member_string(out, "method", str_of(now->name));
        }
        any = true;
        put_int(out, service_result_word((enum service_result)result), calls);
    }
    if (any)
        buf_byte(out, '}');
}

/* As pairs: a bound that is above none of them, and how many. */
static void write_durations(const struct histogram *now, const struct histogram *before,
                            struct buf *out)
{
    json_write_key(out, "durations");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        if (now->counts[i] > before->counts[i]) {
            json_comma(out);
            buf_format(out, "[%lld,%lld]", (long long)histogram_bound_us(i),
                       (long long)(now->counts[i] - before->counts[i]));
        }
    buf_byte(out, ']');
    put_int(out, "duration_us", now->sum_us - before->sum_us);
}

void service_told_write(const struct service_view *view, const struct service_figures *before,
                        int64_t wall_us, struct buf *out)
{
    const struct service_figures *now = &view->figures;

    json_comma(out);
    buf_byte(out, '{');
    write_state(view, wall_us, out);
    if (histogram_count(&now->seconds) > histogram_count(&before->seconds)) {
        json_write_key(out, "methods");
        buf_byte(out, '[');
        for (uint32_t i = 0; i < now->methods_count; i++)
            write_method(&now->methods[i], &before->methods[i], out);
        buf_byte(out, ']');
        write_durations(&now->seconds, &before->seconds, out);
    }
    if (now->last_error_us > before->last_error_us) {
        json_write_member_string(out, "last_error", str_of(now->last_error));
        put_int(out, "last_error_ms", (wall_us - now->last_error_us) / MS_US);
    }
    buf_byte(out, '}');
}

void service_told_count(const struct service_told *told, int64_t wall_us,
                        struct service_figures *figures)
{
    int64_t error_us = wall_us - told->error_ms * MS_US;

    for (uint32_t i = 0; i < told->methods_count; i++)
        for (int result = 0; result < SERVICE_RESULT_COUNT; result++)
            if (told->methods[i].calls[result])
                service_figures_count(figures, told->methods[i].name, (enum service_result)result,
                                      told->methods[i].calls[result], wall_us);
    if (told->durations)
        histogram_add(&figures->seconds, told->durations);
    if (!told->error.data || error_us <= figures->last_error_us)
        return;
    snprintf(figures->last_error, sizeof figures->last_error, STR_FMT,
             STR_ARG(str_cut(told->error, sizeof figures->last_error - 1)));
    figures->last_error_us = error_us;
}

const char *service_status_word(struct str word)
{
    static const char *const words[] = {"up", "down", "degraded", "unknown"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(word, words[i]))
            return words[i];
    return NULL;
}

static bool is_word(const char *status, const char *word)
{
    return strcmp(status, word) == 0;
}

static const char *both(const char *one, const char *other)
{
    if (is_word(one, "unknown") || is_word(one, other))
        return other;
    return is_word(other, "unknown") ? one : "degraded";
}

static int64_t earlier(int64_t one, int64_t other)
{
    return !one || (other && other < one) ? other : one;
}

void service_view_merge(struct service_view *to, const struct service_view *from)
{
    to->status = both(to->status, from->status);
    to->down_since_us = earlier(to->down_since_us, from->down_since_us);
    to->next_try_us = earlier(to->next_try_us, from->next_try_us);
    if (from->wait_until_us > to->wait_until_us)
        to->wait_until_us = from->wait_until_us;
    to->in_flight += from->in_flight;
    to->concurrency += from->concurrency;
    service_figures_merge(&to->figures, &from->figures);
}
