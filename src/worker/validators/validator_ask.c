/* One question to the validator of a type: a command gets the task on its standard input and says
 * yes by exit code 0; an HTTP target gets it as a POST. Blocks the calling thread. */
#include "base/json.h"
#include "net/http_client.h"
#include "worker/handlers/handler_process.h"
#include "worker/process/process.h"
#include "worker/validators/validators.h"

#include <stdio.h>

#define GRACE_MS 1000
#define OUTPUT_BYTES_MAX (64 * 1024)
#define RESPONSE_BYTES_MAX (64 * 1024)
#define VARIABLES_MAX 520 /* the allow-list, a rule's own, and ours */
#define EXIT_LATER 75     /* as of handlers: ask again */

static void no_answer(struct validator_answer *answer, const char *why)
{
    answer->answered = false;
    snprintf(answer->reason, sizeof answer->reason, "%.255s", why);
}

/* ---- command ---- */

static bool take_line(void *ctx, enum process_stream stream, struct str line, bool cut)
{
    struct validator_answer *answer = ctx;
    struct str text = str_cut(line, sizeof answer->reason - 1);

    (void)cut;
    if (stream == PROCESS_OUT && !answer->reason[0] && str_is_utf8(line)) {
        memcpy(answer->reason, text.data, text.len);
        answer->reason[text.len] = '\0';
    }
    return true;
}

static char *const *make_environment(const struct handler_rule *rule,
                                     const struct identity *identity, const struct uuid *task_id,
                                     struct str type, struct arena *arena)
{
    char *const *usual = handler_process_environment(identity, arena);
    char **all = arena_alloc_array(arena, VARIABLES_MAX + 1, sizeof *all);
    char id[UUID_TEXT_BYTES];
    size_t count = 0;

    if (!usual || !all)
        return NULL;
    for (; *usual && count < VARIABLES_MAX / 2; usual++)
        all[count++] = *usual;
    for (char *const *own = rule->environment; own && *own && count < VARIABLES_MAX - 2; own++)
        all[count++] = *own;
    uuid_format(task_id, id);
    all[count++] = arena_cstr(arena, arena_format(arena, "PERDURA_TASK_ID=%s", id));
    all[count++] = arena_cstr(arena, arena_format(arena, "PERDURA_TYPE=" STR_FMT, STR_ARG(type)));
    return all;
}

static void judge_end(const struct process_result *result, struct validator_answer *answer)
{
    if (result->timed_out) {
        no_answer(answer, "the validator took longer than 10 s");
    } else if (result->stopped) {
        no_answer(answer, "the validator was stopped with the server");
    } else if (result->end == PROCESS_NOT_STARTED) {
        no_answer(answer, result->error);
    } else if (result->end != PROCESS_EXITED || result->exit_code == EXIT_LATER) {
        if (!answer->reason[0])
            no_answer(answer, "the validator did not end well");
    } else {
        answer->answered = true;
        answer->valid = result->exit_code == 0;
        if (!answer->valid && !answer->reason[0])
            snprintf(answer->reason, sizeof answer->reason, "its validator exited with %d",
                     result->exit_code);
    }
}

static void ask_command(const struct handler_rule *rule, struct spawner *spawner,
                        const struct uuid *task_id, struct str type, struct str task,
                        const atomic_int *stop, int wake_fd, struct validator_answer *answer)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct identity identity;
    struct process_spec spec = {.spawner = spawner,
                                .command = rule->validate_command,
                                .input = arena_format(&arena, STR_FMT "\n", STR_ARG(task)),
                                .timeout_ms = VALIDATOR_TIMEOUT_MS,
                                .grace_ms = GRACE_MS,
                                .output_bytes_max = OUTPUT_BYTES_MAX,
                                .stop = stop,
                                .wake_fd = wake_fd,
                                .sink = {take_line, answer}};
    struct process_result result;
    struct err err = {0};

    if (identity_of_rule(rule, &arena, &identity, &err) < 0) {
        no_answer(answer, err.text);
        return;
    }
    spec.identity = identity.ids;
    spec.environment = make_environment(rule, &identity, task_id, type, &arena);
    if (rule->directory.data)
        spec.directory = arena_cstr(&arena, rule->directory);
    if (arena.failed || !spec.environment)
        no_answer(answer, "out of memory for the validator");
    else if (process_run(&spec, &result, &err) < 0)
        no_answer(answer, err.text);
    else {
        judge_end(&result, answer);
        process_leftover_close(&result.leftover);
    }
}

/* ---- HTTP ---- */

/* The host, and the path behind it. */
static void split_url(struct str url, struct arena *arena, struct str *base, const char **path)
{
    const char *at = memmem(url.data, url.len, "://", 3);
    const char *slash = at ? memchr(at + 3, '/', url.len - (size_t)(at + 3 - url.data)) : NULL;

    *base = slash ? str_span(url.data, (size_t)(slash - url.data)) : url;
    *path = slash ? arena_cstr(arena, str_span(slash, url.len - base->len)) : "/";
}

static void copy_reason(struct str body, int status, struct validator_answer *answer)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str value = json_kind(body) == JSON_OBJECT ? json_get(body, STR("reason")) : STR_NONE;
    struct str text = value.data && json_kind(value) == JSON_STRING ? json_string(value, &arena)
                                                                    : STR_NONE;

    text = str_cut(text.data ? text : STR(""), sizeof answer->reason - 1);
    if (text.len)
        snprintf(answer->reason, sizeof answer->reason, STR_FMT, STR_ARG(text));
    else
        snprintf(answer->reason, sizeof answer->reason, "its validator answered with %d", status);
}

/* 2xx says yes unless its body says {"valid":false}; 4xx says no; anything else is no answer. */
static void judge_reply(int status, struct str body, struct validator_answer *answer)
{
    struct str valid = STR_NONE;

    if (status >= 500 || status < 200) {
        snprintf(answer->reason, sizeof answer->reason, "its validator answered with %d", status);
        return;
    }
    if (str_empty(body) || json_check(body, &body, NULL) < 0)
        body = STR("null");
    if (json_kind(body) == JSON_OBJECT)
        valid = json_get(body, STR("valid"));
    answer->answered = true;
    answer->valid = status < 300 && (!valid.data || json_kind(valid) == JSON_TRUE);
    if (!answer->valid)
        copy_reason(body, status, answer);
}

static void ask_url(const struct handler_rule *rule, struct str task,
                    struct validator_answer *answer)
{
    BUF_AUTO struct buf response = BUF_INIT(RESPONSE_BYTES_MAX);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct http_client *client = NULL;
    struct err err = {0};
    const char *path;
    struct str base;
    int status = 0;

    split_url(rule->validate_url, &arena, &base, &path);
    client = path ? http_client_new(base, STR_NONE, &err) : NULL;
    if (!client || http_client_call(client, "POST", path, task, VALIDATOR_TIMEOUT_MS, &response,
                                    &status, &err) < 0)
        no_answer(answer, err.text);
    else
        judge_reply(status, buf_view(&response), answer);
    if (client)
        http_client_free(client);
}

void validator_ask(const struct handler_rule *rule, struct spawner *spawner,
                   const struct uuid *task_id, struct str type, struct str task,
                   const atomic_int *stop, int wake_fd, struct validator_answer *answer)
{
    *answer = (struct validator_answer){.answered = false};
    if (rule->validate_command)
        ask_command(rule, spawner, task_id, type, task, stop, wake_fd, answer);
    else
        ask_url(rule, task, answer);
}
