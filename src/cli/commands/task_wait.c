/* Long-polls /v1/tasks/{id}/wait: in short turns while a bar is drawn, in long ones otherwise. A
 * server that restarts meanwhile is waited for too, because the task survives that. One thread. */
#include "cli/commands/task_wait.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/frame/view.h"
#include "core/task/status.h"
#include "core/task/task.h"

#define TURN_BAR_MS 250       /* how often the bar moves */
#define TURN_QUIET_MS 30000   /* below what proxies cut */
#define TURN_HELD_UP_MS 5000  /* while it does not run: why may change */
#define WHY_AFTER_MS 2000     /* most tasks have a worker before that */
#define MARGIN_MS 10000       /* the answer may come this much after the turn's end */
#define OUTAGE_MS 30000       /* a restart takes seconds; longer is worth telling */
#define OUTAGE_PAUSE_MS 500
#define WHY_BYTES_MAX 250     /* of an error inside of a sentence */

static bool has_ended(struct call *call, struct str task)
{
    enum status status;

    return status_parse(view_member(call, task, "status"), &status) && status_ended(status);
}

static void draw(struct progress *progress, struct call *call, struct str task, int64_t elapsed_ms)
{
    struct str status = view_member(call, task, "status");
    struct str state = view_member(call, task, "state");
    struct str progress_text = json_get(task, STR("progress"));
    int64_t percent = 0;
    struct str label;

    if (!progress_text.data || !json_int64(progress_text, &percent) || percent <= 0)
        percent = PROGRESS_UNKNOWN;
    label = arena_format(&call->arena, STR_FMT "%s" STR_FMT, STR_ARG(status), state.len ? ": " : "",
                         STR_ARG(state));
    progress_draw(progress, percent, label, elapsed_ms);
}

static void pause_ms(int64_t duration_ms)
{
    struct timespec pause = {(time_t)(duration_ms / 1000), (long)(duration_ms % 1000) * 1000000};

    nanosleep(&pause, NULL);
}

static int one_turn(struct client *client, struct str id, int64_t turn_ms, struct str *task)
{
    char after[48];

    snprintf(after, sizeof after, "/wait?timeout_ms=%lld", (long long)turn_ms);
    TRY(client_call(client, "GET", client_path(client->call, "/v1/tasks/", id, after), STR_NONE,
                    turn_ms + MARGIN_MS, task));
    return client_check_object(client, *task);
}

/* One waiting: the last state seen is kept outside the arena, which every turn empties. */
struct waiting {
    struct client *client;
    struct str id;
    int64_t timeout_ms;
    int64_t start_us;
    int64_t heard_us; /* from the server, for the last time */
    int64_t why_at_us; /* when to ask why it does not run; 0 = it runs */
    struct buf last;
    struct buf told;   /* why it did not run when that was said */
    struct progress progress;
};

static int64_t turn_length(const struct waiting *waiting, int64_t left_ms)
{
    int64_t turn_ms = waiting->client->call->notes.interactive ? TURN_BAR_MS : TURN_QUIET_MS;
    int64_t why_ms = (waiting->why_at_us - clock_boot_us()) / CLOCK_MS_US + 1;

    if (why_ms > 0 && why_ms < turn_ms)
        turn_ms = why_ms;
    return left_ms >= 0 && left_ms < turn_ms ? left_ms : turn_ms;
}

static bool is_held_up(struct call *call, struct str task)
{
    enum status status;

    return status_parse(view_member(call, task, "status"), &status) && !status_ended(status) &&
           status != STATUS_RUNNING && status != STATUS_CLAIMED && status != STATUS_RECOVERING;
}

struct str task_why_hint(struct call *call, struct str why)
{
    struct str detail = json_get(why, STR("detail"));
    struct str root = json_get(detail, STR("root"));
    struct str reason, queue, type;

    if (!is_held_up(call, detail))
        return STR_NONE;
    if (root.data && json_kind(root) == JSON_OBJECT) { /* it waits for another task */
        why = root;
        detail = json_get(root, STR("detail"));
    }
    reason = view_member(call, why, "reason");
    queue = view_member(call, detail, "queue");
    type = view_member(call, detail, "type");
    if (str_is(reason, "queue_paused"))
        return arena_format(&call->arena, "'perdura queue resume " STR_FMT "' resumes it",
                            STR_ARG(queue));
    if (!str_is(reason, "no_worker"))
        return STR_NONE;
    if (str_is(queue, TASK_DEFAULT_QUEUE))
        return arena_format(&call->arena, "add a handler for " STR_FMT " under 'handlers:' in "
                            "perdura.yaml and send SIGHUP to the server, or start a worker that "
                            "has one", STR_ARG(type));
    return arena_format(&call->arena, "add a handler for " STR_FMT " with 'queues: [" STR_FMT
                        "]' under 'handlers:' in perdura.yaml and send SIGHUP to the server, or "
                        "start a worker that has one with --queues " STR_FMT, STR_ARG(type),
                        STR_ARG(queue), STR_ARG(queue));
}

/* The part of a sentence that stays, because times and counts behind it move by themselves, and the
 * reason of the task at the root of a chain. */
static struct str lasting_part(struct call *call, struct str why)
{
    struct str text = view_member(call, why, "text");
    struct str root = json_pointer(why, STR("/detail/root/reason"), &call->arena);
    size_t len = 0;

    while (len < text.len && text.data[len] != '(' && text.data[len] != ',')
        len++;
    return arena_format(&call->arena, STR_FMT STR_FMT, (int)len, text.data,
                        STR_ARG(root.data ? root : STR("")));
}

/* Says once why the task does not run, and again when that changes. Without an answer, it keeps
 * waiting. */
static void tell_why(struct waiting *waiting)
{
    struct call *call = waiting->client->call;
    struct str why = STR_NONE;
    struct str text, lasting, hint;

    waiting->why_at_us = clock_boot_us() + TURN_HELD_UP_MS * CLOCK_MS_US;
    if (client_get(waiting->client, client_path(call, "/v1/tasks/", waiting->id, "/why"),
                   &why) < 0) {
        call->err = (struct err){0};
        return;
    }
    text = view_member(call, why, "text");
    lasting = lasting_part(call, why);
    if (!text.len || !is_held_up(call, json_get(why, STR("detail"))) ||
        str_is(view_member(call, why, "reason"), "ready") ||
        str_eq(lasting, buf_view(&waiting->told)))
        return;
    buf_reset(&waiting->told);
    buf_str(&waiting->told, lasting);
    progress_clear(&waiting->progress);
    hint = task_why_hint(call, why);
    terminal_line_clean(&call->notes, COLOUR_YELLOW,
                        arena_format(&call->arena, "waiting: " STR_FMT "%s" STR_FMT, STR_ARG(text),
                                     hint.data ? "; " : "",
                                     STR_ARG(hint.data ? hint : STR(""))));
    fflush(call->notes.file);
}

static bool is_outage(int rc)
{
    return rc == -ERR_UNAVAILABLE || rc == -ERR_REQUEST_TIMEOUT || rc == -ERR_IO;
}

/* 1 = ended, 0 = continue, negative = give up. */
static int wait_once(struct waiting *waiting)
{
    struct call *call = waiting->client->call;
    int64_t elapsed_ms = (clock_boot_us() - waiting->start_us) / CLOCK_MS_US;
    int64_t left_ms = waiting->timeout_ms - elapsed_ms;
    struct str seen;
    int rc;

    if (waiting->timeout_ms < 0)
        left_ms = -1;
    else if (left_ms < 0)
        left_ms = 0;
    arena_reset(&call->arena);
    rc = one_turn(waiting->client, waiting->id, turn_length(waiting, left_ms), &seen);
    if (is_outage(rc) && waiting->last.len > 0 && left_ms != 0 &&
        clock_boot_us() - waiting->heard_us < OUTAGE_MS * CLOCK_MS_US) {
        pause_ms(OUTAGE_PAUSE_MS);
        return 0;
    }
    if (rc < 0)
        return rc;
    waiting->heard_us = clock_boot_us();
    buf_reset(&waiting->last);
    buf_str(&waiting->last, seen);
    draw(&waiting->progress, call, seen, (waiting->heard_us - waiting->start_us) / CLOCK_MS_US);
    if (!is_held_up(call, seen))
        waiting->why_at_us = 0;
    else if (waiting->why_at_us == 0)
        waiting->why_at_us = waiting->heard_us + WHY_AFTER_MS * CLOCK_MS_US;
    else if (waiting->heard_us >= waiting->why_at_us)
        tell_why(waiting);
    return left_ms == 0 || has_ended(call, seen);
}

/* ---- Ctrl-C ---- */

/* What is left to say when a person interrupts the wait: the handler of the signal reads it. */
static struct {
    char text[512];
    volatile sig_atomic_t len;
} farewell;

/* The task continues when the command that waits for it ends. */
static void on_interrupt(int signo)
{
    ssize_t ignored = write(STDERR_FILENO, farewell.text, (size_t)farewell.len);

    (void)ignored;
    raise(signo); /* as if there were no handler: it is reset, and runs after this one */
}

static void interrupt_begin(const struct call *call, struct str id, struct sigaction *before)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    int len = snprintf(farewell.text, sizeof farewell.text,
                       "%sperdura: task " STR_FMT " continues; 'perdura task wait " STR_FMT
                       "' waits for it, 'perdura task cancel " STR_FMT "' cancels it\n",
                       call->notes.interactive ? "\r\033[K" : "", STR_ARG(id), STR_ARG(id),
                       STR_ARG(id));

    farewell.len = len > 0 && (size_t)len < sizeof farewell.text ? len : 0;
    sigaction(SIGINT, NULL, before);
    if (before->sa_handler == SIG_DFL) /* in the background of a script it stays ignored */
        sigaction(SIGINT, &action, NULL);
}

int task_wait(struct client *client, struct str id, int64_t timeout_ms, struct str *task)
{
    struct call *call = client->call;
    struct arena kept = call->arena;
    struct waiting waiting = {.client = client, .id = id, .timeout_ms = timeout_ms,
                              .start_us = clock_boot_us(), .heard_us = clock_boot_us(),
                              .why_at_us = clock_boot_us() + WHY_AFTER_MS * CLOCK_MS_US,
                              .last = BUF_INIT(CLIENT_REPLY_BYTES_MAX),
                              .told = BUF_INIT(CLIENT_REPLY_BYTES_MAX)};
    struct sigaction before;
    int rc = 0;

    progress_init(&waiting.progress, &call->notes);
    /* A wait may last for days: its turns get an arena of their own. */
    call->arena = ARENA_INIT(2 * CLIENT_REPLY_BYTES_MAX);
    interrupt_begin(call, id, &before);
    while (rc == 0)
        rc = wait_once(&waiting);
    sigaction(SIGINT, &before, NULL);
    progress_clear(&waiting.progress);
    arena_deinit(&call->arena);
    call->arena = kept;
    *task = rc > 0 ? arena_str(&call->arena, buf_view(&waiting.last)) : STR_NONE;
    buf_deinit(&waiting.last);
    buf_deinit(&waiting.told);
    if (rc > 0 && !task->data)
        return err_no_memory(&call->err);
    return rc < 0 ? rc : 0;
}

static struct str why_not_completed(struct call *call, struct str task)
{
    struct str error = view_member(call, task, "error");

    if (str_eq(error, view_member(call, task, "status")))
        return STR_NONE; /* it was cancelled, which is all there is to say */
    return error.len ? error : view_member(call, task, "last_error");
}

/* Where more stands than the sentence tells. A handler that wrote no line has no log to read. */
static const char *where_more(struct client *client, struct str id, struct str why)
{
    struct call *call = client->call;
    struct str reply = STR_NONE, line;
    struct json_iter lines;

    if (client_get(client, client_path(call, "/v1/tasks/", id, "/logs?limit=1"), &reply) < 0)
        call->err = (struct err){0}; /* what is known is printed all the same */
    json_begin(view_items(reply), &lines);
    if (json_next_element(&lines, &line))
        return "logs";
    return why.len > WHY_BYTES_MAX ? "show" : NULL;
}

static int not_completed(struct client *client, struct str id, struct str status, struct str why)
{
    struct call *call = client->call;
    const char *more = where_more(client, id, why);
    struct str hint = STR("");

    if (more)
        hint = arena_format(&call->arena, "; 'perdura task %s " STR_FMT "' shows %s", more,
                            STR_ARG(id), strcmp(more, "logs") == 0 ? "why" : "all of it");
    return err_set(&call->err, ERR_INTERNAL, "task " STR_FMT " ended as " STR_FMT "%s" STR_FMT
                   STR_FMT, STR_ARG(id), STR_ARG(status), why.len ? ": " : "",
                   STR_ARG(str_cut(why, WHY_BYTES_MAX)), STR_ARG(hint));
}

int task_wait_print(struct client *client, struct str id, struct str task, bool json)
{
    struct call *call = client->call;
    struct str status = view_member(call, task, "status");
    struct str result = json_get(task, STR("result"));
    struct str why = why_not_completed(call, task);

    if (json)
        terminal_json(&call->out, task);
    else if (result.data && json_kind(result) != JSON_NULL)
        terminal_json(&call->out, result);
    if (str_is(status, "completed"))
        return 0;
    if (!has_ended(call, task))
        return err_set(&call->err, ERR_REQUEST_TIMEOUT, "task " STR_FMT " has not ended yet; it is "
                       STR_FMT "; 'perdura task %s " STR_FMT "' %s", STR_ARG(id), STR_ARG(status),
                       is_held_up(call, task) ? "why" : "wait", STR_ARG(id),
                       is_held_up(call, task) ? "says what it is waiting for"
                                              : "continues to wait");
    if (str_is(why, "no_handler"))
        return err_set(&call->err, ERR_INTERNAL, "task " STR_FMT " ended as " STR_FMT ": no "
                       "worker has a handler for its type; add one under 'handlers:' in "
                       "perdura.yaml, or run a worker that has one", STR_ARG(id), STR_ARG(status));
    if (str_is(status, "partial"))
        return err_set(&call->err, ERR_INTERNAL, "task " STR_FMT " ended as partial; 'perdura "
                       "recovery run " STR_FMT "' continues it", STR_ARG(id), STR_ARG(id));
    return not_completed(client, id, status, why);
}

int task_wait_and_print(struct client *client, struct str id, int64_t timeout_ms)
{
    struct call *call = client->call;
    bool json = call_given(call, "json");
    struct str task = STR_NONE;

    if (!json) {
        terminal_line(&call->out, COLOUR_NONE, id);
        fflush(call->out.file); /* known even when the waiting is interrupted */
    }
    TRY(task_wait(client, id, timeout_ms, &task));
    return task_wait_print(client, id, task, json);
}
