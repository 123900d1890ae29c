/* perdura top: a live view. Asks the server every few seconds, draws, and does what keys say. What
 * is shown is made in top_model.c, how in top_view.c; the terminal is top_screen.c. One thread. */
#include "cli/command.h"
#include "cli/top_screen.h"
#include "cli/top_view.h"

#include "base/clock.h"
#include "base/json.h"
#include "net/http_client.h"

#include <stdlib.h>
#include <unistd.h>

#define ASK_MS 5000
#define ARENA_BYTES_MAX ((size_t)128 * 1024 * 1024)
#define REPLY_BYTES_MAX ((size_t)32 * 1024 * 1024)
#define FRAME_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define LEARN_MAX 16     /* tasks that are asked for in one frame */
#define LOG_PAGES_MAX 5  /* on the way to the last lines of a task */
#define ESCAPE_MS 50     /* a lone escape is one when nothing follows for so long */
#define INTERVAL_MS 2000

struct top {
    struct call *call;
    struct http_client *http;
    struct top_screen screen;
    struct top_view view;
    struct top_memory memory;
    struct top_snapshot snapshot;
    struct arena arenas[2];   /* of the frame shown, and of the one that is fetched */
    uint32_t shown;           /* which of them */
    struct arena detail_arena;
    struct buf reply;
    char message[512];
    char pending[64];         /* bytes of a key that is not whole */
    size_t pending_len;
    int64_t interval_ms;
    int64_t next_us;          /* the next refresh */
};

/* ---- the server ---- */

/* STR_NONE with err when there is no answer that can be read. */
static struct str ask(struct top *top, const char *method, const char *path, struct arena *arena,
                      struct err *err)
{
    struct str text = STR_NONE;
    int status;

    *err = (struct err){0};
    if (http_client_request(top->http, method, path, STR_NONE, ASK_MS, &top->reply, &status,
                            err) < 0)
        return STR_NONE;
    text = arena_str(arena, buf_view(&top->reply));
    if (text.data && json_check(text, &text, err) == 0)
        return text;
    if (!err->code)
        err_set(err, ERR_MEMORY, "there is not enough memory for the answer");
    return STR_NONE;
}

static void say(struct top *top, bool is_error, const char *text)
{
    snprintf(top->message, sizeof top->message, "%s", text);
    top->view.message = str_of(top->message);
    top->view.message_is_error = is_error;
}

static struct str ask_about(struct top *top, const char *before, struct str name,
                            const char *after, struct arena *arena, struct err *err)
{
    struct buf path = BUF_INIT(8192);
    struct str reply = STR_NONE;

    buf_text(&path, before);
    http_client_escape(&path, name);
    buf_text(&path, after);
    buf_byte(&path, '\0');
    if (!path.failed)
        reply = ask(top, "GET", path.data, arena, err);
    buf_deinit(&path);
    return reply;
}

/* Types and queues of tasks that are shown for the first time. */
static void learn(struct top *top, const struct top_replies *replies, struct arena *arena)
{
    struct str ids[LEARN_MAX];
    uint32_t count = top_model_unknown(replies, &top->memory, arena, ids, LEARN_MAX);
    struct err err;

    for (uint32_t i = 0; i < count; i++) {
        struct str task = ask_about(top, "/v1/tasks/", ids[i], "", arena, &err);

        if (task.data || err.code == ERR_NOT_FOUND)
            top_model_learn(&top->memory, ids[i], task, arena);
    }
}

/* What the server shows stays on the screen when it does not answer, with the reason above. */
static bool refresh(struct top *top, struct err *err)
{
    struct arena *arena = &top->arenas[!top->shown];
    struct top_replies replies = {0};
    struct top_snapshot snapshot;
    struct err ignored;

    arena_reset(arena);
    replies.stats = ask(top, "GET", "/v1/stats", arena, err);
    if (!replies.stats.data)
        return false;
    replies.history = ask(top, "GET", "/v1/stats/history?window=15m", arena, &ignored);
    replies.workers = ask(top, "GET", "/v1/workers?limit=500", arena, &ignored);
    replies.failed = ask(top, "GET", "/v1/executions?status=failed&limit=20", arena, &ignored);
    replies.timeout = ask(top, "GET", "/v1/executions?status=timeout&limit=20", arena, &ignored);
    replies.forecast = ask(top, "GET", "/v1/forecast?limit=20", arena, &ignored);
    learn(top, &replies, arena);
    if (top_model_fill(&replies, &top->memory, clock_wall_us(), arena, &snapshot) < 0) {
        err_set(err, ERR_MEMORY, "there is not enough memory for the frame");
        return false;
    }
    top->snapshot = snapshot;
    top->shown = !top->shown;
    return true;
}

/* ---- what keys ask for ---- */

static void pause_queue(struct top *top)
{
    const struct top_row *row = top_view_selected(&top->view, &top->snapshot);
    struct buf path = BUF_INIT(8192);
    char said[300];
    struct err err = {0};

    buf_text(&path, "/v1/queues/");
    http_client_escape(&path, row->key);
    buf_text(&path, row->paused ? ":resume" : ":pause");
    buf_byte(&path, '\0');
    if (!path.failed && ask(top, "POST", path.data, &top->arenas[top->shown], &err).data) {
        snprintf(said, sizeof said, "queue " STR_FMT " %s", STR_ARG(row->key),
                 row->paused ? "goes on" : "is paused");
        say(top, false, said);
    } else {
        say(top, true, err.text);
    }
    buf_deinit(&path);
    top->next_us = 0;
}

/* Lists of lines begin with the oldest: page by page to the last one. */
static struct str last_logs(struct top *top, struct str id, struct arena *arena)
{
    struct str page = STR_NONE;
    struct str cursor = STR_NONE;
    struct err err;

    for (int i = 0; i < LOG_PAGES_MAX; i++) {
        struct str after = cursor.data
            ? arena_format(arena, "/logs?limit=1000&cursor=" STR_FMT, STR_ARG(cursor))
            : STR("/logs?limit=1000");
        const char *path = arena_cstr(arena, after);
        struct str next = path ? ask_about(top, "/v1/tasks/", id, path, arena, &err) : STR_NONE;

        if (!next.data)
            break;
        page = next;
        cursor = json_string(json_get(page, STR("next_cursor")), arena);
        if (!cursor.data)
            break;
    }
    return page;
}

static void show_task(struct top *top, struct str id, struct top_lines *lines)
{
    struct err err, ignored;
    struct str task = ask_about(top, "/v1/tasks/", id, "", lines->arena, &err);
    struct str why = ask_about(top, "/v1/tasks/", id, "/why", lines->arena, &ignored);
    struct str events =
        ask_about(top, "/v1/tasks/", id, "/events?limit=10", lines->arena, &ignored);

    if (task.data)
        top_lines_task(lines, task, why, events, last_logs(top, id, lines->arena));
    else
        top_lines_add(lines, "%s", err.text);
}

static void show_thing(struct top *top, const char *before, struct str name,
                       struct top_lines *lines)
{
    struct err err;
    struct str thing = ask_about(top, before, name, "", lines->arena, &err);

    if (thing.data)
        top_lines_object(lines, thing);
    else
        top_lines_add(lines, "%s", err.text);
}

static void show_alert(const struct top_row *row, struct top_lines *lines)
{
    for (size_t i = 0; i < TOP_CELLS_MAX; i++)
        if (row->cells[i].len)
            top_lines_add(lines, STR_FMT, STR_ARG(row->cells[i]));
}

static void open_detail(struct top *top)
{
    struct top_row row = *top_view_selected(&top->view, &top->snapshot);
    struct top_lines *lines = &top->view.detail;

    arena_reset(&top->detail_arena);
    *lines = (struct top_lines){.arena = &top->detail_arena};
    top->view.detail_title = arena_str(&top->detail_arena, row.key.data ? row.key : row.cells[0]);
    top->view.detail_from = 0;
    top->view.mode = TOP_DETAIL;
    switch (top->view.pane) {
    case TOP_QUEUES:
        show_thing(top, "/v1/queues/", row.key, lines);
        break;
    case TOP_WORKERS:
        show_thing(top, "/v1/workers/", row.key, lines);
        break;
    case TOP_RUNNING:
    case TOP_FAILURES:
        show_task(top, row.key, lines);
        break;
    case TOP_NEXT:
        show_thing(top, "/v1/schedules/", row.key, lines);
        break;
    case TOP_ALERTS:
    case TOP_PANES_COUNT:
        show_alert(&row, lines);
    }
}

/* False: enough. */
static bool obey(struct top *top, const struct top_key *key)
{
    switch (top_view_key(&top->view, &top->snapshot, key)) {
    case TOP_WISH_QUIT:
        return false;
    case TOP_WISH_DETAIL:
        open_detail(top);
        break;
    case TOP_WISH_PAUSE:
        pause_queue(top);
        break;
    case TOP_WISH_REFRESH:
        top->next_us = 0;
        break;
    case TOP_WISH_NONE:
        break;
    }
    return true;
}

/* `all`: no more bytes came for a while. */
static bool obey_bytes(struct top *top, bool all)
{
    size_t used;
    struct top_key key;
    bool goes_on = true;

    while (goes_on && top->pending_len > 0 &&
           (used = top_key_read(top->pending, top->pending_len, all, &key)) > 0) {
        memmove(top->pending, top->pending + used, top->pending_len - used);
        top->pending_len -= used;
        goes_on = obey(top, &key);
    }
    if (top->pending_len == sizeof top->pending) /* no key is so long */
        top->pending_len = 0;
    return goes_on;
}

/* ---- the loop ---- */

static bool draw(struct top *top)
{
    struct buf frame = BUF_INIT(FRAME_BYTES_MAX);
    bool drawn;

    top->view.rows = top->screen.rows;
    top->view.columns = top->screen.columns;
    top_view_draw(&top->view, &top->snapshot, TOP_LINE_END, &frame);
    drawn = top_screen_show(&top->screen, buf_view(&frame));
    buf_deinit(&frame);
    return drawn;
}

static void look(struct top *top)
{
    struct err err = {0};

    if (refresh(top, &err)) {
        if (top->view.message_is_error)
            top->view.message = STR_NONE;
        top->view.message_is_error = false;
    } else {
        say(top, true, err.text);
    }
    top->next_us = clock_boot_us() + top->interval_ms * CLOCK_MS_US;
}

static int watch(struct top *top)
{
    for (;;) {
        int64_t left_ms;
        size_t len;
        int signo;

        if (clock_boot_us() >= top->next_us)
            look(top);
        if (!draw(top))
            return 1;
        left_ms = (top->next_us - clock_boot_us()) / CLOCK_MS_US + 1;
        if (top->pending_len > 0 && left_ms > ESCAPE_MS)
            left_ms = ESCAPE_MS;
        switch (top_screen_wait(&top->screen, left_ms, top->pending + top->pending_len,
                                sizeof top->pending - top->pending_len, &len, &signo)) {
        case TOP_EVENT_KEYS:
            top->pending_len += len;
            top->view.message = top->view.message_is_error ? top->view.message : STR_NONE;
            if (!obey_bytes(top, false))
                return 0;
            break;
        case TOP_EVENT_TIME:
            if (!obey_bytes(top, true))
                return 0;
            break;
        case TOP_EVENT_REDRAW:
            break;
        case TOP_EVENT_END:
            return signo == SIGINT || signo == 0 ? 0 : 128 + signo;
        }
    }
}

static int print_once(struct top *top)
{
    struct buf frame = BUF_INIT(FRAME_BYTES_MAX);
    struct call *call = top->call;
    int rc = 0;

    top->view.columns = call->out.columns;
    if (!refresh(top, &call->err)) {
        rc = -(int)call->err.code;
    } else {
        top_view_draw(&top->view, &top->snapshot, "\n", &frame);
        fwrite(frame.data, 1, frame.len, call->out.file);
    }
    buf_deinit(&frame);
    return rc;
}

static int run_live(struct top *top)
{
    int rc = top_screen_open(&top->screen, STDIN_FILENO, STDOUT_FILENO, &top->call->err);

    if (rc == 0)
        rc = watch(top);
    top_screen_close(&top->screen);
    return rc;
}

static struct top *top_new(struct call *call)
{
    struct str token = str_of(getenv("PERDURA_TOKEN"));
    struct top *top = calloc(1, sizeof *top);

    if (!top) {
        err_set(&call->err, ERR_MEMORY, "there is not enough memory");
        return NULL;
    }
    top->call = call;
    top->screen.signal_fd = -1;
    top->reply = BUF_INIT(REPLY_BYTES_MAX);
    for (int i = 0; i < 2; i++)
        top->arenas[i] = ARENA_INIT(ARENA_BYTES_MAX);
    top->detail_arena = ARENA_INIT(ARENA_BYTES_MAX);
    top->interval_ms = call_duration_ms(call, "interval", INTERVAL_MS);
    top->view.server = call_text(call, "server");
    top->view.colour = call->out.colour;
    top->view.unicode = call->out.unicode;
    top->http = http_client_new(top->view.server, token.len ? token : STR_NONE, &call->err);
    return top;
}

static void top_free(struct top *top)
{
    http_client_free(top->http);
    buf_deinit(&top->reply);
    for (int i = 0; i < 2; i++)
        arena_deinit(&top->arenas[i]);
    arena_deinit(&top->detail_arena);
    free(top);
}

static int run(struct call *call)
{
    struct top *top = top_new(call);
    int rc;

    if (!top)
        return -(int)call->err.code;
    if (!top->http)
        rc = -(int)call->err.code;
    else if (top->interval_ms < 100)
        rc = err_set(&call->err, ERR_USAGE, "--interval must be at least 100ms");
    else if (call_given(call, "once") || !call->out.interactive || !isatty(STDIN_FILENO))
        rc = print_once(top);
    else
        rc = run_live(top);
    top_free(top);
    return rc;
}

static const struct flag flags[] = {
    {.name = "once", .type = FLAG_BOOL, .help = "print one frame and end, as into a pipe"},
    {.name = "interval", .type = FLAG_DURATION, .value = "D", .fallback = "2s",
     .help = "how often it looks, at least 100ms"},
    {0}};

const struct command command_top = {
    .name = "top",
    .summary = "Watch queues, workers, tasks and failures live",
    .details = "Keys: tab or 1-6 for another pane, arrows or j and k for a row, enter for details "
               "(why a task waits, its last events and log lines), p pauses a queue or lets it go "
               "on, / shows only rows with a text, r looks at once, ? helps, q quits. NO_COLOR "
               "turns colours off. Into a pipe one frame is printed.",
    .example = "perdura top\n"
               "perdura top --interval 500ms --server http://10.0.0.5:7070\n"
               "perdura top --once",
    .flags = flags,
    .groups = FLAGS_CLIENT,
    .run = run,
};
