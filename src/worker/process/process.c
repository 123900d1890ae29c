/* The worker's side of the shim: pipes, the poll loop, timeout and grace. A run ends when the shim
 * says that no process is left, not when a pipe ends: a handler may close its output and keep
 * running, and a grandchild may keep it open. Blocks the calling thread; any number at once. */
#include "worker/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/bounds.h"
#include "worker/process/output_line.h"
#include "worker/process/process_leftovers.h"
#include "worker/process/process_shim.h"

#define RETRY_TAKE_MS 20    /* how long a line that found no room waits */
#define LAST_WAIT_MS 1000   /* at least this long is waited for a killed process to be gone */
#define DRAIN_US CLOCK_SECOND_US /* for output left in pipes when all processes are dead */
#define STARTS_MAX 5       /* of one run, each lost with a spawner that was killed just then */

enum phase { PHASE_RUNNING, PHASE_TERMINATING, PHASE_KILLING, PHASE_ABANDONED };

struct stream {
    int fd;
    struct line_reader reader;
    bool waiting; /* its next line found no room */
};

struct run {
    const struct process_spec *spec;
    struct process_result *result;
    struct stream streams[PROCESS_STREAM_COUNT];
    int input_fd;
    size_t input_at;
    int command_fd;
    int status_fd;
    pid_t shim; /* -1 = it has not begun */
    int starts;
    enum phase phase;
    int64_t deadline_us; /* of the phase */
    bool ended;
    bool gone;
    int64_t kept_bytes;
    sigset_t old_mask;
};

/* ---- making it ready ---- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static struct str path_of(char *const *environment)
{
    for (; environment && *environment; environment++)
        if (strncmp(*environment, "PATH=", 5) == 0)
            return str_of(*environment + 5);
    return STR(PROCESS_PATH_DEFAULT);
}

/* The files to try, in one allocation; searched here because the child may not allocate. */
static char **make_paths(const struct process_spec *spec)
{
    struct str search = path_of(spec->environment);
    size_t name_len = strlen(spec->command[0]);
    size_t head = (PROCESS_PATHS_MAX + 1) * sizeof(char *);
    char **paths = calloc(1, head + search.len + PROCESS_PATHS_MAX * (name_len + 3));
    char *text = (char *)paths + head;
    size_t at = 0;

    if (!paths)
        return NULL;
    if (name_len == 0 || strchr(spec->command[0], '/')) {
        paths[0] = memcpy(text, spec->command[0], name_len + 1);
        return paths;
    }
    for (int count = 0; count < PROCESS_PATHS_MAX && at <= search.len; count++) {
        const char *folder = search.data + at;
        const char *colon = memchr(folder, ':', search.len - at);
        size_t len = colon ? (size_t)(colon - folder) : search.len - at;

        paths[count] = text;
        memcpy(text, len ? folder : ".", len ? len : 1);
        text += len ? len : 1;
        *text++ = '/';
        memcpy(text, spec->command[0], name_len + 1);
        text += name_len + 1;
        at += len + 1;
    }
    return paths;
}

/* Index 0 is read from. The worker's end does not block; both close on exec. */
static int make_pipe(int *worker_end, int *shim_end, bool worker_reads, struct err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
    *worker_end = fds[worker_reads ? 0 : 1];
    *shim_end = fds[worker_reads ? 1 : 0];
    fcntl(*worker_end, F_SETFL, O_NONBLOCK);
    return 0;
}

static int make_pipes(struct run *run, int shim[SHIM_FD_COUNT], struct err *err)
{
    TRY(make_pipe(&run->input_fd, &shim[0], false, err));
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        TRY(make_pipe(&run->streams[i].fd, &shim[i + 1], true, err));
    TRY(make_pipe(&run->command_fd, &shim[SHIM_FD_COMMAND], false, err));
    return make_pipe(&run->status_fd, &shim[SHIM_FD_STATUS], true, err);
}

static int make_plan(const struct process_spec *spec, int *fd, struct err *err)
{
    char **paths = make_paths(spec);
    struct process_plan plan = {.paths = paths,
                                .command = spec->command,
                                .environment = spec->environment,
                                .directory = spec->directory,
                                .limits = spec->limits,
                                .identity = spec->identity};

    TRY_MEMORY(paths);
    *fd = process_plan_write(&plan);
    free(paths);
    if (*fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot hand a command over: %s", strerror(errno));
    return 0;
}

static int start(struct run *run, struct err *err)
{
    int shim[SHIM_FD_COUNT];
    int rc;

    for (int i = 0; i < SHIM_FD_COUNT; i++)
        shim[i] = -1;
    run->starts++;
    rc = make_plan(run->spec, &shim[SHIM_FD_PLAN], err);
    if (rc == 0)
        rc = make_pipes(run, shim, err);
    if (rc == 0)
        rc = spawner_start(run->spec->spawner, shim, err);
    for (int i = 0; i < SHIM_FD_COUNT; i++)
        close_fd(&shim[i]);
    return rc;
}

/* ---- what comes back ---- */

static void not_started(struct run *run, const struct shim_message *message)
{
    static const char *const steps[] = {"make a process", "change the user", "enter the folder",
                                        "run"};
    const char *what = message->step == SHIM_STEP_DIRECTORY ? run->spec->directory
                                                            : run->spec->command[0];

    run->result->end = PROCESS_NOT_STARTED;
    run->result->exit_code =
        message->value == ENOENT && message->step == SHIM_STEP_EXEC ? 127 : 126;
    snprintf(run->result->error, sizeof run->result->error, "cannot %s '%.120s': %s",
             steps[message->step], what, strerror(message->value));
}

static void ended(struct run *run, int status)
{
    if (WIFSIGNALED(status)) {
        run->result->end = PROCESS_SIGNALLED;
        run->result->signal = WTERMSIG(status);
        run->result->core_dumped = WCOREDUMP(status);
    } else {
        run->result->end = PROCESS_EXITED;
        run->result->exit_code = WEXITSTATUS(status);
    }
}

static int64_t last_wait_us(const struct run *run)
{
    int64_t wait_ms = run->spec->grace_ms > LAST_WAIT_MS ? run->spec->grace_ms : LAST_WAIT_MS;

    return wait_ms * CLOCK_MS_US;
}

static void close_pipes(struct run *run)
{
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        close_fd(&run->streams[i].fd);
    close_fd(&run->input_fd);
    close_fd(&run->command_fd);
    close_fd(&run->status_fd);
}

/* A shim that never said a word has started nothing: its spawner was killed with the request. */
static bool start_again(struct run *run)
{
    if (run->shim >= 0 || run->starts >= STARTS_MAX || run->phase != PHASE_RUNNING)
        return false;
    close_pipes(run);
    run->input_at = 0;
    return start(run, NULL) == 0;
}

static void read_status(struct run *run)
{
    struct shim_message message;
    ssize_t got = read(run->status_fd, &message, sizeof message);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got != (ssize_t)sizeof message) {
        if (start_again(run))
            return;
        if (!run->ended)
            run->result->end = PROCESS_SHIM_DIED;
        spawner_note_shim(run->spec->spawner, run->shim, false);
        spawner_end_strays(run->spec->spawner);
        process_kill_leftovers(run->spec->environment);
        run->gone = true;
        return;
    }
    if (message.event == SHIM_BEGUN) {
        run->shim = message.value;
        spawner_note_shim(run->spec->spawner, run->shim, true);
        return;
    }
    if (message.event == SHIM_GONE) {
        spawner_note_shim(run->spec->spawner, run->shim, false);
        run->gone = true;
        return;
    }
    run->ended = true;
    if (message.event == SHIM_NOT_STARTED)
        not_started(run, &message);
    else
        ended(run, message.value);
    if (run->phase != PHASE_ABANDONED) { /* what is left of its descendants is being killed */
        run->phase = PHASE_KILLING;
        run->deadline_us = clock_boot_us() + last_wait_us(run);
    }
}

static void write_input(struct run *run)
{
    const struct str input = run->spec->input;
    ssize_t wrote = 0;

    while (run->input_at < input.len) {
        wrote = write(run->input_fd, input.data + run->input_at, input.len - run->input_at);
        if (wrote < 0)
            break;
        run->input_at += (size_t)wrote;
    }
    if (run->input_at == input.len || (errno != EAGAIN && errno != EINTR))
        close_fd(&run->input_fd); /* all written, or the handler does not want it */
}

/* Output beyond the maximum is dropped; of control lines the sink decides, since outcomes and
 * checkpoints among them always count. */
static bool over_limit(const struct run *run, enum process_stream stream, size_t len)
{
    return stream != PROCESS_CONTROL &&
           run->kept_bytes + (int64_t)len > run->spec->output_bytes_max;
}

static void take_lines(struct run *run, enum process_stream which, bool at_end)
{
    struct stream *stream = &run->streams[which];
    const struct process_sink *sink = &run->spec->sink;
    struct str line;
    bool cut;

    stream->waiting = false;
    while (line_reader_next(&stream->reader, at_end, &line, &cut)) {
        if (over_limit(run, which, line.len)) {
            run->kept_bytes = run->spec->output_bytes_max; /* no small line slips in later */
            line_reader_discard(&stream->reader);
            stream->reader.skipping = true;
            return;
        }
        if (!sink->take(sink->ctx, which, line, cut)) {
            stream->waiting = true;
            return;
        }
        if (which != PROCESS_CONTROL)
            run->kept_bytes += (int64_t)line.len + 1;
        line_reader_consume(&stream->reader, line, cut);
    }
}

/* One read. False when there is nothing more to read for now. */
static bool read_stream(struct run *run, enum process_stream which)
{
    struct stream *stream = &run->streams[which];
    ssize_t got = line_reader_fill(&stream->reader, stream->fd);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        close_fd(&stream->fd);
        return false;
    }
    if (which != PROCESS_CONTROL && run->kept_bytes >= run->spec->output_bytes_max)
        line_reader_discard(&stream->reader);
    else
        take_lines(run, which, false);
    return true;
}

/* ---- stopping ---- */

static void command(struct run *run, char what)
{
    ssize_t wrote = write(run->command_fd, &what, 1);

    (void)wrote; /* a shim that died is seen at the status pipe */
}

static bool stop_wanted(const struct run *run)
{
    return run->spec->stop && atomic_load(run->spec->stop) != 0;
}

static bool is_hurried(const struct run *run)
{
    return run->spec->at_once && atomic_load(run->spec->at_once) != 0;
}

static void terminate(struct run *run, int64_t now_us)
{
    command(run, SHIM_TERMINATE);
    run->phase = PHASE_TERMINATING;
    run->deadline_us = now_us + run->spec->grace_ms * CLOCK_MS_US;
}

/* Moves to the next phase when its time has come. */
static void advance(struct run *run, int64_t now_us)
{
    if (run->phase == PHASE_RUNNING && stop_wanted(run)) {
        run->result->stopped = true;
        terminate(run, now_us);
    } else if (run->phase == PHASE_RUNNING && now_us >= run->deadline_us) {
        run->result->timed_out = true;
        terminate(run, now_us);
    }
    if (run->phase == PHASE_TERMINATING && (now_us >= run->deadline_us || is_hurried(run))) {
        if (run->spec->killing)
            run->spec->killing(run->spec->sink.ctx);
        command(run, SHIM_KILL);
        run->phase = PHASE_KILLING;
        run->deadline_us = now_us + last_wait_us(run);
    }
    if (run->phase == PHASE_KILLING && now_us >= run->deadline_us)
        run->phase = PHASE_ABANDONED;
}

static int wait_ms(const struct run *run, int64_t now_us)
{
    int64_t left_ms = (run->deadline_us - now_us + 999) / 1000;

    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        if (run->streams[i].waiting && left_ms > RETRY_TAKE_MS)
            left_ms = RETRY_TAKE_MS;
    if (left_ms < 0)
        return 0;
    return left_ms > 60000 ? 60000 : (int)left_ms;
}

static void drain_wake(int fd)
{
    uint64_t count;
    ssize_t got = fd >= 0 ? read(fd, &count, sizeof count) : 0;

    (void)got; /* non-blocking: the flag counts, not the number */
}

static void turn(struct run *run)
{
    enum { AT_STATUS, AT_WAKE, AT_INPUT, AT_STREAMS, AT_COUNT = AT_STREAMS + PROCESS_STREAM_COUNT };
    struct pollfd fds[AT_COUNT] = {
        [AT_STATUS] = {run->status_fd, POLLIN, 0},
        [AT_WAKE] = {stop_wanted(run) && is_hurried(run) ? -1 : run->spec->wake_fd, POLLIN, 0},
        [AT_INPUT] = {run->input_fd, POLLOUT, 0},
    };

    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        fds[AT_STREAMS + i] =
            (struct pollfd){run->streams[i].waiting ? -1 : run->streams[i].fd, POLLIN, 0};
    if (poll(fds, AT_COUNT, wait_ms(run, clock_boot_us())) < 0)
        return;
    if (fds[AT_WAKE].revents)
        drain_wake(run->spec->wake_fd);
    if (fds[AT_INPUT].revents)
        write_input(run);
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++) {
        if (run->streams[i].waiting)
            take_lines(run, (enum process_stream)i, false);
        else if (fds[AT_STREAMS + i].revents)
            read_stream(run, (enum process_stream)i);
    }
    if (fds[AT_STATUS].revents)
        read_status(run);
}

/* All processes are dead: what they wrote is in the pipes. Waits for room until asked to stop; an
 * outside process that was handed a pipe and keeps writing is cut off at the deadline. */
static void drain(struct run *run, enum process_stream which)
{
    struct stream *stream = &run->streams[which];
    int64_t deadline_us = clock_boot_us() + DRAIN_US;
    bool more = true;

    while (more || stream->waiting) {
        if (stream->waiting) {
            struct pollfd fd = {stop_wanted(run) ? -1 : run->spec->wake_fd, POLLIN, 0};

            if (stop_wanted(run)) {
                run->result->words_lost = run->result->words_lost || which == PROCESS_CONTROL;
                break;
            }
            if (poll(&fd, 1, RETRY_TAKE_MS) > 0)
                drain_wake(run->spec->wake_fd);
            deadline_us = clock_boot_us() + DRAIN_US; /* this wait was ours, not the writer's */
        } else if (stream->fd < 0 || clock_boot_us() > deadline_us) {
            more = false;
        } else {
            more = read_stream(run, which);
        }
        if (stream->waiting || !more)
            take_lines(run, which, !more);
    }
    line_reader_discard(&stream->reader);
    run->result->dropped_bytes += stream->reader.dropped_bytes;
}

/* ---- the whole ---- */

static void finish(struct run *run)
{
    if (run->phase == PHASE_ABANDONED && !run->gone) {
        run->result->end = PROCESS_ABANDONED;
        run->result->leftover = (struct process_leftover){run->shim, run->status_fd};
        run->status_fd = -1;
    }
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        drain(run, (enum process_stream)i);
}

/* A SIGPIPE that became pending while it was blocked is taken away before it can be delivered. */
static void restore_signals(const struct run *run)
{
    struct timespec now = {0, 0};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    if (!sigismember(&run->old_mask, SIGPIPE))
        sigtimedwait(&set, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &run->old_mask, NULL);
}

static void run_init(struct run *run, const struct process_spec *spec,
                     struct process_result *result)
{
    *result = (struct process_result){.leftover = {0, -1}};
    *run = (struct run){.spec = spec,
                        .result = result,
                        .input_fd = -1,
                        .command_fd = -1,
                        .status_fd = -1,
                        .shim = -1,
                        .deadline_us = INT64_MAX};
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++) {
        run->streams[i].fd = -1;
        line_reader_init(&run->streams[i].reader, i == PROCESS_CONTROL
                                                      ? PROCESS_CONTROL_LINE_BYTES
                                                      : BOUND_LOG_LINE_BYTES);
    }
    if (spec->timeout_ms > 0 && spec->timeout_ms < BOUND_DELAY_MS)
        run->deadline_us = clock_boot_us() + spec->timeout_ms * CLOCK_MS_US;
}

int process_run(const struct process_spec *spec, struct process_result *result, struct err *err)
{
    struct run run;
    sigset_t all;
    int rc;

    run_init(&run, spec, result);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &run.old_mask); /* a handler that does not read must not
                                                           kill us by SIGPIPE */
    rc = start(&run, err);
    if (rc < 0)
        goto out;
    for (;;) {
        advance(&run, clock_boot_us());
        if (run.gone || run.phase == PHASE_ABANDONED)
            break;
        turn(&run);
    }
    finish(&run);
out:
    restore_signals(&run);
    close_pipes(&run);
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        line_reader_deinit(&run.streams[i].reader);
    return rc;
}

bool process_leftover_wait(struct process_leftover *leftover, const atomic_int *stop, int wake_fd)
{
    struct shim_message message;

    while (leftover->shim) {
        struct pollfd fds[2] = {{leftover->status_fd, POLLIN, 0}, {wake_fd, POLLIN, 0}};
        ssize_t got;

        if (stop && atomic_load(stop) != 0)
            return false;
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents)
            return false;
        got = read(leftover->status_fd, &message, sizeof message);
        if (got == 0 || (got > 0 && message.event == SHIM_GONE))
            leftover->shim = 0;
    }
    process_leftover_close(leftover);
    return true;
}

void process_leftover_close(struct process_leftover *leftover)
{
    close_fd(&leftover->status_fd);
    leftover->shim = 0;
}

void process_signal_name(int number, char out[24])
{
    const char *name = sigabbrev_np(number);

    if (name)
        snprintf(out, 24, "SIG%s", name);
    else
        snprintf(out, 24, "SIG%d", number);
}
