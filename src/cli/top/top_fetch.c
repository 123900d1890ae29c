/* Requests of `perdura top`. As soon as one of a job finds no server the job ends: a server that
 * hangs costs one time-out, not one per request. See top_fetch.h. */
#include "cli/top/top_fetch.h"

#include "base/clock.h"
#include "base/json.h"

#include <stdio.h>

#define ASK_MS 5000
#define ARENA_BYTES_MAX ((size_t)128 * 1024 * 1024)
#define REPLY_BYTES_MAX ((size_t)32 * 1024 * 1024)
#define LEARN_MAX 16    /* tasks that are asked for in one frame */
#define LOG_PAGES_MAX 5 /* on the way to the last lines of a task */

int top_fetch_init(struct top_fetch *fetch, struct str server, struct str token, struct err *err)
{
    fetch->reply = BUF_INIT(REPLY_BYTES_MAX);
    for (int i = 0; i < 2; i++)
        fetch->frames[i] = ARENA_INIT(ARENA_BYTES_MAX);
    fetch->detail = ARENA_INIT(ARENA_BYTES_MAX);
    fetch->http = http_client_new(server, token.len ? token : STR_NONE, err);
    return fetch->http ? 0 : -(int)err->code;
}

void top_fetch_deinit(struct top_fetch *fetch)
{
    http_client_free(fetch->http);
    buf_deinit(&fetch->reply);
    for (int i = 0; i < 2; i++)
        arena_deinit(&fetch->frames[i]);
    arena_deinit(&fetch->detail);
}

/* The last request got no answer at all; an answer that refuses is one. */
static bool is_silent(struct top_fetch *fetch)
{
    return atomic_load(&fetch->silent_since_us) != 0;
}

/* ---- one request ---- */

/* STR_NONE with err when there is no answer that can be read. */
static struct str ask(struct top_fetch *fetch, const char *method, const char *path,
                      struct arena *arena, struct err *err)
{
    int_least64_t nothing = 0;
    struct str text = STR_NONE;
    int status = 0;
    int rc;

    *err = (struct err){0};
    atomic_compare_exchange_strong(&fetch->silent_since_us, &nothing, clock_boot_us());
    rc = http_client_request(fetch->http, method, path, STR_NONE, ASK_MS, &fetch->reply, &status,
                             err);
    if (status)
        atomic_store(&fetch->silent_since_us, 0);
    if (rc < 0)
        return STR_NONE;
    text = arena_str(arena, buf_view(&fetch->reply));
    if (text.data && json_check_ours(text, &text, err) == 0)
        return text;
    if (!err->code)
        err_no_memory(err);
    return STR_NONE;
}

static struct str ask_about(struct top_fetch *fetch, const char *before, struct str name,
                            const char *after, struct arena *arena, struct err *err)
{
    BUF_AUTO struct buf path = BUF_INIT(8192);
    struct str reply = STR_NONE;

    *err = (struct err){0};
    buf_text(&path, before);
    http_client_escape(&path, name);
    buf_text(&path, after);
    buf_byte(&path, '\0');
    if (path.failed)
        err_set(err, ERR_INVALID, "the name is too long");
    else
        reply = ask(fetch, "GET", path.data, arena, err);
    return reply;
}

/* ---- a frame ---- */

/* Types and queues of tasks that are shown for the first time. False: the server is gone. */
static bool learn(struct top_fetch *fetch, const struct top_replies *replies, struct arena *arena,
                  struct err *err)
{
    struct str ids[LEARN_MAX];
    uint32_t count = top_model_unknown(replies, &fetch->memory, arena, ids, LEARN_MAX);

    for (uint32_t i = 0; i < count; i++) {
        struct str task = ask_about(fetch, "/v1/tasks/", ids[i], "", arena, err);

        if (!task.data && is_silent(fetch))
            return false;
        if (task.data || err->code == ERR_NOT_FOUND)
            top_model_learn(&fetch->memory, ids[i], task, arena);
    }
    return true;
}

/* The rest of a frame may be missing (an older server), but not because the server does not
 * answer. */
static bool ask_all(struct top_fetch *fetch, struct top_replies *replies, struct arena *arena,
                    struct err *err)
{
    const struct {
        struct str *reply;
        const char *path;
    } asked[] = {{&replies->stats, "/v1/stats"},
                 {&replies->history, "/v1/stats/history?window=15m"},
                 {&replies->workers, "/v1/workers?limit=500"},
                 {&replies->failed, "/v1/executions?status=failed&limit=20"},
                 {&replies->timeout, "/v1/executions?status=timeout&limit=20"},
                 {&replies->forecast, "/v1/forecast?limit=20"}};

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        *asked[i].reply = ask(fetch, "GET", asked[i].path, arena, err);
        if (!asked[i].reply->data && (i == 0 || is_silent(fetch)))
            return false;
    }
    return learn(fetch, replies, arena, err);
}

static void refresh(struct top_fetch *fetch, struct top_answer *answer)
{
    struct arena *arena = &fetch->frames[fetch->frame];
    struct top_replies replies = {0};

    arena_reset(arena);
    if (!ask_all(fetch, &replies, arena, &answer->err))
        return;
    answer->err = (struct err){0};
    if (top_model_fill(&replies, &fetch->memory, clock_wall_us(), arena, &answer->snapshot) < 0)
        err_no_memory(&answer->err);
    else
        fetch->frame = !fetch->frame;
}

/* ---- what keys ask for ---- */

static void pause_queue(struct top_fetch *fetch, struct top_answer *answer)
{
    BUF_AUTO struct buf path = BUF_INIT(8192);

    arena_reset(&fetch->frames[fetch->frame]);
    buf_text(&path, "/v1/queues/");
    http_client_escape(&path, str_of(answer->job.key));
    buf_text(&path, answer->job.paused ? ":resume" : ":pause");
    buf_byte(&path, '\0');
    if (path.failed)
        err_set(&answer->err, ERR_INVALID, "the name is too long");
    else
        ask(fetch, "POST", path.data, &fetch->frames[fetch->frame], &answer->err);
}

/* Lists of lines begin with the oldest: page by page to the last one. */
static struct str last_logs(struct top_fetch *fetch, struct str id, struct err *err)
{
    struct arena *arena = &fetch->detail;
    struct str page = STR_NONE;
    struct str cursor = STR_NONE;

    for (int i = 0; i < LOG_PAGES_MAX; i++) {
        struct str after = cursor.data
            ? arena_format(arena, "/logs?limit=1000&cursor=" STR_FMT, STR_ARG(cursor))
            : STR("/logs?limit=1000");
        const char *path = arena_cstr(arena, after);
        struct str next = path ? ask_about(fetch, "/v1/tasks/", id, path, arena, err) : STR_NONE;

        if (!next.data)
            break;
        page = next;
        cursor = json_string(json_get(page, STR("next_cursor")), arena);
        if (!cursor.data)
            break;
    }
    return page;
}

static void show_task(struct top_fetch *fetch, struct str id, struct top_answer *answer)
{
    static const char *const parts[] = {"", "/why", "/events?limit=10"};
    struct top_lines *lines = &answer->lines;
    struct str replies[3] = {{0}};
    struct err err = {0};
    struct str logs = STR_NONE;

    for (size_t i = 0; i < 3 && (i == 0 || !is_silent(fetch)); i++) {
        replies[i] = ask_about(fetch, "/v1/tasks/", id, parts[i], lines->arena, &err);
        if (i == 0)
            answer->err = err;
    }
    if (!is_silent(fetch))
        logs = last_logs(fetch, id, &err);
    if (replies[0].data)
        top_lines_task(lines, replies[0], replies[1], replies[2], logs);
    else
        top_lines_add(lines, "%s", answer->err.text);
}

static void show_thing(struct top_fetch *fetch, const char *before, struct str name,
                       struct top_answer *answer)
{
    struct top_lines *lines = &answer->lines;
    struct str thing = ask_about(fetch, before, name, "", lines->arena, &answer->err);

    if (thing.data)
        top_lines_object(lines, thing);
    else
        top_lines_add(lines, "%s", answer->err.text);
}

static void show_detail(struct top_fetch *fetch, struct top_answer *answer)
{
    struct str key = str_of(answer->job.key);

    arena_reset(&fetch->detail);
    answer->lines = (struct top_lines){.arena = &fetch->detail};
    switch (answer->job.pane) {
    case TOP_QUEUES:
        show_thing(fetch, "/v1/queues/", key, answer);
        break;
    case TOP_WORKERS:
        show_thing(fetch, "/v1/workers/", key, answer);
        break;
    case TOP_RUNNING:
    case TOP_FAILURES:
        show_task(fetch, key, answer);
        break;
    case TOP_NEXT:
        show_thing(fetch, answer->job.recurring ? "/v1/recurring/" : "/v1/schedules/", key, answer);
        break;
    case TOP_ALERTS: /* there is no more of them than their row */
    case TOP_PANES_COUNT:
        break;
    }
}

void top_fetch_do(struct top_fetch *fetch, const struct top_job *job, struct top_answer *answer)
{
    *answer = (struct top_answer){.job = *job};
    switch (job->kind) {
    case TOP_JOB_REFRESH:
        refresh(fetch, answer);
        break;
    case TOP_JOB_DETAIL:
        show_detail(fetch, answer);
        break;
    case TOP_JOB_PAUSE:
        pause_queue(fetch, answer);
        break;
    }
}
