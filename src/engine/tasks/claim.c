/* Claims: by priority, then age, over all queues of the worker, within the limits. What finds
 * nothing waits inside and is served in the same commit as what brings it work. */
#include "engine/tasks/claim.h"

#include "base/fault.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/queue_name.h"
#include "core/task/checkpoint.h"
#include "engine/access/makers.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/figures/spans.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/tasks/reports.h"

#define CLAIM_STEP 32 /* tasks of several MiB each at most */

/* What a claim came across and did not get. */
struct put_aside {
    uint32_t put_off;
    bool given_back;
};

/* The newest checkpoint whose content is what its hash says; damaged ones are marked (B3). */
static int load_checkpoint(struct batch *batch, struct task *task, struct arena *arena,
                           struct checkpoint **checkpoint, struct err *err)
{
    const struct store_verbs *verbs = batch->store->verbs;
    bool damaged = false;
    char hash[65], id[UUID_TEXT_BYTES];

    *checkpoint = NULL;
    if (!task->resume.checkpoint.data)
        return 0;
    for (uint32_t tries = 0; tries <= BOUND_CHECKPOINTS_KEPT; tries++) {
        TRY(verbs->checkpoint_newest(batch->store, &task->id, arena, checkpoint, err));
        if (!*checkpoint)
            break;
        TRY_MEMORY(!arena->failed && checkpoint_hash(&task->id, *checkpoint, hash) == 0);
        if (memcmp(hash, (*checkpoint)->hash, sizeof hash) == 0)
            break;
        TRY(verbs->checkpoint_invalidate(batch->store, &task->id, (*checkpoint)->seq, err));
        uuid_format(&task->id, id);
        LOG(batch->engine->log, LOG_ERROR, "checkpoint.damaged", KC("task", id),
            KS("correlation_id", task->spec.correlation_id), KI("seq", (*checkpoint)->seq));
        *checkpoint = NULL;
        damaged = true;
    }
    if (damaged) /* the task shows the one that is used now */
        task->resume.checkpoint = *checkpoint ? checkpoint_short(*checkpoint, arena) : STR_NONE;
    return 0;
}

/* {"<id>":{"ref":…,"status":…,"result":…},…}; results are left out once the bound is reached, and
 * only children without end are not named themselves. */
static int write_outputs(struct batch *batch, struct task *task, bool children, struct buf *out,
                         bool *any, struct err *err)
{
    struct output *outputs;
    int64_t after = 0;
    uint32_t count;

    *any = false;
    buf_byte(out, '{');
    do {
        ARENA_AUTO struct arena page = ARENA_INIT(0);

        TRY(batch->store->verbs->outputs_find(batch->store, &task->id, children, after, 200, &page,
                                              &outputs, &count, err));
        for (uint32_t i = 0; i < count; i++) {
            char id[UUID_TEXT_BYTES];
            bool whole = out->len + outputs[i].result.len < BOUND_OUTPUTS_BYTES;

            uuid_format(&outputs[i].id, id);
            buf_format(out, "%s\"%s\":{\"ref\":", *any ? "," : "", id);
            if (outputs[i].ref.data)
                json_write_string(out, outputs[i].ref);
            else
                buf_text(out, "null");
            buf_format(out, ",\"status\":\"%s\",", status_word(outputs[i].status));
            if (whole) {
                buf_text(out, "\"result\":");
                buf_str(out, outputs[i].result.data ? outputs[i].result : STR("null"));
            } else {
                buf_text(out, "\"result_left_out\":true");
            }
            buf_byte(out, '}');
            *any = true;
            after = outputs[i].key;
        }
        TRY_MEMORY(!page.failed); /* a result may be missing */
    } while (count == 200 && out->len < 2 * BOUND_OUTPUTS_BYTES);
    buf_byte(out, '}');
    return 0;
}

/* The user's data object with "dependencies" and "children" put in; not stored. */
static int compose_data(struct batch *batch, struct task *task, struct arena *arena,
                        struct str *data, struct err *err)
{
    BUF_AUTO struct buf dependencies = BUF_INIT(4 * BOUND_OUTPUTS_BYTES);
    BUF_AUTO struct buf children = BUF_INIT(4 * BOUND_OUTPUTS_BYTES);
    BUF_AUTO struct buf whole = BUF_INIT(16 * BOUND_OUTPUTS_BYTES);
    bool has_dependencies = false, has_children = false;
    struct json_iter iter;
    struct json_member member;

    if (task_has_dependencies(batch, task))
        TRY(write_outputs(batch, task, false, &dependencies, &has_dependencies, err));
    if (task->lease.token > 0) /* only one that ran before can have children */
        TRY(write_outputs(batch, task, true, &children, &has_children, err));
    if (!has_dependencies && !has_children)
        return 0;
    buf_byte(&whole, '{');
    if (task->data.data && json_kind(task->data) == JSON_OBJECT) {
        json_begin(task->data, &iter);
        while (json_next_member(&iter, &member)) {
            if ((has_dependencies && json_key_is(member.key, STR("dependencies"))) ||
                (has_children && json_key_is(member.key, STR("children"))))
                continue;
            buf_format(&whole, "%s\"", whole.len > 1 ? "," : "");
            buf_str(&whole, member.key);
            buf_text(&whole, "\":");
            buf_str(&whole, member.value);
        }
    }
    if (has_dependencies) {
        buf_format(&whole, "%s\"dependencies\":", whole.len > 1 ? "," : "");
        buf_str(&whole, buf_view(&dependencies));
    }
    if (has_children) {
        buf_format(&whole, "%s\"children\":", whole.len > 1 ? "," : "");
        buf_str(&whole, buf_view(&children));
    }
    buf_byte(&whole, '}');
    *data = arena_str(arena, buf_view(&whole));
    TRY_MEMORY(data->data && !whole.failed && !dependencies.failed && !children.failed);
    return 0;
}

static int new_execution(struct batch *batch, struct task *task, struct str worker_id,
                         struct err *err)
{
    struct store *store = batch->store;
    int64_t key = store->verbs->execution_key_next(store, task->lease.execution_key);
    struct execution execution = {.key = key,
                                  .task_key = task->key,
                                  .task_id = task->id,
                                  .job_id = task->spec.origin.job_id,
                                  .schedule_id = task->spec.origin.schedule_id,
                                  .status = EXECUTION_PENDING,
                                  .attempt_number = task->counts.attempts,
                                  .lease_token = task->lease.token,
                                  .worker_id = worker_id,
                                  .correlation_id = task->spec.correlation_id,
                                  .claim_seq = ++task->event_seq,
                                  .created_at_us = batch->now_us};

    execution.id = uuid7_new_keyed(&batch->engine->ids, batch->now_us, execution.key);
    execution.id.bytes[15] = 0; /* its claim and its start get ids of their own from it */
    task->lease.execution_key = execution.key;
    task->lease.execution_id = execution.id;
    return batch_execution_new(batch, task, &execution, err);
}

static void hand_on_trace(const struct batch *batch, const struct task *task,
                          struct arena *arena, struct claimed *claimed)
{
    char space[TRACE_PARENT_BYTES + 1];
    struct str parent = trace_hand_on(task, batch->engine->settings, space);

    claimed->traceparent = parent.data == space ? arena_str(arena, parent) : parent;
}

int claim_take(struct batch *batch, struct claim_request *request, struct worker_state *worker,
               struct task *task, struct err *err)
{
    int64_t lease_us = batch->engine->settings->lease_ms * CLOCK_MS_US;
    struct claimed *claimed = &request->claimed[request->claimed_count++];
    int64_t since_us = spans_ready_since(task);

    *claimed = (struct claimed){.task = task};
    TRY(batch_adopt(batch, task, err));
    TRY(load_checkpoint(batch, task, request->base.arena, &claimed->checkpoint, err));
    TRY(compose_data(batch, task, request->base.arena, &claimed->data, err));
    task->counts.attempts = task_count_up(task->counts.attempts);
    if (task->lease.token < batch->engine->leases.base)
        task->lease.token = batch->engine->leases.base;
    task->lease.token++;
    task->lease.worker_id = arena_str(request->base.arena, worker->row.id);
    task->lease.held = true;
    task->lease.unlisted = false;
    task->lease.until_us = batch->now_us + lease_us;
    task->lease.last_heartbeat_us = batch->now_us;
    task->lease.claimed_at_us = batch->now_us;
    task->lease.started_at_us = 0;
    task->counts.next_retry_at_us = 0;
    task->lease.pause_requested = false;
    task->lease.report_seq = 0;
    task->resume.from = claimed->checkpoint ? claimed->checkpoint->name : STR_NONE;
    TRY(new_execution(batch, task, task->lease.worker_id, err));
    spans_claimed(batch, task, since_us);
    hand_on_trace(batch, task, request->base.arena, claimed);
    batch->engine->figures.stats.totals[TOTAL_CLAIMED]++;
    FAULT_POINT("claim.row");
    return batch_move(batch, task, STATUS_CLAIMED, MOVE_CLAIM, "Claimed", ACTOR_WORKER, STR_NONE,
                      err);
}

/* The queues to look at: those asked for or registered of a namespace (absent = of all), without
 * paused and exhausted ones. */
static uint32_t open_queues(struct batch *batch, const struct claim_request *request,
                            const struct worker_state *worker, struct str within,
                            struct str *queues, bool *unlimited)
{
    const struct str *asked = request->queues_count ? request->queues : worker->queues;
    uint32_t asked_count = request->queues_count ? request->queues_count : worker->queues_count;
    uint32_t count = 0;

    for (uint32_t i = 0; i < asked_count && count < BOUND_CLAIM_QUEUES; i++) {
        struct queue_state *state = NULL;

        if (!within.data || queue_name_in(asked[i], within))
            state = limits_queue(batch->engine, asked[i]);
        if (!state || !limits_open(batch, state))
            continue;
        queues[count++] = asked[i];
        *unlimited &= !limits_any(state);
    }
    return count;
}

/* Where every step is a way to a database, small tasks come in large ones. */
static uint32_t next_step(const struct batch *batch, size_t task_bytes)
{
    size_t fit = BOUND_CLAIM_BYTES / 4 / (task_bytes + 1);

    if (!batch->store->shared || task_bytes == 0 || fit < CLAIM_STEP)
        return CLAIM_STEP;
    return fit < BOUND_CLAIM_MAX ? (uint32_t)fit : BOUND_CLAIM_MAX;
}

/* Of what the line gave, what the claim gets: a task whose maker lost the right is held, one
 * outside of its category's window is put off,
 * and beyond its category's batch_size the rest is left to the next claim. */
static int hand_out(struct batch *batch, struct claim_request *request,
                    struct worker_state *worker, struct task **tasks, uint32_t count,
                    struct put_aside *aside, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        enum claim_move move = CLAIM_TAKE;

        TRY(makers_admit(batch, tasks[i], &move, err));
        if (move == CLAIM_TAKE && tasks[i]->row.locked)
            TRY(windows_lock(batch, tasks[i], &move, err));
        else if (move == CLAIM_TAKE && !uuid_is_nil(&tasks[i]->spec.category_id))
            TRY(windows_admit(batch, request, tasks[i], &move, err));
        if (move == CLAIM_TAKE)
            TRY(claim_take(batch, request, worker, tasks[i], err));
        aside->put_off += move == CLAIM_PUT_OFF;
        aside->given_back |= move == CLAIM_GIVE_BACK;
    }
    return 0;
}

/* Takes what is wanted until the claim has `most`, a few at a time: payloads, checkpoints and
 * outputs may be large. What the last claim got says how many to begin with. */
static int take_some(struct batch *batch, struct claim_request *request,
                     struct worker_state *worker, struct ready_want *want, uint32_t most,
                     struct err *err)
{
    struct arena *arena = request->base.arena;
    size_t used_bytes = arena->used_bytes;
    struct task *tasks[BOUND_CLAIM_MAX];
    uint32_t count, step = next_step(batch, batch->engine->waiting.claim_task_bytes);
    struct put_aside aside = {0};

    do {
        uint32_t put_off = aside.put_off;

        want->max = most - request->claimed_count;
        if (want->max > step)
            want->max = step;
        TRY(batch->store->verbs->ready_take(batch->store, want, arena, tasks, &count, err));
        TRY_MEMORY(!arena->failed);
        if (count && !request->claimed_count)
            request->claimed = arena_alloc_array(arena, request->max, sizeof *request->claimed);
        if (count && !request->claimed)
            return err_no_memory(err);
        TRY(hand_out(batch, request, worker, tasks, count, &aside, err));
        if (request->claimed_count)
            batch->engine->waiting.claim_task_bytes =
                (arena->used_bytes - used_bytes) / request->claimed_count;
        if (aside.put_off >= BOUND_CHORE_ROWS)
            *want->more = true;
        if ((count < step && aside.put_off == put_off) || aside.given_back ||
            aside.put_off >= BOUND_CHORE_ROWS || request->claimed_count >= most)
            break;
        step = next_step(batch, batch->engine->waiting.claim_task_bytes);
    } while (arena->used_bytes - used_bytes < BOUND_CLAIM_BYTES);
    return arena->failed ? err_no_memory(err) : 0;
}

/* From the queues of a namespace (absent = from all), until the claim has `most`. */
static int claim_from(struct batch *batch, struct claim_request *request,
                      struct worker_state *worker, struct str within, uint32_t most,
                      struct err *err)
{
    bool more = false;
    struct str queues[BOUND_CLAIM_QUEUES];
    struct ready_want want = {.queues = queues,
                              .types = request->types_count ? request->types : worker->types,
                              .types_count =
                                  request->types_count ? request->types_count : worker->types_count,
                              .more = &more,
                              .admit = limits_admit,
                              .ctx = batch};
    struct str *declined;

    if (!request->types_count) {
        want.types_not_count = declined_types(batch->engine->main->leases.declined, worker->row.id,
                                              batch->now_us, request->base.arena, &declined);
        want.types_not = declined;
    }
    want.unlimited = true;
    want.queues_count = open_queues(batch, request, worker, within, queues, &want.unlimited);
    if (batch->failed.code != ERR_NONE) {
        *err = batch->failed;
        return -(int)err->code;
    }
    if (want.queues_count == 0)
        return 0;
    TRY(workers_categories(batch, worker, within, &want.categories, &want.categories_count, err));
    TRY(batch_flush(batch, err));
    TRY(take_some(batch, request, worker, &want, most, err));
    if (more)
        chore_soon(batch->engine, CHORE_RATES, batch->now_us); /* continues in the next commit */
    return batch_flush(batch, err);
}

/* One namespace with many waiting tasks does not delay another's: each in its turn gives its share,
 * and the next claim begins with the next one. */
static int take_turns(struct batch *batch, struct claim_request *request,
                      struct worker_state *worker, struct err *err)
{
    uint32_t share = request->max / worker->namespaces_count;
    size_t used_bytes = request->base.arena->used_bytes;

    for (uint32_t empty = 0; empty < worker->namespaces_count;) {
        uint32_t before = request->claimed_count;
        uint32_t most = before + (share ? share : 1);

        TRY(claim_from(batch, request, worker, worker->namespaces[worker->turn],
                       most < request->max ? most : request->max, err));
        worker->turn = (worker->turn + 1) % worker->namespaces_count;
        empty = request->claimed_count > before ? 0 : empty + 1;
        if (request->claimed_count >= request->max ||
            request->base.arena->used_bytes - used_bytes >= BOUND_CLAIM_BYTES)
            break;
    }
    return 0;
}

static int try_claim(struct batch *batch, struct claim_request *request,
                     struct worker_state *worker, struct err *err)
{
    request->claimed_count = 0;
    if (worker->namespaces_count > 1)
        return take_turns(batch, request, worker, err);
    return claim_from(batch, request, worker, STR_NONE, request->max, err);
}

/* Full names, once: a claim that waits is tried again and again. */
static int enter_queues(struct claim_request *request, const struct worker_state *worker)
{
    struct arena *arena = request->base.arena;
    struct err *err = &request->base.err;
    struct str *full;

    if (request->queues_count == 0 || str_is(worker->row.namespace_name, TASK_DEFAULT_NAMESPACE))
        return 0;
    full = TRY_MEMORY(arena_alloc_array(arena, request->queues_count, sizeof *full));
    for (uint32_t i = 0; i < request->queues_count; i++) {
        full[i] = request->queues[i];
        TRY(queue_name_enter(worker->row.namespace_name, &full[i], arena, err));
    }
    request->queues = full;
    return 0;
}

int claim_apply(struct batch *batch, struct request *base)
{
    struct claim_request *request = (struct claim_request *)base;
    struct worker_state *worker;

    request->claimed_count = 0;
    TRY(workers_find_of(batch, base, request->worker_id, &worker, &request->base.err));
    request->lease_ms = batch->engine->settings->lease_ms;
    if (!workers_usable(worker, base))
        return workers_unknown(&request->base.err);
    TRY(enter_queues(request, worker));
    TRY(workers_renew(batch, worker, &request->base.err));
    if (!uuid_is_nil(&request->task_id))
        return claim_named(batch, request, worker);
    return try_claim(batch, request, worker, &request->base.err);
}

static bool asks_for(const struct claim_request *request, const struct worker_state *worker,
                     struct str queue)
{
    const struct str *asked = request->queues_count ? request->queues : worker->queues;
    uint32_t asked_count = request->queues_count ? request->queues_count : worker->queues_count;

    for (uint32_t i = 0; i < asked_count; i++)
        if (str_eq(asked[i], queue))
            return true;
    return false;
}

bool claim_wants_type(const struct batch *batch, const struct claim_request *request,
                      const struct worker_state *worker, struct str queue, struct str type)
{
    if (!asks_for(request, worker, queue))
        return false;
    if (request->types_count)
        return settings_types_cover(request->types, request->types_count, type);
    return settings_types_cover(worker->types, worker->types_count, type) &&
           !declined_has(batch->engine->main->leases.declined, worker->row.id, type, batch->now_us);
}

bool claim_wants(struct batch *batch, const struct claim_request *request,
                 const struct worker_state *worker, const struct task_spec *spec)
{
    return claim_wants_type(batch, request, worker, spec->queue, spec->type) &&
           workers_take_category(batch, worker, &spec->category_id);
}

bool claim_wants_hot(const struct batch *batch, const struct claim_request *request,
                     const struct worker_state *worker)
{
    const struct str *asked = request->queues_count ? request->queues : worker->queues;
    uint32_t asked_count = request->queues_count ? request->queues_count : worker->queues_count;

    for (uint32_t i = 0; i < asked_count; i++) {
        struct queue_state *state = limits_queue(batch->engine, asked[i]);

        if (state && state->hot)
            return true;
    }
    return false;
}

void claim_heat_categories(struct batch *batch)
{
    for (struct request *at = batch->engine->waiting.claims_first; at; at = at->next_waiting) {
        const struct claim_request *request = (const struct claim_request *)at;
        const struct worker_state *worker = workers_get(batch->engine, request->worker_id);
        const struct str *asked;
        uint32_t asked_count;

        if (!worker || worker->categories_count == 0)
            continue;
        asked = request->queues_count ? request->queues : worker->queues;
        asked_count = request->queues_count ? request->queues_count : worker->queues_count;
        for (uint32_t i = 0; i < asked_count; i++) {
            struct queue_state *state = limits_queue(batch->engine, asked[i]);

            if (state)
                batch_heat_here(batch, state);
        }
    }
}

/* Where counting is a way to the database, the claim itself finds out. */
static bool has_ready(struct batch *batch, const struct queue_state *state)
{
    return batch->store->shared ||
           batch->store->verbs->ready_count(batch->store, state->row.rule.name) > 0;
}

/* A claim that found nothing in them and takes every type and category: they are cold. */
static void cool_asked(struct batch *batch, const struct claim_request *request,
                       const struct worker_state *worker)
{
    struct queue_state **at = &batch->limits.hot;

    if (!batch->store->shared || request->types_count || worker->types ||
        worker->categories_count)
        return;
    while (*at) {
        struct queue_state *state = *at;

        if (!asks_for(request, worker, state->row.rule.name)) {
            at = &state->next_hot;
            continue;
        }
        state->hot = state->has_older = false;
        *at = state->next_hot;
    }
}

/* Claims that got nothing in this batch; their like would get nothing either. */
#define FRUITLESS_MAX 16
struct fruitless {
    const struct worker_state *workers[FRUITLESS_MAX];
    uint32_t count;
};

static bool is_plain(const struct claim_request *request)
{
    return request->queues_count == 0 && request->types_count == 0;
}

/* A fleet of workers with the same handlers is asked about once. */
static bool is_fruitless(const struct fruitless *fruitless, const struct claim_request *request,
                         const struct worker_state *worker)
{
    if (!is_plain(request))
        return false;
    for (uint32_t i = 0; i < fruitless->count; i++)
        if (str_eq(fruitless->workers[i]->row.types, worker->row.types) &&
            str_eq(fruitless->workers[i]->row.queues, worker->row.queues) &&
            str_eq(fruitless->workers[i]->row.categories, worker->row.categories) &&
            str_eq(fruitless->workers[i]->row.namespace_name, worker->row.namespace_name))
            return true;
    return false;
}

static void note_fruitless(struct fruitless *fruitless, const struct claim_request *request,
                           const struct worker_state *worker)
{
    if (is_plain(request) && (worker->types || worker->categories_count) &&
        fruitless->count < FRUITLESS_MAX)
        fruitless->workers[fruitless->count++] = worker;
}

/* Queues in which nothing is left to claim are cold again: 1,000 waiting workers and one task
 * make one claim, not a thousand. */
static bool cool_empty(struct batch *batch)
{
    struct queue_state **at = &batch->limits.hot;

    while (*at) {
        struct queue_state *state = *at;

        if (limits_open(batch, state) && has_ready(batch, state)) {
            at = &state->next_hot;
            continue;
        }
        state->hot = state->has_older = false;
        *at = state->next_hot;
    }
    return batch->limits.hot == NULL;
}

int claim_serve_waiting(struct batch *batch, struct err *err)
{
    struct fruitless fruitless = {.count = 0};
    struct request *next;

    if (!batch->limits.hot || !batch->engine->waiting.claims_first)
        return 0;
    for (struct request *at = batch->engine->waiting.claims_first; at; at = next) {
        struct claim_request *request = (struct claim_request *)at;
        struct worker_state *worker = workers_get(batch->engine, request->worker_id);

        next = at->next_waiting;
        if (cool_empty(batch))
            return 0;
        if (request->claimed_count || !worker || !claim_wants_hot(batch, request, worker) ||
            is_fruitless(&fruitless, request, worker))
            continue; /* served by hand already, gone, or not concerned */
        TRY(try_claim(batch, request, worker, err));
        batch->served_count += request->claimed_count > 0;
        if (request->claimed_count == 0) {
            cool_asked(batch, request, worker);
            note_fruitless(&fruitless, request, worker);
        }
    }
    return 0;
}
