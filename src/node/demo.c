#include "node/demo.h"

/* Commands run without a shell; these are small enough to hand sh their text. */
static const char hello_script[] = "echo 'hello from a shell script'; "
                                   "echo '{\"result\":{\"greeting\":\"hello\"}}' >&3";

/* Continues from its checkpoint: kill the server in the middle and start it again. */
static const char long_script[] =
    "step=${PERDURA_CHECKPOINT#step-}; step=${step:-0}; "
    "echo \"continuing from step $step\"; "
    "while [ \"$step\" -lt 20 ]; do step=$((step + 1)); sleep 1; echo \"step $step of 20\"; "
    "echo \"{\\\"checkpoint\\\":{\\\"name\\\":\\\"step-$step\\\",\\\"progress\\\":$((step * 5)),"
    "\\\"data\\\":{\\\"step\\\":$step}}}\" >&3; done; "
    "echo '{\"result\":{\"steps\":20}}' >&3";

static const char failing_script[] = "echo 'this one always fails' >&2; exit 3";

static const char step_script[] =
    "sleep 1; echo \"{\\\"result\\\":{\\\"done_by\\\":\\\"$PERDURA_TYPE\\\"}}\" >&3";

static const struct {
    const char *type;
    const char *script;
    int64_t max_retries;
    int64_t retry_delay_ms;
} handlers[] = {{"demo:hello", hello_script, -1, -1},
                {"demo:long", long_script, -1, -1},
                {"demo:failing", failing_script, 2, 2000},
                {"demo:*", step_script, -1, -1}};

#define HANDLERS_COUNT (sizeof handlers / sizeof handlers[0])

static const char tasks[] =
    "[{\"type\":\"demo:hello\",\"name\":\"say hello\",\"payload\":{\"to\":\"world\"}},"
    "{\"type\":\"demo:long\",\"name\":\"twenty steps with checkpoints\"},"
    "{\"type\":\"demo:failing\",\"name\":\"fails, is retried, becomes a dead letter\"},"
    "{\"type\":\"demo:hello\",\"name\":\"in a minute\",\"delay_ms\":60000},"
    "{\"type\":\"demo:extract\",\"name\":\"extract\",\"ref\":\"extract\","
    "\"workflow_id\":\"demo\"},"
    "{\"type\":\"demo:transform\",\"name\":\"transform a\",\"ref\":\"a\","
    "\"workflow_id\":\"demo\",\"depends_on\":[{\"ref\":\"extract\"}]},"
    "{\"type\":\"demo:transform\",\"name\":\"transform b\",\"ref\":\"b\","
    "\"workflow_id\":\"demo\",\"depends_on\":[{\"ref\":\"extract\"}]},"
    "{\"type\":\"demo:load\",\"name\":\"load\",\"workflow_id\":\"demo\","
    "\"depends_on\":[{\"ref\":\"a\"},{\"ref\":\"b\"}]}]";

int demo_settings(struct settings *settings, struct arena *arena)
{
    uint32_t count = settings->handlers_count;
    struct handler_rule *rules = arena_alloc_array(arena, count + HANDLERS_COUNT, sizeof *rules);

    if (!rules)
        return -(int)ERR_MEMORY;
    if (count)
        memcpy(rules, settings->handlers, count * sizeof *rules);
    for (size_t i = 0; i < HANDLERS_COUNT; i++) {
        char **command = arena_alloc_array(arena, 4, sizeof *command);

        if (!command)
            return -(int)ERR_MEMORY;
        command[0] = arena_cstr(arena, STR("sh"));
        command[1] = arena_cstr(arena, STR("-c"));
        command[2] = arena_cstr(arena, str_of(handlers[i].script));
        rules[count++] = (struct handler_rule){.type = str_of(handlers[i].type),
                                               .command = command,
                                               .timeout_ms = -1,
                                               .grace_ms = -1,
                                               .max_retries = handlers[i].max_retries,
                                               .retry_delay_ms = handlers[i].retry_delay_ms,
                                               .max_retry_delay_ms = -1,
                                               .output_bytes_max = -1,
                                               .retention_ms = -1};
    }
    settings->handlers = rules;
    settings->handlers_count = count;
    return 0;
}

static bool is_empty(const struct stats_request *stats)
{
    for (int status = 0; status < STATUS_COUNT; status++)
        if (stats->stats.counts[status])
            return false;
    return true;
}

int demo_enqueue(struct engine *engine, const struct settings *settings, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct stats_request stats = {.base = {.kind = REQUEST_STATS, .arena = &arena}};
    struct enqueue_request request = {.base = {.kind = REQUEST_ENQUEUE, .arena = &arena},
                                      .actor = ACTOR_API};
    bool is_array;
    int rc = engine_call(engine, &stats.base);

    if (rc < 0)
        *err = stats.base.err;
    if (rc < 0 || !is_empty(&stats))
        return rc;
    rc = spec_parse_all(STR(tasks), settings, &arena, &request.inputs, &request.count, &is_array,
                        err);
    if (rc == 0 && (rc = engine_call(engine, &request.base)) < 0)
        *err = request.base.err;
    return rc;
}
