/* perdura top: a live view. Asks the server every few seconds, draws, and does what keys say. What
 * is shown is made in top_model.c, how in top_view.c; the terminal is top_screen.c. What is asked
 * is in top_fetch.c, and a thread of its own waits for the answers (top_asker.c): whatever the
 * server does, keys are obeyed. This thread draws. */
#include "cli/frame/cli_client.h"
#include "cli/top/top_asker.h"
#include "cli/top/top_screen.h"
#include "cli/top/top_view.h"

#include "base/clock.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FRAME_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define ESCAPE_MS 50     /* a lone escape is one when nothing follows for so long */
#define INTERVAL_MS 2000
#define SILENT_MS 1000   /* a server that takes longer is said not to answer ... */
#define SILENT_TICK_MS 500 /* ... and for how long is drawn so often */

struct top {
    struct call *call;
    struct client_token token;
    struct top_fetch fetch;
    struct top_asker *asker;  /* NULL for one frame */
    struct top_screen screen;
    struct top_view view;
    struct top_snapshot snapshot;
    struct top_job detail, pause; /* wanted, and not given to the asker yet ... */
    bool wants_detail, wants_pause; /* ... if so */
    uint64_t serial;          /* of the detail that was wanted last */
    struct arena alert_arena;
    char message[TOP_KEY_BYTES + 64];
    char silence[100];
    char title[TOP_KEY_BYTES];
    char pending[64];         /* bytes of a key that is not whole */
    size_t pending_len;
    int64_t interval_ms;
    int64_t next_us;          /* the next refresh */
};

static void say(struct top *top, bool is_error, const char *text)
{
    snprintf(top->message, sizeof top->message, "%s", text);
    top->view.message = str_of(top->message);
    top->view.message_is_error = is_error;
}

/* ---- what keys ask for ---- */

static bool job_about(struct top_job *job, enum top_job_kind kind, const struct top_row *row)
{
    *job = (struct top_job){.kind = kind, .paused = row->paused, .recurring = row->recurring};
    if (row->key.len >= sizeof job->key)
        return false;
    snprintf(job->key, sizeof job->key, STR_FMT, STR_ARG(row->key));
    return true;
}

static void want_pause(struct top *top)
{
    if (top->wants_pause)
        say(top, true, "the previous pause has not been sent yet");
    else
        top->wants_pause = job_about(&top->pause, TOP_JOB_PAUSE,
                                     top_view_selected(&top->view, &top->snapshot));
}

static void show_alert(struct top *top, const struct top_row *row)
{
    struct top_lines *lines = &top->view.detail;

    arena_reset(&top->alert_arena);
    *lines = (struct top_lines){.arena = &top->alert_arena};
    for (size_t i = 0; i < TOP_CELLS_MAX; i++)
        if (row->cells[i].len)
            top_lines_add(lines, STR_FMT, STR_ARG(row->cells[i]));
}

/* The lines come with the answer. Until then there are none: the ones shown last belong to the
 * asker from here on. */
static void want_detail(struct top *top)
{
    const struct top_row *row = top_view_selected(&top->view, &top->snapshot);
    struct str title = row->key.data ? row->key : row->cells[0];
    bool is_alert = top->view.pane == TOP_ALERTS;

    snprintf(top->title, sizeof top->title, "%.*s",
             (int)str_cut(title, sizeof top->title - 1).len, title.data ? title.data : "");
    top->view.detail_title = str_of(top->title);
    top->view.detail = (struct top_lines){0};
    top->view.detail_from = 0;
    top->view.mode = TOP_DETAIL;
    top->wants_detail = !is_alert && job_about(&top->detail, TOP_JOB_DETAIL, row);
    top->view.detail_waits = top->wants_detail;
    top->detail.pane = top->view.pane;
    top->detail.serial = ++top->serial;
    if (is_alert)
        show_alert(top, row);
}

/* False: enough. */
static bool obey(struct top *top, const struct top_key *key)
{
    switch (top_view_key(&top->view, &top->snapshot, key)) {
    case TOP_WISH_QUIT:
        return false;
    case TOP_WISH_DETAIL:
        want_detail(top);
        break;
    case TOP_WISH_PAUSE:
        want_pause(top);
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

/* ---- the server ---- */

static void take_refresh(struct top *top, const struct top_answer *answer)
{
    top->next_us = clock_boot_us() + top->interval_ms * CLOCK_MS_US;
    if (answer->err.code) {
        say(top, true, answer->err.text); /* what was known stays on the screen */
        return;
    }
    top->snapshot = answer->snapshot;
    if (top->view.message_is_error)
        top->view.message = STR_NONE;
    top->view.message_is_error = false;
}

static void take_detail(struct top *top, const struct top_answer *answer)
{
    if (top->view.mode != TOP_DETAIL || answer->job.serial != top->serial)
        return; /* it is no longer shown */
    top->view.detail = answer->lines;
    top->view.detail_waits = false;
}

static void take_pause(struct top *top, const struct top_answer *answer)
{
    char said[TOP_KEY_BYTES + 32];

    snprintf(said, sizeof said, "queue %s %s", answer->job.key,
             answer->job.paused ? "is resumed" : "is paused");
    say(top, answer->err.code != 0, answer->err.code ? answer->err.text : said);
    top->next_us = 0;
}

static void take_answer(struct top *top)
{
    const struct top_answer *answer = top_asker_take(top->asker);

    if (!answer)
        return;
    switch (answer->job.kind) {
    case TOP_JOB_REFRESH:
        take_refresh(top, answer);
        break;
    case TOP_JOB_DETAIL:
        take_detail(top, answer);
        break;
    case TOP_JOB_PAUSE:
        take_pause(top, answer);
        break;
    }
}

/* What a person waits for comes first. */
static void give_job(struct top *top)
{
    static const struct top_job refresh = {.kind = TOP_JOB_REFRESH};

    if (top_asker_busy(top->asker))
        return;
    if (top->wants_pause)
        top->wants_pause = !top_asker_give(top->asker, &top->pause);
    else if (top->wants_detail)
        top->wants_detail = !top_asker_give(top->asker, &top->detail);
    else if (clock_boot_us() >= top->next_us)
        top_asker_give(top->asker, &refresh);
}

/* "no answer since 14:03:22 (12.3s)", when it is so. */
static void tell_silence(struct top *top)
{
    int64_t since_us = atomic_load(&top->fetch.silent_since_us);
    int64_t for_ms = since_us ? (clock_boot_us() - since_us) / CLOCK_MS_US : 0;
    time_t since_s = (time_t)((clock_wall_us() - for_ms * CLOCK_MS_US) / CLOCK_SECOND_US);
    char clock[16] = "", duration[CLOCK_SPAN_BYTES];
    struct tm local;

    top->view.silence = STR_NONE;
    if (for_ms < SILENT_MS)
        return;
    if (localtime_r(&since_s, &local))
        strftime(clock, sizeof clock, "%H:%M:%S", &local);
    clock_format_ms(for_ms, duration);
    snprintf(top->silence, sizeof top->silence, "no answer since %s (%s)", clock, duration);
    top->view.silence = str_of(top->silence);
}

/* ---- the loop ---- */

static bool draw(struct top *top)
{
    BUF_AUTO struct buf frame = BUF_INIT(FRAME_BYTES_MAX);

    tell_silence(top);
    top->view.rows = top->screen.rows;
    top->view.columns = top->screen.columns;
    top_view_draw(&top->view, &top->snapshot, TOP_LINE_END, &frame);
    return top_screen_show(&top->screen, buf_view(&frame));
}

static int64_t wait_ms(struct top *top)
{
    int64_t left_ms = (top->next_us - clock_boot_us()) / CLOCK_MS_US + 1;
    bool ticks = top_asker_busy(top->asker) || atomic_load(&top->fetch.silent_since_us) != 0;

    if (ticks && (left_ms > SILENT_TICK_MS || top_asker_busy(top->asker)))
        left_ms = SILENT_TICK_MS;
    if (top->pending_len > 0 && left_ms > ESCAPE_MS)
        left_ms = ESCAPE_MS;
    return left_ms;
}

static int watch(struct top *top)
{
    for (;;) {
        size_t len;
        int signo;

        give_job(top);
        if (!draw(top))
            return 1;
        switch (top_screen_wait(&top->screen, wait_ms(top), top_asker_fd(top->asker),
                                top->pending + top->pending_len,
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
        case TOP_EVENT_ANSWER:
            take_answer(top);
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
    struct top_answer *answer = calloc(1, sizeof *answer);
    BUF_AUTO struct buf frame = BUF_INIT(FRAME_BYTES_MAX);
    struct call *call = top->call;
    int rc = 0;

    if (!answer)
        return err_no_memory(&call->err);
    top->view.columns = call->out.columns;
    top_fetch_do(&top->fetch, &(struct top_job){.kind = TOP_JOB_REFRESH}, answer);
    if (answer->err.code) {
        call->err = answer->err;
        rc = answer->err.code == ERR_UNAUTHORIZED
                 ? client_refused_token(call, &top->token, STR_NONE) : -(int)call->err.code;
    } else {
        top_view_draw(&top->view, &answer->snapshot, "\n", &frame);
        fwrite(frame.data, 1, frame.len, call->out.file);
    }
    free(answer);
    return rc;
}

/* The terminal is restored before this waits for the thread. */
static int run_live(struct top *top)
{
    struct err *err = &top->call->err;
    int rc = top_screen_open(&top->screen, STDIN_FILENO, STDOUT_FILENO, err);

    if (rc == 0) {
        top->asker = top_asker_start(&top->fetch, err);
        rc = top->asker ? watch(top) : -(int)err->code;
    }
    top_screen_close(&top->screen);
    top_asker_stop(top->asker);
    return rc;
}

static struct top *top_new(struct call *call)
{
    struct top *top = err_calloc(sizeof *top, &call->err);

    if (!top)
        return NULL;
    top->call = call;
    top->screen.signal_fd = -1;
    top->alert_arena = ARENA_INIT(1024 * 1024);
    top->interval_ms = call_duration_ms(call, "interval", INTERVAL_MS);
    top->view.server = call_text(call, "server");
    top->view.colour = call->out.colour;
    top->view.unicode = call->out.unicode;
    return top;
}

static void top_free(struct top *top)
{
    top_fetch_deinit(&top->fetch);
    arena_deinit(&top->alert_arena);
    free(top);
}

static int run(struct call *call)
{
    struct top *top = top_new(call);
    int rc;

    if (!top)
        return -(int)call->err.code;
    rc = client_find_token(call, &top->token);
    if (rc == 0)
        rc = top_fetch_init(&top->fetch, top->view.server, top->token.text, &call->err);
    if (rc == 0)
        rc = client_set_up(call, top->fetch.http);
    if (rc == 0 && top->interval_ms < 100)
        rc = err_set(&call->err, ERR_USAGE, "--interval must be at least 100ms");
    else if (rc == 0 && (call_given(call, "once") || !call->out.interactive ||
                         !isatty(STDIN_FILENO)))
        rc = print_once(top);
    else if (rc == 0)
        rc = run_live(top);
    top_free(top);
    return rc;
}

static const struct flag flags[] = {
    {.name = "once", .type = FLAG_BOOL, .help = "print one frame and exit, as for a pipe"},
    {.name = "interval", .type = FLAG_DURATION, .value = "D", .fallback = "2s",
     .help = "how often it refreshes, at least 100ms"},
    {0}};

const struct command command_top = {
    .name = "top", .summary = "Watch queues, workers, tasks and failures live",
    .details = "Keys: tab or 1-6 for another pane, arrows or j and k for a row, enter for "
               "details (why a task waits, its last events and log lines), p pauses or resumes "
               "a queue, / shows only rows with a text, r refreshes now, ? helps, q quits. "
               "NO_COLOR turns colours off. If its output is a pipe, it prints one frame.",
    .example = "perdura top\n"
               "perdura top --interval 500ms --server http://10.0.0.5:7070\n"
               "perdura top --once",
    .flags = flags, .groups = FLAGS_CLIENT, .run = run};
