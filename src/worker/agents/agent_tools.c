/* The tool calls of one answer, side by side: which may begin, what is stored before and after, and
 * what becomes of those that may have happened. The slot's thread; each call has a thread of its
 * own while it runs (tool_job.c). */
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/thread.h"
#include "worker/agents/tool_job.h"
#include "worker/process/control_line.h"

#define SIDE_BY_SIDE 4
#define LOOK_MS 500
#define STACK_BYTES (512 * 1024)

struct tool_wave {
    struct agent_run *run;
    struct tool_job jobs[SIDE_BY_SIDE];
    int done_fd;
    uint32_t running;
    bool unsafe; /* what was begun may not be repeated: its result is stored before all else */
    bool halted; /* nothing more is begun, and what runs shall stop */
};

static const struct tool_rule *rule_of(const struct agent_run *run, const struct tool_call *call)
{
    for (uint32_t i = 0; i < run->box.count; i++)
        if (str_eq(run->box.tools[i]->name, call->name))
            return run->box.tools[i];
    return NULL;
}

static bool is_open(const struct pending_call *call)
{
    return !call->has_result && !str_is(call->call.name, FINAL_ANSWER);
}

static bool add_result(struct agent_run *run, uint32_t call, struct str text)
{
    return agent_fine(run, text.data ? conversation_add_result(&run->talk, call, text, &run->err)
                                     : err_no_memory(&run->err));
}

/* ---- calls that may have happened before a crash ---- */

static bool ask_about(struct agent_run *run, const struct pending_call *call)
{
    agent_ask(run, arena_format(run->arena, "Tool " STR_FMT " may have run before a crash; resume "
                                "with the decision retry, skip or fail",
                                STR_ARG(call->call.name)));
    return false;
}

/* False: the run is over. */
static bool settle_one(struct agent_run *run, uint32_t index, enum resume_decision decision)
{
    struct pending_call *call = &run->talk.calls[index];
    const struct tool_rule *rule = rule_of(run, &call->call);

    if (!rule || rule->safe_to_retry || decision == RESUME_RETRY) {
        call->begun = false;
        return true;
    }
    if (decision == RESUME_SKIP)
        return add_result(run, index, STR("error: skipped by a person after a crash; it may have "
                                          "happened or not"));
    if (decision == RESUME_NONE)
        return ask_about(run, call);
    agent_fail(run, "tool_uncertain", false,
               arena_format(run->arena, "tool " STR_FMT " may have run before a crash; a person "
                            "decided to fail the task", STR_ARG(call->call.name)));
    return false;
}

static bool settle(struct agent_run *run)
{
    enum resume_decision decision = run->decision;

    run->decision = RESUME_NONE;
    for (uint32_t i = 0; i < run->talk.calls_count; i++)
        if (is_open(&run->talk.calls[i]) && run->talk.calls[i].begun &&
            !settle_one(run, i, decision))
            return false;
    return true;
}

/* ---- beginning ---- */

/* Marks calls as begun, as many as there is room for; how many, and whether that must be stored
 * before they begin. */
static uint32_t choose(struct tool_wave *wave, uint32_t *chosen, bool *unsafe)
{
    struct conversation *talk = &wave->run->talk;
    uint32_t count = 0;

    for (uint32_t i = 0; i < talk->calls_count && wave->running + count < SIDE_BY_SIDE; i++) {
        struct pending_call *call = &talk->calls[i];
        const struct tool_rule *rule;

        if (!is_open(call) || call->begun)
            continue;
        rule = rule_of(wave->run, &call->call);
        call->begun = true;
        *unsafe |= rule && !rule->safe_to_retry;
        chosen[count++] = i;
    }
    return count;
}

static struct tool_job *free_job(struct tool_wave *wave)
{
    for (uint32_t i = 0; i < SIDE_BY_SIDE; i++)
        if (!wave->jobs[i].in_use)
            return &wave->jobs[i];
    return NULL;
}

/* A configuration that was read again may not have it any more. */
static bool begin(struct tool_wave *wave, uint32_t index)
{
    struct agent_run *run = wave->run;
    const struct tool_call *call = &run->talk.calls[index].call;
    struct tool_job *job = free_job(wave);
    const struct tool_rule *rule;
    struct str arguments;
    struct err why = {0};
    int rc = 0;

    if (toolbox_check(&run->box, call, &rule, &arguments, &why) < 0)
        return add_result(run, index, arena_format(run->arena, "error: %s", why.text));
    FAULT_POINT("agent.tool");
    if (!tool_job_init(job, run, rule, index, arguments, wave->done_fd) ||
        (rc = thread_start(&job->thread, STACK_BYTES, tool_job_main, job)) != 0) {
        tool_job_deinit(job);
        return add_result(run, index, arena_format(run->arena, "error: the tool cannot be started: "
                                                   "%s", rc ? strerror(rc) : "no memory"));
    }
    wave->running++;
    return true;
}

static void tell_state(struct tool_wave *wave, const uint32_t *chosen, uint32_t count)
{
    struct agent_run *run = wave->run;

    if (count == 0)
        return;
    agent_state(run, wave->running + count > 1
                         ? arena_format(run->arena, "calling %u tools", wave->running + count)
                         : arena_format(run->arena, "calling " STR_FMT,
                                        STR_ARG(run->talk.calls[chosen[0]].call.name)));
}

/* One checkpoint: the results so far, and what begins now. */
static bool begin_more(struct tool_wave *wave)
{
    uint32_t chosen[SIDE_BY_SIDE];
    bool unsafe = false;
    uint32_t count = wave->halted ? 0 : choose(wave, chosen, &unsafe);

    if (count == 0 && wave->running == 0)
        return true; /* all of it is over: agent_call_tools stores the results */
    wave->unsafe |= unsafe;
    tell_state(wave, chosen, count);
    if (!agent_keep(wave->run, wave->running == 0, unsafe))
        return false;
    if (unsafe && agent_stopped(wave->run))
        return true; /* begun in the checkpoint, but not here: undone below */
    for (uint32_t i = 0; i < count; i++)
        if (!begin(wave, chosen[i]))
            return false;
    return true;
}

/* ---- ends ---- */

static void log_job(struct agent_run *run, const struct tool_job *job)
{
    struct report report = worker_report(REPORT_LOG);

    report.level = job->is_error ? SEVERITY_WARN : SEVERITY_INFO;
    report.message = arena_format(run->arena, "tool " STR_FMT " %s after %lld ms, %llu bytes%s"
                                  STR_FMT, STR_ARG(job->rule->name),
                                  job->is_error ? "failed" : "ended",
                                  (long long)((job->ended_us - job->began_us) / CLOCK_MS_US),
                                  (unsigned long long)job->output_bytes,
                                  job->errors.len ? "; it wrote: " : "",
                                  STR_ARG(buf_view(&job->errors)));
    if (report.message.data)
        run->base->report(run->base, &report, true);
}

static void take_leftover(struct agent_run *run, struct tool_job *job)
{
    if (!job->leftover.shim)
        return;
    if (run->base->leftover.shim)
        process_leftover_close(&job->leftover);
    else
        run->base->leftover = job->leftover;
}

static bool collect_one(struct tool_wave *wave, struct tool_job *job)
{
    struct agent_run *run = wave->run;
    bool fine = true;

    pthread_join(job->thread, NULL);
    FAULT_POINT("agent.tool_ended");
    log_job(run, job);
    take_leftover(run, job);
    if (!job->cut_short) /* else it is unknown how far it came */
        fine = add_result(run, job->call, buf_view(&job->result));
    else if (job->unbegun)
        run->talk.calls[job->call].begun = false;
    tool_job_deinit(job);
    wave->running--;
    return fine;
}

/* How many ended; their results are in the conversation. */
static uint32_t collect(struct tool_wave *wave)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SIDE_BY_SIDE; i++)
        if (wave->jobs[i].in_use && atomic_load(&wave->jobs[i].ended)) {
            collect_one(wave, &wave->jobs[i]);
            count++;
        }
    return count;
}

static void drain(int fd)
{
    uint64_t count;

    if (read(fd, &count, sizeof count) < 0)
        return; /* it was read already */
}

/* A pause lets them end: their end is near, and nothing is gained by a repeat. */
static bool must_halt(const struct agent_run *run)
{
    return atomic_load(run->base->stop) >= STOP_SHUTDOWN || run->over ||
           clock_boot_us() >= run->deadline_us;
}

static void halt(struct tool_wave *wave)
{
    wave->halted = true;
    for (uint32_t i = 0; i < SIDE_BY_SIDE; i++)
        if (wave->jobs[i].in_use)
            tool_job_stop(&wave->jobs[i]);
}

static void wait_some(struct tool_wave *wave)
{
    struct pollfd fds[] = {{wave->run->base->wake_fd, POLLIN, 0}, {wave->done_fd, POLLIN, 0}};

    while (collect(wave) == 0) {
        if (must_halt(wave->run))
            halt(wave); /* again: at_once may have been set since */
        if (poll(fds, 2, LOOK_MS) <= 0)
            continue;
        if (fds[0].revents)
            drain(fds[0].fd);
        if (fds[1].revents)
            drain(fds[1].fd);
    }
}

/* What was marked and has not begun did not happen. */
static void unmark(struct tool_wave *wave, bool *begun_here)
{
    for (uint32_t i = 0; i < wave->run->talk.calls_count; i++)
        if (!begun_here[i] && !wave->run->talk.calls[i].has_result)
            wave->run->talk.calls[i].begun = false;
}

static void run_wave(struct tool_wave *wave, bool *begun_here)
{
    struct agent_run *run = wave->run;

    while (begin_more(wave)) {
        for (uint32_t i = 0; i < SIDE_BY_SIDE; i++)
            if (wave->jobs[i].in_use)
                begun_here[wave->jobs[i].call] = true;
        if (wave->running == 0)
            break;
        wait_some(wave);
        if (atomic_load(run->base->stop) != STOP_NONE)
            wave->halted = true;
    }
    while (wave->running) {
        if (run->over)
            halt(wave);
        wait_some(wave);
    }
    unmark(wave, begun_here);
}

void agent_call_tools(struct agent_run *run)
{
    struct tool_wave wave = {.run = run, .done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    bool begun_here[MODEL_CALLS_MAX] = {false};

    if (wave.done_fd < 0) {
        agent_fine(run, err_set(&run->err, ERR_MEMORY, "no descriptor is left for tools"));
        return;
    }
    if (settle(run))
        run_wave(&wave, begun_here);
    close(wave.done_fd);
    if (!run->over)
        agent_keep(run, false, wave.unsafe);
}
