/* A task as a C function. The path of a function that does nothing is kept short: no memory, no
 * system call but the clock; its start and its outcome meet in one batch of the reporter. */
#include "worker/handlers/handler_function.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/bounds.h"
#include "worker/process/control_line.h"
#include "worker/process/output_line.h"

struct function_call {
    struct handler_run *run;
    int64_t deadline_us; /* INT64_MAX = none */
    struct str result;
    struct str error;
    bool retryable;
    int64_t delay_ms;    /* -1 = not said */
    bool wait_children;
    struct buf text;     /* of a log message */
};

const struct work *function_call_work(const struct function_call *call)
{
    return call->run->work;
}

static enum stop_reason stop_of(const struct function_call *call)
{
    return (enum stop_reason)atomic_load_explicit(call->run->stop, memory_order_relaxed);
}

bool function_call_cancelled(const struct function_call *call)
{
    return stop_of(call) != STOP_NONE ||
           (call->deadline_us != INT64_MAX && clock_boot_us() >= call->deadline_us);
}

static int check_json(const char *name, struct str value, size_t bytes_max, struct err *err)
{
    if (!value.data)
        return 0;
    if (value.len > bytes_max)
        return err_set_field(err, ERR_TOO_LARGE, name, "'%s' has %zu bytes; at most %zu are kept",
                             name, value.len, bytes_max);
    return json_check(value, NULL, err);
}

/* Any other report; op must not be an outcome. JSON fields are checked. */
static int add_report(struct function_call *call, const struct report *report, struct err *err)
{
    const struct {
        const char *name;
        struct str value;
        size_t bytes_max;
    } values[] = {
        {"data", report->data, BOUND_DATA_BYTES},
        {"metadata", report->metadata, BOUND_METADATA_BYTES},
        {"detail", report->detail, BOUND_METADATA_BYTES},
        {"database_state", report->database_state, BOUND_DATA_BYTES},
        {"file_state", report->file_state, BOUND_DATA_BYTES},
        {"context", report->context, BOUND_METADATA_BYTES},
        {"tasks", report->tasks, PROCESS_CONTROL_LINE_BYTES},
    };

    if (report->op >= REPORT_COMPLETE)
        return err_set(err, ERR_INVALID, "an outcome is what the function returns");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        TRY(check_json(values[i].name, values[i].value, values[i].bytes_max, err));
    if (stop_of(call) == STOP_LOST || stop_of(call) == STOP_CANCEL)
        return err_set(err, ERR_STALE_LEASE, "the task is not held any more; return soon");
    call->run->report(call->run, report, true);
    return 0;
}

int function_call_progress(struct function_call *call, int64_t progress, struct str state,
                           struct err *err)
{
    struct report report = worker_report(REPORT_PROGRESS);

    if (progress > 100)
        return err_set_field(err, ERR_INVALID, "progress", "progress is a number from 0 to 100");
    report.progress = progress;
    report.state = state;
    return add_report(call, &report, err);
}

int function_call_checkpoint(struct function_call *call, struct str name, int64_t progress,
                             struct str data, struct err *err)
{
    struct report report = worker_report(REPORT_CHECKPOINT);

    report.name = name;
    report.progress = progress;
    report.data = data;
    return add_report(call, &report, err);
}

int function_call_log(struct function_call *call, enum log_severity level, struct str message,
                      struct str context, struct err *err)
{
    struct report report = worker_report(REPORT_LOG);

    output_text(&call->text, message, false, BOUND_LOG_LINE_BYTES);
    report.level = level;
    report.message = buf_view(&call->text);
    report.context = context;
    return add_report(call, &report, err);
}

int function_call_data(struct function_call *call, struct str data, struct err *err)
{
    struct report report = worker_report(REPORT_PROGRESS);

    report.data = data;
    return add_report(call, &report, err);
}

int function_call_spawn(struct function_call *call, struct str tasks, struct err *err)
{
    struct report report = worker_report(REPORT_SPAWN);

    report.tasks = tasks;
    return add_report(call, &report, err);
}

int function_call_result(struct function_call *call, struct str result, struct err *err)
{
    TRY(check_json("result", result, BOUND_RESULT_BYTES, err));
    call->result = arena_str(call->run->arena, result);
    if (result.data && !call->result.data)
        return err_no_memory(err);
    return 0;
}

void function_call_fail(struct function_call *call, bool retryable, struct str text)
{
    call->error = arena_str(call->run->arena, str_cut(text, BOUND_ERROR_BYTES));
    call->retryable = retryable;
}

void function_call_delay(struct function_call *call, int64_t delay_ms, bool wait_children)
{
    call->delay_ms = delay_ms;
    call->wait_children = wait_children;
}

static struct report timeout_report(const struct function_call *call)
{
    struct report report = worker_report(REPORT_FAIL);
    int64_t timeout_ms = call->run->work->timeout_ms;
    bool whole = timeout_ms % 1000 == 0;

    report.error = arena_format(call->run->arena, "timeout after %lld%s",
                                (long long)(whole ? timeout_ms / 1000 : timeout_ms),
                                whole ? "s" : "ms");
    report.timed_out = true;
    return report;
}

static struct report fail_report(const struct function_call *call, struct str fallback)
{
    struct report report = worker_report(REPORT_FAIL);

    report.error = call->error.data ? call->error : fallback;
    report.retryable = call->retryable;
    return report;
}

/* Asked to stop by pause or shutdown, a function that fails or continues is given back instead. */
static struct report decide(const struct function_call *call, int returned)
{
    enum stop_reason stop = stop_of(call);
    struct report report;

    if (stop == STOP_CANCEL || stop == STOP_LOST)
        return worker_report(REPORT_OP_COUNT);
    if (call->deadline_us != INT64_MAX && clock_boot_us() >= call->deadline_us)
        return timeout_report(call);
    switch ((enum function_return)returned) {
    case FUNCTION_DONE:
    case FUNCTION_PARTIAL:
        report = worker_report(returned == FUNCTION_DONE ? REPORT_COMPLETE : REPORT_PARTIAL);
        report.result = call->result;
        return report;
    case FUNCTION_CONTINUE:
        if (stop != STOP_NONE && call->delay_ms < 0)
            return worker_report(REPORT_RELEASE);
        report = worker_report(REPORT_CONTINUE);
        report.delay_ms = call->delay_ms;
        report.wait_children = call->wait_children;
        return report;
    case FUNCTION_FAIL:
        if (stop != STOP_NONE && !call->error.data)
            return worker_report(REPORT_RELEASE);
        return fail_report(call, STR("failed"));
    }
    return fail_report(call, STR("the function returned an unknown value"));
}

static void run_function(const struct handler *handler, struct handler_run *run)
{
    const struct function_handler *function = handler->what;
    struct report started = worker_report(REPORT_START);
    struct function_call call = {.run = run,
                                 .deadline_us = INT64_MAX,
                                 .retryable = true,
                                 .delay_ms = -1,
                                 .text = BUF_INIT(BOUND_LOG_LINE_BYTES + 64)};
    int returned;

    if (run->work->timeout_ms > 0 && run->work->timeout_ms < BOUND_DELAY_MS)
        call.deadline_us = clock_boot_us() + run->work->timeout_ms * CLOCK_MS_US;
    if (!run->started)
        run->report(run, &started, true);
    returned = function->fn(&call, function->ctx);
    run->outcome = decide(&call, returned);
    buf_deinit(&call.text);
}

const struct handler_verbs handler_function_verbs = {run_function, false, true};
