/* One inbox: its thread, and what it tells about itself. The thread begins a session at the engine,
 * connects, marks what the session before took and did not mark, and then takes rows. After any
 * failure it begins there again, after a growing pause: so every failure has one way out, and
 * nothing is remembered over it but what the store noted. */
#include "node/inboxes/inboxes.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"
#include "node/inboxes/inbox_source.h"
#include "store/store.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK_US (5 * CLOCK_SECOND_US)   /* at least as often, because a hint may get lost */
#define PAUSE_US_MIN (250 * CLOCK_MS_US)
#define PAUSE_US_MAX (30 * CLOCK_SECOND_US)
#define STANDBY_US CLOCK_SECOND_US
#define BOUND_US CLOCK_SECOND_US        /* a bound of the namespace puts rows off */
#define MEMORY_MAX ((size_t)64 << 20)

/* A file changes before its rows can be seen: how long after the hint to look again. */
static const int64_t again_us[] = {1 * CLOCK_MS_US, 5 * CLOCK_MS_US, 25 * CLOCK_MS_US,
                                   200 * CLOCK_MS_US};
#define AGAIN_COUNT (sizeof again_us / sizeof *again_us)

struct inbox_run {
    struct engine *engine;
    const struct inbox_rule *rule;
    const struct log *log;
    struct inbox_source *source;
    pthread_t thread;
    int stop_fd;
    atomic_bool stop;
    pthread_mutex_t mutex; /* of the view */
    struct inbox_view view;
    /* the thread's own: */
    struct arena arena;    /* of a look */
    int64_t session;
    int64_t hinted_us;     /* when something changed last; 0 = looked at long enough since */
    size_t agains;         /* looks since then */
};

/* ---- what is shown ---- */

static void show(struct inbox_run *run, const char *state, bool connected, const char *error)
{
    LOCKED(&run->mutex);

    run->view.state = state;
    run->view.connected = connected;
    snprintf(run->view.error, sizeof run->view.error, "%s", error);
}

static void show_lag(struct inbox_run *run, const struct inbox_row *first)
{
    int64_t created_us, lag_us = 0;
    LOCKED(&run->mutex);

    if (first && first->created_at.data && clock_parse(first->created_at, &created_us))
        lag_us = clock_wall_us() - created_us;
    run->view.lag_ms = lag_us > 0 ? lag_us / CLOCK_MS_US : 0;
}

static void show_taken(struct inbox_run *run, const struct inbox_row *rows, uint32_t count)
{
    int64_t damaged = 0, taken = 0;

    for (uint32_t i = 0; i < count; i++) {
        taken += rows[i].verdict == INBOX_TAKEN;
        if (rows[i].verdict == INBOX_DAMAGED && damaged++ == 0)
            LOG(run->log, LOG_WARN, "inbox.damaged", KS("inbox", run->rule->name),
                KI("row", rows[i].id), KS("reason", rows[i].error));
    }
    LOCKED(&run->mutex);
    run->view.taken += taken;
    run->view.damaged += damaged;
    if (taken)
        run->view.last_taken_us = clock_wall_us();
}

void inbox_run_view(struct inbox_run *run, struct inbox_view *view)
{
    LOCKED(&run->mutex);

    *view = run->view;
}

/* ---- one look ---- */

static int call(struct inbox_run *run, struct inbox_request *request, struct err *err)
{
    request->base.kind = REQUEST_INBOX;
    request->base.arena = &run->arena;
    request->rule = run->rule;
    if (request->op != INBOX_OPEN)
        request->session = run->session;
    if (engine_call(run->engine, &request->base) == 0)
        return 0;
    *err = request->base.err;
    return -(int)err->code;
}

/* The rows of a look, as far as they fit. */
static int read_rows(struct inbox_run *run, struct inbox_row **rows, uint32_t *count, bool *more,
                     struct err *err)
{
    const struct inbox_source_verbs *verbs = run->source->verbs;
    struct inbox_size *sizes;
    uint32_t found;

    *count = 0;
    TRY(verbs->sizes(run->source, &run->arena, &sizes, &found, err));
    if (found == 0)
        return verbs->rest(run->source, err);
    *count = inbox_fit(sizes, found);
    *more = *count < found || found == INBOX_ROWS_MAX;
    *rows = TRY_MEMORY(arena_alloc_array(&run->arena, *count, sizeof **rows));
    for (uint32_t i = 0; i < *count; i++) {
        const char *fault = inbox_size_fault(&sizes[i]);

        (*rows)[i] = (struct inbox_row){.id = sizes[i].id, .too_large = fault != NULL,
                                        .error = fault ? str_of(fault) : STR_NONE};
    }
    return verbs->read(run->source, &run->arena, *rows, *count, err);
}

/* *next_us: how long until the next look; 0 = at once, -1 = when something changes. */
static int look(struct inbox_run *run, int64_t *next_us, struct err *err)
{
    struct inbox_request take = {.op = INBOX_TAKE};
    bool more = false;

    arena_reset(&run->arena);
    *next_us = -1;
    TRY(read_rows(run, &take.rows, &take.count, &more, err));
    show_lag(run, take.count ? &take.rows[0] : NULL);
    if (take.count == 0)
        return 0;
    FAULT_POINT("inbox.read");
    TRY(call(run, &take, err));
    FAULT_POINT("inbox.taken");
    TRY(run->source->verbs->mark(run->source, take.rows, take.count, false, err));
    FAULT_POINT("inbox.marked");
    show_taken(run, take.rows, take.count);
    if (take.rows[take.count - 1].verdict == INBOX_WAITS)
        *next_us = BOUND_US;
    else if (more)
        *next_us = 0;
    else
        show_lag(run, NULL);
    return 0;
}

/* ---- between looks ---- */

static bool stops(const struct inbox_run *run)
{
    return atomic_load(&run->stop);
}

/* Until the stop or, with fd >= 0, until that can be read. */
static void rest(const struct inbox_run *run, int fd, int64_t wait_us)
{
    struct pollfd fds[] = {{.fd = run->stop_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    if (wait_us > 0)
        (void)poll(fds, fd < 0 ? 1 : 2, (int)((wait_us + CLOCK_MS_US - 1) / CLOCK_MS_US));
}

/* When the next look after a hint is due, counted from the hint; -1 = there is none. */
static int64_t due_again_us(const struct inbox_run *run)
{
    return run->hinted_us && run->agains < AGAIN_COUNT ? run->hinted_us + again_us[run->agains]
                                                       : -1;
}

/* Waits until a look is due. */
static int await(struct inbox_run *run, struct err *err)
{
    int64_t until_us = clock_boot_us() + LOOK_US;
    bool changed = false;

    while (!stops(run)) {
        int64_t now_us = clock_boot_us(), again_at_us = due_again_us(run);

        TRY(run->source->verbs->changed(run->source, &changed, err));
        if (changed) {
            run->hinted_us = now_us;
            run->agains = 0;
            return 0;
        }
        if (again_at_us >= 0 && now_us >= again_at_us) {
            run->agains++;
            return 0;
        }
        if (now_us >= until_us) { /* nothing came: does this node lead still? */
            struct inbox_request look = {.op = INBOX_LOOK};

            arena_reset(&run->arena);
            return call(run, &look, err);
        }
        rest(run, run->source->fd,
             (again_at_us >= 0 && again_at_us < until_us ? again_at_us : until_us) - now_us);
    }
    return 0;
}

/* From the beginning of a session until something fails, or the stop. */
static int work(struct inbox_run *run, bool *worked, struct err *err)
{
    struct inbox_request open = {.op = INBOX_OPEN};
    int64_t next_us;

    arena_reset(&run->arena);
    TRY(call(run, &open, err));
    run->session = open.session;
    TRY(run->source->verbs->connect(run->source, err));
    if (open.count)
        TRY(run->source->verbs->mark(run->source, open.rows, open.count, true, err));
    show(run, "ready", true, "");
    LOG(run->log, LOG_INFO, "inbox.ready", KS("inbox", run->rule->name),
        KI("session", run->session), KI("marked_again", open.count));
    while (!stops(run)) {
        TRY(look(run, &next_us, err));
        *worked = true;
        if (next_us < 0)
            TRY(await(run, err));
        else
            rest(run, -1, next_us);
    }
    return 0;
}

static void *run_thread(void *ctx)
{
    struct inbox_run *run = ctx;
    int64_t pause_us = PAUSE_US_MIN;
    char told[sizeof run->view.error] = "";

    while (!stops(run)) {
        struct err err = {0};
        bool worked = false, stands_by;

        if (work(run, &worked, &err) == 0)
            break;
        run->source->verbs->close(run->source);
        if (stops(run))
            break;
        stands_by = err.code == ERR_CONFLICT;
        show(run, stands_by ? "standby" : "failed", false, stands_by ? "" : err.text);
        if (!stands_by && strcmp(told, err.text) != 0)
            LOG(run->log, LOG_WARN, "inbox.failed", KS("inbox", run->rule->name),
                KC("reason", err.text));
        snprintf(told, sizeof told, "%s", worked || stands_by ? "" : err.text);
        if (worked)
            pause_us = PAUSE_US_MIN;
        rest(run, -1, stands_by ? STANDBY_US : pause_us);
        if (!stands_by)
            pause_us = pause_us * 2 < PAUSE_US_MAX ? pause_us * 2 : PAUSE_US_MAX;
    }
    return NULL;
}

/* ---- start and stop ---- */

static void describe(struct inbox_run *run)
{
    const struct inbox_rule *rule = run->rule;
    struct inbox_view *view = &run->view;

    snprintf(view->name, sizeof view->name, STR_FMT, STR_ARG(rule->name));
    snprintf(view->namespace_name, sizeof view->namespace_name, STR_FMT,
             STR_ARG(rule->namespace_name));
    snprintf(view->table, sizeof view->table, STR_FMT, STR_ARG(rule->table));
    store_shown(rule->store, view->store, sizeof view->store);
    view->state = "connecting";
}

static void free_run(struct inbox_run *run)
{
    if (run->source)
        run->source->verbs->free(run->source);
    if (run->stop_fd >= 0)
        close(run->stop_fd);
    arena_deinit(&run->arena);
    pthread_mutex_destroy(&run->mutex);
    free(run);
}

struct inbox_run *inbox_run_start(struct engine *engine, const struct inbox_rule *rule,
                                  const struct log *log, struct err *err)
{
    struct inbox_run *run = err_calloc(sizeof *run, err);

    if (!run)
        return NULL;
    run->engine = engine;
    run->rule = rule;
    run->log = log;
    run->arena = ARENA_INIT(MEMORY_MAX);
    pthread_mutex_init(&run->mutex, NULL);
    describe(run);
    run->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (run->stop_fd < 0)
        err_set(err, ERR_IO, "cannot make a descriptor for an inbox");
    else
        run->source = inbox_source_new(rule, run->stop_fd, err);
    if (!run->source) {
        free_run(run);
        return NULL;
    }
    if (thread_start(&run->thread, 0, run_thread, run) != 0) {
        err_set(err, ERR_MEMORY, "cannot start the thread of an inbox");
        free_run(run);
        return NULL;
    }
    return run;
}

const struct inbox_rule *inbox_run_rule(const struct inbox_run *run)
{
    return run->rule;
}

void inbox_run_stop_begin(struct inbox_run *run)
{
    const uint64_t one = 1;

    atomic_store(&run->stop, true);
    if (write(run->stop_fd, &one, sizeof one) < 0)
        LOG(run->log, LOG_WARN, "inbox.wake_failed", KS("inbox", run->rule->name));
}

void inbox_run_stop(struct inbox_run *run)
{
    inbox_run_stop_begin(run);
    pthread_join(run->thread, NULL);
    free_run(run);
}
