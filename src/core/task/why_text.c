/* Writes the sentence that says why a task is not running, and its details as JSON. Each reason has
 * one function that writes both from the same facts, so they cannot disagree. Pure. */
#include "core/task/why.h"

#include "core/queue_name.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/render.h"

#define TEXT_BYTES_MAX (16 * 1024)
#define DETAIL_BYTES_MAX (256 * 1024) /* with that of the root inside */
#define QUOTED_BYTES_MAX 300 /* of an error or a name inside a sentence */

struct pen {
    const struct why_facts *facts;
    const struct task *task;
    struct buf text;
    struct buf detail;
};

/* ---- pieces ---- */

static void say_duration(struct buf *out, int64_t us)
{
    char text[CLOCK_SPAN_BYTES];

    clock_format_ms(us / CLOCK_MS_US, text);
    buf_text(out, text);
}

/* "2026-11-15T09:52:27.610485Z (in 4.2s)", or how long ago. */
static void say_time(struct buf *out, int64_t time_us, int64_t now_us)
{
    char text[CLOCK_TEXT_BYTES];

    clock_format(time_us, text);
    buf_format(out, "%s (%s", text, time_us > now_us ? "in " : "");
    say_duration(out, time_us > now_us ? time_us - now_us : now_us - time_us);
    buf_text(out, time_us > now_us ? ")" : " ago)");
}

static void say_id(struct buf *out, const struct uuid *id)
{
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    buf_text(out, text);
}

static void say_error(struct pen *pen, const char *before, struct str error)
{
    if (error.data) {
        buf_text(&pen->text, before);
        buf_str(&pen->text, str_cut(error, QUOTED_BYTES_MAX));
    }
}

static void note_chain(struct pen *pen)
{
    const struct why_facts *facts = pen->facts;
    const struct why_root *root = &facts->root;

    if (facts->chain_count == 0)
        return;
    buf_text(&pen->detail, ",\"chain\":[");
    for (uint32_t i = 0; i < facts->chain_count; i++) {
        buf_text(&pen->detail, i ? ",{" : "{");
        render_uuid(&pen->detail, "id", &facts->chain[i].id);
        render_text(&pen->detail, "status", str_of(status_word(facts->chain[i].status)));
        buf_byte(&pen->detail, '}');
    }
    buf_text(&pen->detail, "],\"root\":");
    if (!root->text.data) {
        buf_text(&pen->detail, "null");
        return;
    }
    buf_byte(&pen->detail, '{');
    render_uuid(&pen->detail, "id", &facts->chain[facts->chain_count - 1].id);
    render_text(&pen->detail, "reason", str_of(why_word(root->reason)));
    render_text(&pen->detail, "text", root->text);
    render_json(&pen->detail, "detail", root->detail);
    buf_byte(&pen->detail, '}');
}

/* "task ID (status)": one of the chain, after what it is to the one before. */
static void say_link(struct pen *pen, const char *before, uint32_t at)
{
    const struct why_task *link = &pen->facts->chain[at];

    buf_format(&pen->text, "%s task ", before);
    say_id(&pen->text, &link->id);
    buf_format(&pen->text, " (%s)", status_word(link->then ? link->then : link->status));
}

/* ---- it ended, or a worker holds it ---- */

/* Names the first task that did not end as required. That task may have been retried since, so its
 * present status follows separately. */
static void say_first_end(struct pen *pen)
{
    const struct why_facts *facts = pen->facts;
    uint32_t count = facts->chain_count;
    const struct why_task *first = count ? &facts->chain[count - 1] : NULL;

    for (uint32_t i = 1; i < count; i++)
        say_link(pen, i == 1 ? ", because it waited for" : ", which waited for", i);
    if (first && first->then && first->then != first->status) {
        buf_text(&pen->text, "; now task ");
        say_id(&pen->text, &first->id);
        buf_format(&pen->text, " is %s", status_word(first->status));
        say_error(pen, ", its last error was: ", facts->root.error);
    } else if (first && !str_is(facts->root.error, status_word(first->status))) {
        say_error(pen, ": ", facts->root.error);
    }
    note_chain(pen);
}

/* Explains the error words that Perdura itself sets. */
static const char *end_meaning(struct str error)
{
    static const struct {
        const char *error, *text;
    } meanings[] = {
        {"no_handler", " (no worker of its queue has a handler for its type)"},
        {"poison", " (it lost its worker as often as max_crashes allows)"},
        {"dependency_unsatisfied", " (a task it depends on did not end as required)"},
        {"continuation_limit", " (it was continued as often as max_continuations allows)"},
        {"job_deleted", " (its job was deleted)"},
    };

    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (str_is(error, meanings[i].error))
            return meanings[i].text;
    return "";
}

static void tell_end(struct pen *pen)
{
    const struct task *task = pen->task;
    bool well = task->status == STATUS_COMPLETED;

    buf_format(&pen->text, "Ended as %s at ", status_word(task->status));
    say_time(&pen->text, task->completed_at_us, pen->facts->now_us);
    if (!well && !str_is(task->fault.error, status_word(task->status)))
        say_error(pen, ": ", task->fault.error);
    if (!well)
        buf_text(&pen->text, end_meaning(task->fault.error));
    say_first_end(pen);
    if (task->fault.last.data && !well && !str_eq(task->fault.last, task->fault.error))
        say_error(pen, "; the last attempt failed: ", task->fault.last);
    if (task->lease.held)
        buf_text(&pen->text, "; its worker has been asked to stop and has not stopped yet");
    render_time(&pen->detail, "completed_at", task->completed_at_us);
    render_text(&pen->detail, "error", task->fault.error);
    render_text(&pen->detail, "last_error", task->fault.last);
    if (task->fault.details.data) { /* of a dependency: which task it was */
        buf_text(&pen->detail, ",\"error_details\":");
        buf_str(&pen->detail, task->fault.details);
    }
    render_int(&pen->detail, "attempts", task->counts.attempts);
}

static void tell_held(struct pen *pen)
{
    const struct task *task = pen->task;
    bool runs = task->status == STATUS_RUNNING;
    int64_t since_us = runs ? task->lease.started_at_us : task->lease.claimed_at_us;

    buf_text(&pen->text, runs ? "Running on " : "Claimed by ");
    buf_str(&pen->text, str_cut(task->lease.worker_id, QUOTED_BYTES_MAX));
    buf_text(&pen->text, " since ");
    say_time(&pen->text, since_us, pen->facts->now_us);
    if (runs)
        buf_format(&pen->text, ", %lld %%", (long long)task->progress);
    else
        buf_text(&pen->text, ", which has not started it yet");
    if (runs && !str_is(task->state, "Running")) { /* the state at the start */
        buf_text(&pen->text, ", ");
        buf_str(&pen->text, str_cut(task->state, QUOTED_BYTES_MAX));
    }
    if (task->lease.pause_requested)
        buf_text(&pen->text, "; a pause was requested");
    render_text(&pen->detail, "worker_id", task->lease.worker_id);
    render_time(&pen->detail, "since", since_us);
    render_int(&pen->detail, "progress", task->progress);
    render_text(&pen->detail, "state", task->state);
    render_int(&pen->detail, "attempt", task->counts.attempts);
    render_time(&pen->detail, "last_heartbeat", task->lease.last_heartbeat_us);
    render_bool(&pen->detail, "pause_requested", task->lease.pause_requested);
}

static void tell_pause(struct pen *pen)
{
    const struct why_facts *facts = pen->facts;
    bool known = facts->pause.at_us != 0;

    buf_text(&pen->text, "Paused ");
    if (known)
        buf_format(&pen->text, "by %s since ", actor_word(facts->pause.by));
    else
        buf_text(&pen->text, "since ");
    say_time(&pen->text, known ? facts->pause.at_us : pen->task->updated_at_us, facts->now_us);
    say_error(pen, ": ", facts->pause.reason);
    buf_text(&pen->text, "; resume it to continue");
    render_text(&pen->detail, "actor", known ? str_of(actor_word(facts->pause.by)) : STR_NONE);
    render_time(&pen->detail, "since", known ? facts->pause.at_us : pen->task->updated_at_us);
    render_text(&pen->detail, "paused_because", facts->pause.reason);
}

/* What happens to a lost task: Perdura recovers it (again), or an operator has to decide. */
static void say_recovery(struct pen *pen)
{
    const struct why_facts *facts = pen->facts;

    if (facts->recovery.refused) {
        say_error(pen, ", and could not be recovered: ", facts->recovery.error);
        buf_text(&pen->text, "; recover or retry it");
    } else if (facts->recovery.waits && facts->recovery.error.data) {
        buf_text(&pen->text, "; the next recovery attempt is at ");
        say_time(&pen->text, facts->recovery.at_us, facts->now_us);
        say_error(pen, ", the last one failed: ", facts->recovery.error);
    } else if (facts->recovery.waits || pen->task->spec.auto_recovery) {
        buf_text(&pen->text, "; waiting for recovery");
    } else {
        buf_text(&pen->text, ", and auto_recovery is off; recover or retry it");
    }
}

static void tell_orphan(struct pen *pen)
{
    buf_text(&pen->text, "Lost its worker ");
    buf_str(&pen->text, str_cut(pen->task->lease.worker_id, QUOTED_BYTES_MAX));
    buf_text(&pen->text, " at ");
    say_time(&pen->text, pen->task->updated_at_us, pen->facts->now_us);
    if (pen->task->lease.held)
        buf_text(&pen->text, ", which has been asked to stop it and has not done so yet");
    say_recovery(pen);
    render_text(&pen->detail, "worker_id", pen->task->lease.worker_id);
    render_time(&pen->detail, "since", pen->task->updated_at_us);
    render_bool(&pen->detail, "auto_recovery", pen->task->spec.auto_recovery);
    render_bool(&pen->detail, "recovery_refused", pen->facts->recovery.refused);
    render_text(&pen->detail, "recovery_error", pen->facts->recovery.error);
}

static void tell_recovering(struct pen *pen)
{
    buf_text(&pen->text, "Recovering since ");
    say_time(&pen->text, pen->task->updated_at_us, pen->facts->now_us);
    render_time(&pen->detail, "since", pen->task->updated_at_us);
}

/* ---- it is blocked ---- */

/* The chain from the task it waits for to the root, and what the root is waiting for. */
static void say_chain(struct pen *pen, bool one)
{
    const struct why_facts *facts = pen->facts;

    if (!one && facts->chain_count)
        say_link(pen, ";", 0);
    for (uint32_t i = 1; i < facts->chain_count; i++)
        say_link(pen, one || i > 1 ? ", which is waiting for" : " is waiting for", i);
    if (facts->chain_goes_on)
        buf_text(&pen->text, ", which in turn is waiting for other tasks");
    say_error(pen, ": ", facts->root.text);
    note_chain(pen);
}

static void tell_tasks(struct pen *pen, const char *one, const char *many, int64_t total)
{
    const struct why_facts *facts = pen->facts;

    buf_format(&pen->text, "Waiting for %s ", total == 1 ? one : many);
    if (facts->waits_for_count == 0)
        buf_format(&pen->text, "(%lld)", (long long)total);
    for (uint32_t i = 0; i < facts->waits_for_count && i < 3; i++) {
        buf_text(&pen->text, i ? ", " : "");
        say_id(&pen->text, &facts->waits_for[i].id);
        buf_format(&pen->text, " (%s)", status_word(facts->waits_for[i].status));
    }
    if (facts->waits_for_count && total > 3)
        buf_format(&pen->text, " and %lld more", (long long)total - 3);
    say_chain(pen, total == 1);
    render_int(&pen->detail, "count", total);
    buf_text(&pen->detail, ",\"tasks\":[");
    for (uint32_t i = 0; i < facts->waits_for_count; i++) {
        buf_text(&pen->detail, i ? ",{" : "{");
        render_uuid(&pen->detail, "id", &facts->waits_for[i].id);
        render_text(&pen->detail, "ref", facts->waits_for[i].ref);
        render_text(&pen->detail, "status", str_of(status_word(facts->waits_for[i].status)));
        buf_byte(&pen->detail, '}');
    }
    buf_byte(&pen->detail, ']');
}

static void tell_children(struct pen *pen)
{
    tell_tasks(pen, "its child", "its children", pen->task->waits.open_children);
}

static void tell_dependency(struct pen *pen)
{
    int64_t total = pen->facts->waits_for_total;

    tell_tasks(pen, "task", "tasks", total ? total : pen->task->waits.open_dependencies);
}

static void tell_gate(struct pen *pen)
{
    static const char *const ends[] = {[DEPENDENCY_SUCCESS] = "to complete",
                                       [DEPENDENCY_COMPLETION] = "to end",
                                       [DEPENDENCY_FAILURE] = "to fail"};
    const struct why_facts *facts = pen->facts;

    buf_text(&pen->text, "Waiting for ");
    buf_text(&pen->detail, ",\"jobs\":[");
    for (uint32_t i = 0; i < facts->gates_count; i++) {
        const struct why_gate *gate = &facts->gates[i];

        if (gate->name.data)
            buf_format(&pen->text, "%sthe job '" STR_FMT "' %s", i ? ", and " : "",
                       STR_ARG(gate->name), ends[gate->kind]);
        else
            buf_format(&pen->text, "%sa job of another user %s", i ? ", and " : "",
                       ends[gate->kind]);
        buf_text(&pen->detail, i ? ",{" : "{");
        render_uuid(&pen->detail, "id", &gate->job_id);
        render_text(&pen->detail, "name", gate->name);
        render_text(&pen->detail, "dependency_type", str_of(dependency_word(gate->kind)));
        buf_byte(&pen->detail, '}');
    }
    buf_byte(&pen->detail, ']');
}

static void tell_slot(struct pen *pen)
{
    const struct why_facts *facts = pen->facts;

    if (facts->job_slots > 0)
        buf_format(&pen->text, "Waiting for a slot of its job '" STR_FMT "': %lld of %lld runs "
                   "are active", STR_ARG(facts->job_name), (long long)facts->job_going,
                   (long long)facts->job_slots);
    else
        buf_format(&pen->text, "Waiting for the previous run: the schedule of its job '" STR_FMT
                   "' runs one task at a time", STR_ARG(facts->job_name));
    render_text(&pen->detail, "job", facts->job_name);
    render_int(&pen->detail, "max_concurrent", facts->job_slots);
    render_int(&pen->detail, "running", facts->job_going);
}

/* ---- its time has not come ---- */

static int64_t clock_of(const struct pen *pen)
{
    return pen->task->by_wall ? pen->facts->wall_us : pen->facts->now_us;
}

static void tell_retry(struct pen *pen)
{
    const struct task *task = pen->task;

    buf_format(&pen->text, "Will retry (%lld of %lld) at ",
               (long long)task->counts.retries, (long long)task->spec.retry.max_retries);
    say_time(&pen->text, task->counts.next_retry_at_us, pen->facts->now_us);
    say_error(pen, "; the last attempt failed: ", task->fault.last);
    render_time(&pen->detail, "until", task->counts.next_retry_at_us);
    render_int(&pen->detail, "retry", task->counts.retries);
    render_int(&pen->detail, "max_retries", task->spec.retry.max_retries);
    render_text(&pen->detail, "last_error", task->fault.last);
}

static void tell_window(struct pen *pen)
{
    int64_t opens_us = pen->facts->window_opens_us ? pen->facts->window_opens_us
                                                   : pen->task->scheduled_at_us;

    buf_text(&pen->text, "Waiting for the window of its category, which opens at ");
    say_time(&pen->text, opens_us, pen->facts->wall_us);
    render_time(&pen->detail, "until", opens_us);
}

static void tell_delay(struct pen *pen)
{
    const struct task *task = pen->task;

    buf_text(&pen->text, task->counts.continuations ? "Will continue at " : "Scheduled to run at ");
    say_time(&pen->text, task->scheduled_at_us, clock_of(pen));
    render_time(&pen->detail, "until", task->scheduled_at_us);
    render_int(&pen->detail, "continuations", task->counts.continuations);
}

/* ---- it could be claimed ---- */

static void tell_queue_pause(struct pen *pen)
{
    buf_format(&pen->text, "The queue '" STR_FMT "' has been paused since ",
               STR_ARG(queue_name_plain(pen->task->spec.queue)));
    say_time(&pen->text, pen->facts->queue_paused_at_us, pen->facts->now_us);
    render_text(&pen->detail, "queue", queue_name_plain(pen->task->spec.queue));
    render_time(&pen->detail, "since", pen->facts->queue_paused_at_us);
}

/* The type has workers, but all of them take other categories. */
static void tell_other_categories(struct pen *pen)
{
    const struct why_workers *workers = &pen->facts->workers;
    const struct task_spec *spec = &pen->task->spec;

    if (workers->category.data)
        buf_format(&pen->text, "No live worker takes category \"" STR_FMT "\" in queue \"" STR_FMT
                   "\"", STR_ARG(workers->category), STR_ARG(spec->queue));
    else
        buf_format(&pen->text, "The category of the task was deleted, and no live worker takes all "
                   "categories in queue \"" STR_FMT "\"", STR_ARG(spec->queue));
    buf_format(&pen->text, " (%u worker%s a handler for the type '" STR_FMT
               "', for other categories)", workers->of_type,
               workers->of_type == 1 ? " has" : "s have", STR_ARG(spec->type));
    render_text(&pen->detail, "category", workers->category);
    render_int(&pen->detail, "workers_of_type", workers->of_type);
}

static void tell_no_worker(struct pen *pen)
{
    const struct why_facts *facts = pen->facts;
    const struct task_spec *spec = &pen->task->spec;

    if (facts->workers.live == 0)
        buf_text(&pen->text, "No worker is running");
    else if (facts->workers.of_queue == 0)
        buf_format(&pen->text, "No worker serves the queue '" STR_FMT "' (%u worker%s "
                   "other queues)", STR_ARG(queue_name_plain(spec->queue)), facts->workers.live,
                   facts->workers.live == 1 ? " serves" : "s serve");
    else if (facts->workers.of_type > 0)
        tell_other_categories(pen);
    else
        buf_format(&pen->text,
                   "No worker of the queue '" STR_FMT "' has a handler for the type '" STR_FMT
                   "' (%u worker%s the queue)",
                   STR_ARG(queue_name_plain(spec->queue)), STR_ARG(spec->type),
                   facts->workers.of_queue,
                   facts->workers.of_queue == 1 ? " serves" : "s serve");
    render_text(&pen->detail, "queue", queue_name_plain(spec->queue));
    render_text(&pen->detail, "type", spec->type);
    render_int(&pen->detail, "workers", facts->workers.live);
    render_int(&pen->detail, "workers_of_queue", facts->workers.of_queue);
}

/* Which limit: of the queue, of a type in it, of a key in it. */
static const struct why_limit *say_limit(struct pen *pen, enum why_reason concurrency,
                                         enum why_reason reason)
{
    const struct task_spec *spec = &pen->task->spec;
    bool of_queue = concurrency == WHY_QUEUE_CONCURRENCY;
    bool of_type = concurrency == WHY_TYPE_CONCURRENCY;

    if (!of_queue)
        buf_format(&pen->text, "The %s '" STR_FMT "' of the queue '" STR_FMT "' ",
                   of_type ? "type" : "key", STR_ARG(of_type ? spec->type : spec->limit_key),
                   STR_ARG(queue_name_plain(spec->queue)));
    else
        buf_format(&pen->text, "The queue '" STR_FMT "' ", STR_ARG(queue_name_plain(spec->queue)));
    buf_text(&pen->text, reason == concurrency ? "is at its limit: " : "is at its rate limit: ");
    render_text(&pen->detail, "queue", queue_name_plain(spec->queue));
    if (!of_queue)
        render_text(&pen->detail, of_type ? "type" : "key", of_type ? spec->type : spec->limit_key);
    return of_queue ? &pen->facts->queue : of_type ? &pen->facts->type : &pen->facts->key;
}

static void tell_limit(struct pen *pen, enum why_reason concurrency, enum why_reason reason)
{
    const struct why_limit *limit = say_limit(pen, concurrency, reason);

    if (reason == concurrency) {
        buf_format(&pen->text, "%lld of %lld running", (long long)limit->running,
                   (long long)limit->concurrency);
        render_int(&pen->detail, "running", limit->running);
        render_int(&pen->detail, "concurrency", limit->concurrency);
        return;
    }
    buf_format(&pen->text, "%lld every ", (long long)limit->rate.count);
    say_duration(&pen->text, limit->rate.per_ms * CLOCK_MS_US);
    buf_text(&pen->text, "; the next task may start at ");
    say_time(&pen->text, limit->open_at_us, pen->facts->now_us);
    render_int(&pen->detail, "count", limit->rate.count);
    render_int(&pen->detail, "per_ms", limit->rate.per_ms);
    render_time(&pen->detail, "until", limit->open_at_us);
}

static void tell_service(struct pen *pen)
{
    const struct why_service *service = &pen->facts->service;

    buf_format(&pen->text, "service " STR_FMT " is down since ", STR_ARG(service->name));
    say_time(&pen->text, service->down_since_us, pen->facts->wall_us);
    buf_text(&pen->text, ", next try ");
    say_time(&pen->text, service->next_try_us, pen->facts->wall_us);
    render_text(&pen->detail, "service", service->name);
    render_time(&pen->detail, "since", service->down_since_us);
    render_time(&pen->detail, "until", service->next_try_us);
}

static void tell_service_wait(struct pen *pen)
{
    const struct why_service *service = &pen->facts->service;

    buf_format(&pen->text, "service " STR_FMT " asked not to be called before ",
               STR_ARG(service->name));
    say_time(&pen->text, service->wait_until_us, pen->facts->wall_us);
    render_text(&pen->detail, "service", service->name);
    render_time(&pen->detail, "until", service->wait_until_us);
}

static void tell_busy(struct pen *pen)
{
    const struct why_facts *facts = pen->facts;

    buf_format(&pen->text, "All %lld slots of the %u worker%s that could run it are in use",
               (long long)facts->workers.slots, facts->workers.of_category,
               facts->workers.of_category == 1 ? "" : "s");
    render_int(&pen->detail, "workers", facts->workers.of_category);
    render_int(&pen->detail, "slots", facts->workers.slots);
    render_int(&pen->detail, "slots_taken", facts->workers.slots_taken);
    render_int(&pen->detail, "line", facts->line);
}

static void tell_ready(struct pen *pen)
{
    const struct why_facts *facts = pen->facts;

    buf_text(&pen->text, "Ready; a worker will claim it soon");
    if (facts->line > 1)
        buf_format(&pen->text, " (%lld tasks are ready in its queue)", (long long)facts->line);
    render_int(&pen->detail, "workers", facts->workers.of_category);
    render_int(&pen->detail, "line", facts->line);
}

/* ---- all of them ---- */

static void tell(struct pen *pen, enum why_reason reason)
{
    static void (*const plain[WHY_COUNT])(struct pen *) = {
        [WHY_COMPLETED] = tell_end,
        [WHY_PARTIAL] = tell_end,
        [WHY_FAILED] = tell_end,
        [WHY_DEAD_LETTER] = tell_end,
        [WHY_CANCELLED] = tell_end,
        [WHY_RUNNING] = tell_held,
        [WHY_CLAIMED] = tell_held,
        [WHY_PAUSED] = tell_pause,
        [WHY_ORPHANED] = tell_orphan,
        [WHY_RECOVERING] = tell_recovering,
        [WHY_CHILDREN] = tell_children,
        [WHY_DEPENDENCY] = tell_dependency,
        [WHY_JOB] = tell_gate,
        [WHY_JOB_SLOT] = tell_slot,
        [WHY_RETRY] = tell_retry,
        [WHY_WINDOW] = tell_window,
        [WHY_DELAYED] = tell_delay,
        [WHY_QUEUE_PAUSED] = tell_queue_pause,
        [WHY_SERVICE_DOWN] = tell_service,
        [WHY_SERVICE_WAIT] = tell_service_wait,
        [WHY_NO_WORKER] = tell_no_worker,
        [WHY_WORKERS_BUSY] = tell_busy,
        [WHY_READY] = tell_ready};

    if (plain[reason])
        plain[reason](pen);
    else if (reason <= WHY_QUEUE_RATE)
        tell_limit(pen, WHY_QUEUE_CONCURRENCY, reason);
    else if (reason <= WHY_TYPE_RATE)
        tell_limit(pen, WHY_TYPE_CONCURRENCY, reason);
    else
        tell_limit(pen, WHY_KEY_CONCURRENCY, reason);
}

int why_tell(const struct why_facts *facts, struct arena *arena, struct why *why,
             struct err *err)
{
    struct pen pen = {.facts = facts,
                      .task = facts->task,
                      .text = BUF_INIT(TEXT_BYTES_MAX),
                      .detail = BUF_INIT(DETAIL_BYTES_MAX)};
    int rc = 0;

    buf_byte(&pen.detail, '{');
    render_text(&pen.detail, "status", str_of(status_word(facts->task->status)));
    tell(&pen, why->reason);
    buf_text(&pen.detail, ",\"also\":[");
    for (uint32_t i = 0; i < why->also_count; i++)
        buf_format(&pen.detail, "%s\"%s\"", i ? "," : "", why_word(why->also[i]));
    buf_text(&pen.detail, "]}");
    why->text = arena_str(arena, buf_view(&pen.text));
    why->detail = arena_str(arena, buf_view(&pen.detail));
    if (pen.text.failed || pen.detail.failed || !why->text.data || !why->detail.data)
        rc = err_no_memory(err);
    buf_deinit(&pen.text);
    buf_deinit(&pen.detail);
    return rc;
}
