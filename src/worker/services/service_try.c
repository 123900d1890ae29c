/* One look at a service without a pool, for `perdura doctor`. Blocks. */
#include <stdio.h>

#include "base/clock.h"
#include "worker/services/service_int.h"

bool service_try(const struct service_rule *rule, char why[SERVICE_WHY_BYTES])
{
    struct service_line line = {.rule = rule};
    struct service_call call = {.line = &line, .phase = CALL_PROBES, .arena = ARENA_INIT(0)};
    struct err err = {0};
    CURLcode code = CURLE_OK;
    long status = 0;

    why[0] = '\0';
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if ((service_url_is_grpc(rule->url) && grpc_line_open(&line, &err) < 0) ||
        probe_prepare(&call, &err) < 0) {
        snprintf(why, SERVICE_WHY_BYTES, "%s", err.text);
    } else {
        code = curl_easy_perform(call.easy);
        curl_easy_getinfo(call.easy, CURLINFO_RESPONSE_CODE, &status);
        if (code != CURLE_OK)
            snprintf(why, SERVICE_WHY_BYTES, "%s",
                     call.reason[0] ? call.reason : curl_easy_strerror(code));
        else if (rule->health_path.data && (status < 200 || status > 299))
            snprintf(why, SERVICE_WHY_BYTES, "its health check answered with status %ld", status);
    }
    call_clear(&call);
    grpc_line_free(line.grpc);
    arena_deinit(&call.arena);
    return why[0] == '\0';
}
