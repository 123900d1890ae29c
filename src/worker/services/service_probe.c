/* Looking at a service beside its calls: once at the start, with a warning if it is not there, and
 * where `health` is configured every few seconds. Without it a look is a connection and no more. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "worker/services/service_int.h"

#define PROBE_MS_MAX 10000

int probe_prepare(struct service_call *probe, struct err *err)
{
    const struct service_rule *rule = probe->line->rule;
    BUF_AUTO struct buf method = BUF_INIT(4096);
    int64_t limit_ms = rule->timeout_ms < PROBE_MS_MAX ? rule->timeout_ms : PROBE_MS_MAX;

    probe->began_us = clock_boot_us();
    probe->deadline_us = probe->began_us + limit_ms * CLOCK_MS_US;
    buf_format(&method, "GET " STR_FMT, STR_ARG(rule->health_path.data ? rule->health_path
                                                                      : STR("/")));
    TRY(call_prepare(probe, buf_view(&method), err));
    if (!rule->health_path.data)
        curl_easy_setopt(probe->easy, CURLOPT_CONNECT_ONLY, 1L);
    return 0;
}

static int start(struct service_call *probe, struct err *err)
{
    TRY(probe_prepare(probe, err));
    if (probe->line->grpc && service_has_health(probe->line->rule)) {
        call_clear(probe);
        return grpc_begin_health(probe, err);
    }
    if (curl_multi_add_handle(probe->line->multi, probe->easy) != CURLM_OK)
        return err_no_memory(err);
    return 0;
}

void probe_begin(struct service_line *line)
{
    struct service_call *probe = calloc(1, sizeof *probe);
    struct err err = {0};

    line->probe_due_us = service_has_health(line->rule)
                             ? clock_boot_us() + line->rule->health_every_ms * CLOCK_MS_US
                             : INT64_MAX;
    if (!probe)
        return;
    *probe = (struct service_call){.line = line, .phase = CALL_PROBES, .arena = ARENA_INIT(0)};
    if (start(probe, &err) == 0) {
        line->probe = probe;
        return;
    }
    LOG(line->pool->log, LOG_WARN, "service.not_available", KS("service", line->rule->name),
        KC("reason", err.text));
    probe_free(probe);
}

void probe_free(struct service_call *probe)
{
    if (!probe)
        return;
    call_clear(probe);
    arena_deinit(&probe->arena);
    free(probe);
}

/* The worker, if what it may claim has changed. */
static struct worker *note(struct service_line *line, bool is_down, const char *why)
{
    const struct service_verdict verdict = {SERVICE_RETRY, is_down, "health"};
    bool was_open;

    LOCKED(&line->pool->lock);
    was_open = breaker_is_open(&line->breaker);
    line->figures->succeeded = !is_down;
    line->figures->failed = is_down;
    if (is_down) {
        snprintf(line->figures->last_error, sizeof line->figures->last_error, "%.255s", why);
        line->figures->last_error_us = clock_wall_us();
    }
    if (service_has_health(line->rule))
        line_end(line, &verdict, clock_boot_us());
    return was_open != breaker_is_open(&line->breaker) ? line->pool->worker : NULL;
}

static void health_why(const struct service_call *probe, CURLcode code,
                       char why[SERVICE_WHY_BYTES])
{
    bool asked = probe->line->rule->health_path.data != NULL;
    long status = 0;

    curl_easy_getinfo(probe->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        snprintf(why, SERVICE_WHY_BYTES, "%s",
                 probe->reason[0] ? probe->reason : curl_easy_strerror(code));
    else if (asked && (status < 200 || status > 299))
        snprintf(why, SERVICE_WHY_BYTES, "its health check answered with status %ld", status);
}

void probe_end(struct service_call *probe, CURLcode code)
{
    struct service_line *line = probe->line;
    bool was_down = line->figures->failed;
    char why[SERVICE_WHY_BYTES] = "";
    struct worker *worker;
    bool is_down;

    if (probe->stream)
        grpc_health_why(probe, why, sizeof why);
    else
        health_why(probe, code, why);
    is_down = why[0] != '\0';
    if (probe->easy)
        curl_multi_remove_handle(line->multi, probe->easy);
    line->probe = NULL;
    probe_free(probe);
    worker = note(line, is_down, why);
    if (worker)
        worker_dispatch_room(worker);
    if (is_down && !was_down)
        LOG(line->pool->log, LOG_WARN, "service.not_available", KS("service", line->rule->name),
            KC("reason", why), KC("hint", "its tasks are called all the same, and retried"));
}
