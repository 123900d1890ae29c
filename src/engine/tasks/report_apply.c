/* Reports of workers, element by element, each under its lease: what another lease says changes
 * nothing. Outcomes are in report_outcome.c. */
#include "base/fault.h"
#include "base/hash.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/log/redact.h"
#include "core/queue_name.h"
#include "core/task/replay.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/lose.h"
#include "engine/leases/workers.h"
#include "engine/tasks/awaited.h"
#include "engine/tasks/enqueue.h"
#include "engine/tasks/reports.h"

#include <stdio.h>

#define REFUSAL_BYTES_MAX 1024
#define LAST_WORDS " (further refusals of this attempt are not logged)"
#define REFUSAL_CPU_US_MAX 10000 /* to redact it, because all requests wait for this thread */
#define RELEASED_HASH 1 /* what stands for a release where outcomes have their hash */
#define SQL_HASH 2 /* of an outcome with SQL: what the worker says afterwards does not count */

static bool is_outcome(enum report_op op)
{
    return op == REPORT_COMPLETE || op == REPORT_CONTINUE || op == REPORT_FAIL ||
           op == REPORT_PARTIAL;
}

/* Of everything an outcome says, so that the same one sent again is recognised. */
static int64_t content_hash(const struct report *report)
{
    const struct str parts[] = {report->result, report->data, report->error, report->details,
                                report->question};
    uint64_t hash = hash_bytes64(&report->op, sizeof report->op, 1);
    int64_t numbers[] = {report->delay_ms, report->wait_children, report->retryable};

    if (report->op == REPORT_RELEASE) /* says nothing else */
        return RELEASED_HASH;
    if (report->by_sql)
        return SQL_HASH;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hash = hash_bytes64(parts[i].data ? parts[i].data : "", parts[i].len, hash + i);
    hash = hash_bytes64(numbers, sizeof numbers, hash);
    return (int64_t)(hash >> 1 | 1); /* never 0, which means none */
}

static void refuse(struct report_result *result, enum err_code code, const char *message)
{
    result->code = code;
    snprintf(result->message, sizeof result->message, "%s", message);
}

static int start(struct batch *batch, struct task *task, struct err *err)
{
    struct execution *execution;

    if (task->status != STATUS_CLAIMED)
        return 0;
    task->lease.started_at_us = batch->now_us;
    execution = batch_execution(batch, task, err);
    if (!execution)
        return -(int)err->code;
    execution->status = EXECUTION_RUNNING;
    execution->started_at_us = batch->now_us;
    execution->start_seq = ++task->event_seq;
    TRY(batch_tell_attempt(batch, task, CALLBACK_STARTED, err));
    return batch_move(batch, task, STATUS_RUNNING, MOVE_START, "Running", ACTOR_WORKER, STR_NONE,
                      err);
}

static int write_log(struct batch *batch, struct task *task, const struct report *report,
                     struct err *err)
{
    struct log_entry entry = {.id = uuid7_new(&batch->engine->ids, batch->now_us),
                              .task_id = task->id,
                              .task_type = queue_name_full(task->spec.namespace_name,
                                                           task->spec.type, &batch->arena),
                              .level = report->level,
                              .message = report->message,
                              .context = report->context,
                              .logged_at_us = batch->now_us};
    struct execution *run = NULL;

    FAULT_POINT("report.log");
    TRY_MEMORY(entry.task_type.data);
    if (task->execution_slot > 0)
        run = &batch->executions.items[task->execution_slot - 1];
    else if (batch->store->verbs->execution_load(batch->store, task->lease.execution_key,
                                                 &batch->arena, &run, err) < 0)
        return -(int)err->code;
    if (!run)
        return 0; /* removed by retention while it ran: nowhere to write it */
    entry.execution_id = run->id;
    entry.bound = logchain_about(run->attempt_number, run->worker_id, run->correlation_id,
                                 entry.about) == 0;
    return batch_log(batch, &entry, err);
}

/* What a handler says of itself, as an event. The last one that is kept says so in the log. */
static int tell(struct batch *batch, struct task *task, struct str detail, struct err *err)
{
    struct report line = {.op = REPORT_LOG, .level = SEVERITY_WARN,
                          .message = STR(BOUND_EVENTS_TEXT)};

    if (task->event_seq >= BOUND_EVENTS_TOLD)
        return 0;
    if (task->event_seq + 1 == BOUND_EVENTS_TOLD)
        TRY(write_log(batch, task, &line, err));
    return batch_event(batch, task, ACTOR_WORKER, detail, err);
}

static struct str progress_told(struct batch *batch, const struct task *task,
                                const struct report *report)
{
    struct str detail = report->detail;

    if (detail.data && replay_tells_progress(detail))
        return batch_text(batch, "{ " STR_FMT, STR_ARG(str_span(detail.data + 1, detail.len - 1)));
    return detail.data || report->progress < 0
               ? detail : batch_text(batch, "{\"progress\":%lld}", (long long)task->progress);
}

static int progress(struct batch *batch, struct task *task, const struct report *report,
                    struct err *err)
{
    bool state_changes = report->state.data && !str_eq(report->state, task->state) &&
                         task->event_seq < BOUND_EVENTS_TOLD; /* a state is what its events say */

    if (report->progress >= 0)
        task->progress = report->progress;
    if (state_changes)
        task->state = report->state;
    if (report->metadata.data)
        task->about.metadata = report->metadata;
    if (report->data.data) {
        task->data = report->data;
        task->has_data = true;
    }
    TRY(batch_touch(batch, task, err));
    if (!state_changes)
        return 0;
    return tell(batch, task, progress_told(batch, task, report), err);
}

struct str checkpoint_short(const struct checkpoint *row, struct arena *arena)
{
    BUF_AUTO struct buf text = BUF_INIT(4096);

    buf_format(&text, "{\"seq\":%lld,\"name\":", (long long)row->seq);
    json_write_string(&text, row->name);
    buf_format(&text, ",\"progress\":%lld}", (long long)row->progress);
    return text.failed ? STR_NONE : arena_str(arena, buf_view(&text));
}

/* Of the event: enough to know later what it was, when the row itself was thinned out. */
static struct str checkpoint_told(struct batch *batch, const struct checkpoint *row)
{
    BUF_AUTO struct buf text = BUF_INIT(4096);

    buf_format(&text, "{\"checkpoint\":%lld,\"name\":", (long long)row->seq);
    json_write_string(&text, row->name);
    buf_format(&text, ",\"progress\":%lld}", (long long)row->progress);
    return text.failed ? STR_NONE : arena_str(&batch->arena, buf_view(&text));
}

static int checkpoint(struct batch *batch, struct task *task, const struct report *report,
                      struct err *err)
{
    struct checkpoint row = {.id = uuid7_new(&batch->engine->ids, batch->now_us),
                             .task_key = task->key,
                             .name = report->name.data ? report->name : STR("checkpoint"),
                             .progress = report->progress >= 0 ? report->progress : task->progress,
                             .description = report->description,
                             .data = report->data.data ? report->data : STR("{}"),
                             .database_state = report->database_state,
                             .file_state = report->file_state,
                             .valid = true,
                             .created_at_us = batch->now_us};

    if (batch_flush(batch, err) < 0) /* the row refers to a task that must be there */
        return -(int)err->code;
    TRY(batch->store->verbs->checkpoint_insert(batch->store, &task->id, &row, err));
    FAULT_POINT("report.checkpoint");
    task->progress = row.progress;
    task->resume.checkpoint = checkpoint_short(&row, &batch->arena);
    TRY(batch_touch(batch, task, err));
    return tell(batch, task, checkpoint_told(batch, &row), err);
}

static int spawn(struct batch *batch, struct task *task, struct report *report,
                 struct report_result *result, struct err *err)
{
    uint32_t count = report->inputs_count;
    struct task_input *inputs = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *inputs));
    struct task **tasks = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *tasks));
    bool *duplicate = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *duplicate));
    bool *differs = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *differs));

    if (batch->store->full) {
        refuse(result, ERR_STORAGE_FULL, "the disk of the store is full; try again");
        return 0;
    }
    for (uint32_t i = 0; i < count; i++)
        inputs[i] = report->inputs[i]; /* what the parent gives them does not outlive the batch */
    if (enqueue_tasks(batch, inputs, count, ACTOR_WORKER, task, &batch->arena, tasks, duplicate,
                      differs, err) < 0) {
        if (err_http_status(err->code) >= 500)
            return -(int)err->code;
        refuse(result, err->code, err->text);
        err->code = ERR_NONE;
        return 0;
    }
    FAULT_POINT("report.spawn");
    return batch_touch(batch, task, err);
}

static int apply_op(struct batch *batch, struct task *task, struct report *report,
                    struct report_result *result, struct err *err)
{
    if (report->op != REPORT_RELEASE)
        TRY(start(batch, task, err));
    task->lease.last_heartbeat_us = batch->now_us;
    switch (report->op) {
    case REPORT_START:
        return 0;
    case REPORT_PROGRESS:
        return progress(batch, task, report, err);
    case REPORT_CHECKPOINT:
        return checkpoint(batch, task, report, err);
    case REPORT_LOG:
        return write_log(batch, task, report, err);
    case REPORT_SPAWN:
        return spawn(batch, task, report, result, err);
    case REPORT_RELEASE:
        TRY(report_release(batch, task, report->reason, err));
        task->lease.outcome_token = report->lease_token; /* the same again is no news */
        task->lease.outcome_hash = content_hash(report);
        return 0;
    case REPORT_AWAIT:
        return awaited_begin(batch, task, report, result, err);
    case REPORT_COMPLETE:
    case REPORT_CONTINUE:
    case REPORT_FAIL:
    case REPORT_PARTIAL:
        task->lease.outcome_token = report->lease_token;
        task->lease.outcome_hash = content_hash(report);
        return report_outcome(batch, task, report, err);
    case REPORT_OP_COUNT:
        break;
    }
    return 0;
}

/* Held by another worker now, cancelled, lost, or ended: nothing of the task changes but the slot
 * of a cancelled or stalled one, which its holder gives up by saying that it stopped. */
static int answer_stale(struct batch *batch, struct task *task, struct str worker_id,
                        const struct report *report, struct report_result *result,
                        struct err *err)
{
    bool same_lease =
        task->lease.token == report->lease_token && str_eq(task->lease.worker_id, worker_id);
    bool answered =
        task->lease.outcome_token == report->lease_token && task->lease.outcome_token != 0;
    bool awaited = task->lease.token == report->lease_token && task_is_awaited(task);

    if (report->op == REPORT_AWAIT && (answered || awaited))
        return 0; /* the service was faster than its worker, or the same came again */
    if (answered && report->op == REPORT_RELEASE &&
        task->lease.outcome_hash == content_hash(report))
        return 0;
    if (answered && is_outcome(report->op) && task->lease.outcome_hash != RELEASED_HASH) {
        if (task->lease.outcome_hash != SQL_HASH &&
            task->lease.outcome_hash != content_hash(report))
            refuse(result, ERR_CONFLICT, "another outcome was reported under this lease before");
        return 0;
    }
    if (same_lease && report->seq && report->seq <= task->lease.report_seq)
        return 0;
    batch->engine->figures.stats.stale_reports[report->op]++;
    refuse(result, ERR_STALE_LEASE, "the task is no longer held under this lease; stop it");
    result->cancel = true;
    if (same_lease && task->lease.held && !status_held(task->status) &&
        (is_outcome(report->op) || report->op == REPORT_RELEASE))
        return lose_stopped(batch, task, err);
    return 0;
}

/* The worker that reports holds the task, now and here; without one only the lease counts. */
static bool is_under_lease(const struct batch *batch, const struct task *task,
                           struct str worker_id, const struct report *report)
{
    return status_held(task->status) && task->lease.token == report->lease_token &&
           (!worker_id.data || /* a token is a number that can be guessed */
            str_eq(task->lease.worker_id, worker_id)) &&
           !lease_is_void(batch->engine, report->lease_token);
}

/* ---- refusals ----
 *
 * A refused report becomes a line in the log of its execution, where the author of the handler
 * looks and where there is room for names and values. Bounded per lease, so that a worker that
 * repeats a bad report does not fill the log. */

/* How many lines its lease has got, with this one. A task with the same hash replaces it. */
static uint32_t count_logged(struct engine *engine, const struct task *task)
{
    uint64_t hash = hash_bytes64(task->id.bytes, sizeof task->id.bytes, 0);
    struct refusals_logged *logged = &engine->refusals[hash % REFUSALS_KNOWN];

    if (!uuid_eq(&logged->task_id, &task->id) || logged->lease_token != task->lease.token)
        *logged = (struct refusals_logged){.task_id = task->id, .lease_token = task->lease.token};
    return logged->count <= REFUSALS_LOGGED_MAX ? ++logged->count : logged->count;
}

/* Our own failures do not help the author, and a lost lease has no log any more. */
static bool is_worth_telling(const struct batch *batch, const struct report_result *result)
{
    return err_http_status(result->code) < 500 && result->code != ERR_STALE_LEASE &&
           !batch->store->full;
}

static bool refusal_line(struct batch *batch, const struct task *task, const struct report *report,
                         const struct report_result *result, struct report *line)
{
    int64_t left_us = REFUSAL_CPU_US_MAX;
    char text[REFUSAL_BYTES_MAX];
    uint32_t logged;

    if (!is_worth_telling(batch, result))
        return false;
    logged = count_logged(batch->engine, task);
    if (logged > REFUSALS_LOGGED_MAX)
        return false;
    snprintf(text, sizeof text, "%s was refused: %s%s", report_op_word(report->op),
             result->message, logged == REFUSALS_LOGGED_MAX ? LAST_WORDS : "");
    *line = (struct report){.op = REPORT_LOG,
                            .level = SEVERITY_WARN,
                            .message = arena_str(&batch->arena, str_of(text)),
                            .context = batch_text(batch, "{\"refused\":\"%s\",\"code\":\"%s\"}",
                                                  report_op_word(report->op),
                                                  err_word(result->code))};
    return line->message.data && line->context.data &&
           redact_line(batch->engine->redact, &line->message, &line->context, &batch->arena,
                       &left_us) == 0;
}

static int tell_refusal(struct batch *batch, struct task *task, const struct report *report,
                        const struct report_result *result, struct err *err)
{
    struct report line;

    if (!refusal_line(batch, task, report, result, &line))
        return 0;
    task->lease.last_heartbeat_us = batch->now_us;
    if (batch_owe(batch, task, err) < 0) /* as every line: no other node ends the run before it */
        return -(int)err->code;
    return write_log(batch, task, &line, err);
}

/* Refused before it came here: only the log of its task says why. */
static int apply_refused(struct batch *batch, struct str worker_id, const struct report *report,
                         const struct report_result *result, struct err *err)
{
    struct task *task;

    TRY(batch_task(batch, &report->task_id, &task, err));
    return task && is_under_lease(batch, task, worker_id, report)
               ? tell_refusal(batch, task, report, result, err) : 0;
}

static int apply_element(struct batch *batch, struct str worker_id, struct report *report,
                         struct report_result *result, struct err *err)
{
    struct task *task;

    TRY(batch_task(batch, &report->task_id, &task, err));
    if (!task) {
        refuse(result, ERR_NOT_FOUND, "there is no such task");
        return 0;
    }
    if (!is_under_lease(batch, task, worker_id, report))
        return answer_stale(batch, task, worker_id, report, result, err);
    if (!task_is_awaited(task))
        task->lease.unlisted = false; /* its holder knows of it */
    result->pause = task->lease.pause_requested;
    if (report->seq && report->seq <= task->lease.report_seq)
        return 0;
    TRY(batch_owe(batch, task, err));
    TRY(apply_op(batch, task, report, result, err));
    if (result->code != ERR_NONE) /* it may be sent again */
        return tell_refusal(batch, task, report, result, err);
    if (!report->seq)
        return 0;
    task->lease.report_seq = report->seq;
    return batch_owe(batch, task, err);
}

/* What this node claimed itself it knows; the rest is asked for at once. */
static int prefetch(struct batch *batch, struct report_request *request)
{
    struct uuid *ids;
    int64_t *tokens;

    if (!batch->store->shared)
        return 0;
    ids = arena_alloc_array(&batch->arena, request->count, sizeof *ids);
    tokens = arena_alloc_array(&batch->arena, request->count, sizeof *tokens);
    if (!ids || !tokens)
        return err_no_memory(&request->base.err);
    for (uint32_t i = 0; i < request->count; i++) {
        ids[i] = request->reports[i].task_id;
        tokens[i] = request->reports[i].lease_token;
    }
    TRY(batch_recall(batch, ids, tokens, request->count, &request->base.err));
    return batch_prefetch(batch, ids, request->count, &request->base.err);
}

/* Children are made with the rights of the credential that reports. */
static void name_maker(const struct request *base, const struct report *report)
{
    for (uint32_t i = 0; base->caller && i < report->inputs_count; i++)
        report->inputs[i].maker = base->caller->principal;
}

static int hear_worker(struct batch *batch, struct report_request *request)
{
    struct err *err = &request->base.err;
    struct worker_state *worker;

    TRY(workers_find_of(batch, &request->base, request->worker_id, &worker, err));
    return workers_usable(worker, &request->base) ? workers_renew(batch, worker, err)
                                                  : workers_unknown(err);
}

int report_apply(struct batch *batch, struct request *base)
{
    struct report_request *request = (struct report_request *)base;

    if (request->is_completion)
        request->worker_id = STR_NONE;
    else
        TRY(hear_worker(batch, request));
    TRY(prefetch(batch, request));
    for (uint32_t i = 0; i < request->count; i++) {
        struct report_result *result = &request->results[i];
        struct report *report = &request->reports[i];
        bool refused = result->code == ERR_MALFORMED || result->code == ERR_INVALID ||
                       result->code == ERR_TOO_LARGE;

        name_maker(base, report);
        if (!refused)
            *result = (struct report_result){.code = ERR_NONE};
        TRY(refused ? apply_refused(batch, request->worker_id, report, result, &request->base.err)
                    : apply_element(batch, request->worker_id, report, result,
                                    &request->base.err));
    }
    return 0;
}

static void check_bounds(struct report *report, struct report_result *result)
{
    const struct {
        struct str text;
        size_t max;
        const char *message;
    } bounds[] = {{report->data, BOUND_DATA_BYTES, "data is larger than 1 MiB"},
                  {report->database_state, BOUND_DATA_BYTES, "database_state is larger than 1 MiB"},
                  {report->file_state, BOUND_DATA_BYTES, "file_state is larger than 1 MiB"},
                  {report->metadata, BOUND_METADATA_BYTES, "metadata is larger than 16 KiB"},
                  {report->detail, BOUND_METADATA_BYTES, "detail is larger than 16 KiB"},
                  {report->context, BOUND_LOG_LINE_BYTES, "context is larger than 64 KiB"},
                  {report->result, BOUND_RESULT_BYTES,
                   "result is larger than 256 KiB; store it outside and return where it is"},
                  {report->details, BOUND_METADATA_BYTES, "details is larger than 16 KiB"},
                  {report->name, BOUND_NAME_BYTES, "name is longer than 200 bytes"},
                  {report->reason, BOUND_NAME_BYTES, "reason is longer than 200 bytes"},
                  {report->question, BOUND_NAME_BYTES, "question is longer than 200 bytes"},
                  {report->state, BOUND_NAME_BYTES, "state is longer than 200 bytes"},
                  {report->description, BOUND_ERROR_BYTES, "description is longer than 4 KiB"}};

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (bounds[i].text.len > bounds[i].max)
            refuse(result, ERR_TOO_LARGE, bounds[i].message);
    if (report->progress > 100)
        refuse(result, ERR_INVALID, "progress is a number from 0 to 100");
    report->error = str_cut(report->error, BOUND_ERROR_BYTES);
    if (report->delay_ms > BOUND_DELAY_MS)
        refuse(result, ERR_INVALID, "delay_ms is longer than ten years");
}

/* Children with a ref are spawned once, however often the parent's attempt is repeated. The keys
 * live with the inputs: a batch may fail, and the request be tried again. */
static int key_children(struct report *report, struct arena *arena, struct err *err)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&report->task_id, id);
    for (uint32_t i = 0; i < report->inputs_count; i++) {
        struct task_spec *spec = &report->inputs[i].spec;

        if (!spec->origin.ref.data || spec->idempotency_key.data)
            continue;
        spec->idempotency_key =
            arena_format(arena, SPEC_OWN_KEYS "spawn:%s:" STR_FMT, id, STR_ARG(spec->origin.ref));
        if (!spec->idempotency_key.data) /* 51 + BOUND_NAME_BYTES fit a key */
            return err_no_memory(err);
    }
    return 0;
}

/* Nothing of a line reaches the store but what its rules leave (D9). A little more than is kept is
 * looked at, so that the cut at the end leaves no half of what was to go. */
static void prepare_log(const struct engine *engine, struct report *report, struct arena *arena,
                        int64_t *left_us)
{
    const size_t looked_at = BOUND_LOG_LINE_BYTES + REDACT_MARGIN_BYTES;
    size_t margin = engine->redact && report->message.len > looked_at
                        ? REDACT_MARGIN_BYTES
                        : 0; /* its end may be half of what was to go */

    report->message = str_cut(report->message, looked_at);
    if (redact_line(engine->redact, &report->message, &report->context, arena, left_us) < 0) {
        report->message = STR("this line is not kept: there was no memory to redact it");
        report->context = STR_NONE;
    }
    if (margin)
        report->message = str_cut(report->message, report->message.len > margin
                                                       ? report->message.len - margin : 0);
    report->message = str_cut(report->message, BOUND_LOG_LINE_BYTES);
}

void engine_prepare_reports(struct engine *engine, struct report *reports, uint32_t count,
                            struct report_result *results, struct arena *arena)
{
    int64_t redact_left_us = REDACT_REPORT_CPU_US_MAX;

    for (uint32_t i = 0; i < count; i++) {
        struct err err = {0};
        bool is_array;

        if (results[i].code != ERR_NONE)
            continue;
        check_bounds(&reports[i], &results[i]);
        if (reports[i].op == REPORT_LOG && results[i].code == ERR_NONE)
            prepare_log(engine, &reports[i], arena, &redact_left_us);
        if (reports[i].op != REPORT_SPAWN || results[i].code != ERR_NONE)
            continue;
        if (spec_parse_all(reports[i].tasks, engine->configured, arena, &reports[i].inputs,
                           &reports[i].inputs_count, &is_array, &err) < 0 ||
            key_children(&reports[i], arena, &err) < 0)
            refuse(&results[i], err.code == ERR_TOO_LARGE ? ERR_TOO_LARGE : ERR_INVALID, err.text);
    }
}
