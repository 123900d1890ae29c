/* Enqueue: a request is one unit, all of its tasks or none. Everything that can refuse it is
 * checked before anything is put into the batch (enqueue_checks.c). */
#include "engine/intake/intake.h"
#include "engine/tasks/enqueue.h"

#include "base/fault.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/callback_allow.h"
#include "core/plan/job.h"
#include "core/queue_name.h"
#include "engine/access/makers.h"
#include "engine/access/rights.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/figures/spans.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/categories.h"
#include "engine/plans/runs.h"
#include "engine/tasks/ended.h"
#include "engine/tasks/enqueue_int.h"
#include "engine/tasks/reports.h"
#include "store/sealed/sealed.h"

#include <stdio.h>

/* A child belongs under the attempt that made it. */
void inherit_trace(const struct batch *batch, const struct task *parent, struct arena *arena,
                   struct task_spec *spec)
{
    char space[TRACE_PARENT_BYTES + 1];

    if (spec->trace.parent.data)
        return;
    spec->trace.parent = arena_str(arena, trace_hand_on(parent, batch->engine->settings, space));
    spec->trace.state = spec->trace.parent.data ? parent->spec.trace.state : STR_NONE;
}

/* A child has the maker of its parent; a run names its job's maker itself. */
static struct str maker_of(const struct plan *plan, const struct task_input *input)
{
    if (plan->parent)
        return plan->parent->spec.origin.principal;
    return input->maker ? input->maker->key : input->spec.origin.principal;
}

/* What a handler of an encrypted task hands on is encrypted, unless it says how it is stored. */
static void inherit_seal(const struct task *parent, struct arena *arena, struct task_seal *seal)
{
    if (seal->encrypt || seal->fields.data)
        return;
    seal->encrypt = parent->spec.seal.encrypt;
    if (parent->spec.seal.fields.data)
        seal->fields = arena_str(arena, parent->spec.seal.fields);
}

/* A run's task got its id before, as did one that was enqueued with SQL. */
static void name_task(struct batch *batch, const struct task_input *input,
                      const struct run_wish *wish, struct task *task)
{
    if (wish) {
        task->key = wish->key;
        task->id = wish->id;
    } else if (input->given_key) {
        task->key = input->given_key;
        task->id = input->given_id;
        if (input->given_at_us < batch->now_us)
            task->spec.created_at_us = input->given_at_us;
    } else {
        task->key = batch->store->verbs->task_key_next(batch->store);
        task->id = uuid7_new_keyed(&batch->engine->ids, batch->now_us, task->key);
    }
}

static struct task *make_task(struct plan *plan, struct task_input *input,
                              const struct run_wish *wish)
{
    struct batch *batch = plan->batch;
    struct task *task = arena_alloc(plan->arena, sizeof *task);

    if (!task)
        return NULL;
    task->spec = input->spec;
    task->spec.namespace_name = queue_name_namespace(input->spec.queue);
    task->spec.created_at_us = batch->now_us;
    if (uuid_is_nil(&input->forked_from)) /* a fork is its original's maker's: it has its payload */
        task->spec.origin.principal = maker_of(plan, input);
    if (plan->parent) {
        task->spec.origin.parent_id = plan->parent->id;
        if (!task->spec.correlation_id.data)
            task->spec.correlation_id = plan->parent->spec.correlation_id;
        if (!task->spec.workflow_id.data)
            task->spec.workflow_id = plan->parent->spec.workflow_id;
        inherit_trace(batch, plan->parent, plan->arena, &task->spec);
        inherit_seal(plan->parent, plan->arena, &task->spec.seal);
    }
    task->has_spec = true;
    task->has_data = true;
    name_task(batch, input, wish, task);
    task->state = STR("Queued");
    task->data = input->data;
    task->about = input->about;
    task->priority = input->priority;
    task->updated_at_us = batch->now_us;
    if (input->delay_ms > 0) {
        task->scheduled_at_us = task->spec.created_at_us + input->delay_ms * CLOCK_MS_US;
    } else if (input->spec.run_at_us) {
        task->scheduled_at_us = input->spec.run_at_us;
        task->by_wall = true;
    }
    return task;
}

/* Whether it is stored encrypted is decided once and kept. */
static int admit_seal(struct plan *plan, struct task *task)
{
    const struct handler_rule *rule =
        settings_handler(plan->batch->engine->settings, task->spec.type);

    if (plan->sealed_of.data != task->spec.namespace_name.data) { /* tasks share the text */
        plan->sealed_of = task->spec.namespace_name;
        plan->encrypts = namespace_encrypts(plan->batch, plan->sealed_of);
    }
    task->spec.seal.encrypt |= plan->encrypts;
    return sealed_admit(plan->batch->store, task, rule, plan->arena, plan->err);
}

static bool same_payload(struct str a, struct str b)
{
    BUF_AUTO struct buf left = BUF_INIT(4 * BOUND_PAYLOAD_BYTES);
    BUF_AUTO struct buf right = BUF_INIT(4 * BOUND_PAYLOAD_BYTES);

    a = a.data ? a : STR("null");
    b = b.data ? b : STR("null");
    if (str_eq(a, b))
        return true;
    return json_canonical(a, &left, NULL) == 0 && json_canonical(b, &right, NULL) == 0 &&
           str_eq(buf_view(&left), buf_view(&right));
}

/* The first task with the key, whole and in this call's own memory: among the tasks of this very
 * call, or stored; one that is still owed to the store is written first. */
static int find_owner(struct plan *plan, struct unique *unique, uint32_t before,
                      struct task **owner)
{
    struct batch *batch = plan->batch;

    for (uint32_t i = 0; i < before && uuid_is_nil(&unique->owner); i++) {
        if (plan->tasks[i]->key != unique->task_key)
            continue;
        *owner = plan->tasks[i];
        return 0;
    }
    TRY(batch_flush(batch, plan->err));
    TRY(batch->store->verbs->uniques_reserve(batch->store, unique, 1, plan->err));
    TRY(batch->store->verbs->tasks_load(batch->store, &unique->owner, 1, LOAD_ALL, plan->arena,
                                        owner, plan->err));
    return *owner ? 0 : err_set(plan->err, ERR_INTERNAL, "a key names a task that is not there; "
                                                         "run verify");
}

/* What has it may have been enqueued with SQL and be no task yet: it becomes one now. */
static int reserve_one(struct plan *plan, struct unique *unique, uint32_t at)
{
    struct batch *batch = plan->batch;
    int64_t wanted = unique->task_key;

    TRY(batch->store->verbs->uniques_reserve(batch->store, unique, 1, plan->err));
    batch->wrote = true;
    for (uint32_t i = 0; i < at; i++)
        if (plan->tasks[i]->key == unique->task_key)
            return 0;
    if (unique->task_key == wanted || !uuid_is_nil(&unique->owner) || !batch->store->intake)
        return 0;
    TRY(intake_take_key(batch, unique->task_key, plan->err));
    TRY(batch_flush(batch, plan->err));
    unique->task_key = wanted;
    return batch->store->verbs->uniques_reserve(batch->store, unique, 1, plan->err);
}

/* Or payloads of others could be tried out. */
static bool tells_payload(const struct principal *maker, const struct task *owner)
{
    return !maker || principal_visibility(maker, owner->spec.origin.principal) == VISIBLE_WHOLE;
}

static int reserve(struct plan *plan, uint32_t at)
{
    struct task *task = plan->tasks[at];
    bool by_key = task->spec.idempotency_key.data != NULL;
    struct unique unique = {.kind = by_key ? UNIQUE_KEY : UNIQUE_HASH,
                            .namespace_name = task->spec.namespace_name,
                            .type = task->spec.type,
                            .value = by_key ? task->spec.idempotency_key : task->spec.input_hash,
                            .task_key = task->key};
    struct task *owner = NULL;

    if (!unique.value.data)
        return 0;
    TRY(reserve_one(plan, &unique, at));
    if (unique.task_key == task->key)
        return 0;
    if (find_owner(plan, &unique, at, &owner) < 0 || !owner)
        return -(int)plan->err->code;
    plan->duplicate[at] = true;
    if (plan->inputs[at].maker &&
        principal_row(plan->inputs[at].maker, owner->spec.user_id, false) == ROW_HIDDEN)
        return err_set_field(plan->err, ERR_CONFLICT, by_key ? "idempotency_key" : "hash_input",
                             "there is already a task with this %s; choose another one",
                             by_key ? "idempotency_key" : "input");
    plan->differs[at] = tells_payload(plan->inputs[at].maker, owner) &&
                        !same_payload(owner->spec.payload, task->spec.payload);
    plan->tasks[at] = owner;
    return 0;
}

static int reserve_external(struct plan *plan, uint32_t at)
{
    struct task *task = plan->tasks[at];
    struct unique unique = {.kind = UNIQUE_EXTERNAL,
                            .namespace_name = task->spec.namespace_name,
                            .type = STR(""),
                            .value = task->spec.external_id,
                            .task_key = task->key};

    if (!unique.value.data || plan->duplicate[at])
        return 0;
    TRY(reserve_one(plan, &unique, at));
    if (unique.task_key == task->key)
        return 0;
    return err_set_field(plan->err, ERR_CONFLICT, "external_id",
                         "there is already a task with this external_id");
}

/* Refused after so many keys were reserved: they and the namespace's rate are free again. */
static int refuse(struct plan *plan, uint32_t count)
{
    struct err err = *plan->err;

    if (plan->actor != ACTOR_LEADER)
        namespace_give_back(plan->batch, plan->inputs, plan->count);
    for (uint32_t i = 0; i < count; i++)
        if (!plan->duplicate[i])
            TRY(plan->batch->store->verbs->uniques_drop(plan->batch->store, plan->tasks[i], true,
                                                        plan->err));
    *plan->err = err;
    return -(int)err.code;
}

static struct uuid parent_of(const struct plan *plan, const struct input_dependency *dependency)
{
    return dependency->ref.data ? plan->tasks[dependency->element]->id : dependency->task_id;
}

/* Elements that turned out to be duplicates may have made two parents one, or a task its own
 * parent. Twice the same parent in the same way counts once. */
static int merge_parents(struct plan *plan, uint32_t at)
{
    struct task_input *input = &plan->inputs[at];
    uint32_t kept = 0;

    for (uint32_t d = 0; d < input->depends_on_count; d++) {
        struct uuid id = parent_of(plan, &input->depends_on[d]);
        uint32_t same = 0;

        if (uuid_eq(&id, &plan->tasks[at]->id))
            return err_set_field(plan->err, ERR_INVALID, "depends_on", "element %u depends on "
                                 "itself: the element it names is a duplicate of it", at);
        for (; same < kept; same++) {
            struct uuid other = parent_of(plan, &input->depends_on[same]);

            if (uuid_eq(&id, &other))
                break;
        }
        if (same == kept)
            input->depends_on[kept++] = input->depends_on[d];
        else if (input->depends_on[same].kind != input->depends_on[d].kind)
            return err_set_field(plan->err, ERR_INVALID, "depends_on", "element %u names one task "
                                 "twice with different types, because of a duplicate", at);
    }
    input->depends_on_count = kept;
    return 0;
}

/* Only where there is a duplicate; refuses before anything was added. */
static int merge_all_parents(struct plan *plan)
{
    bool any = false;

    for (uint32_t i = 0; i < plan->count && !any; i++)
        any = plan->duplicate[i];
    for (uint32_t i = 0; any && i < plan->count; i++)
        if (!plan->duplicate[i])
            TRY(merge_parents(plan, i));
    return 0;
}

/* Marks the parents as having dependents. Written even if they are marked already: the end of one
 * on another node and this must not miss each other, so one of the two is retried. */
static int note_dependent(struct plan *plan, const struct input_dependency *dependency,
                          struct task *parent)
{
    if (!plan->batch->store->shared)
        return 0;
    if (!parent && dependency->ref.data) /* comes later in the same array */
        plan->tasks[dependency->element]->waits.has_dependents = true;
    if (!parent)
        return 0;
    parent->waits.has_dependents = true;
    return batch_owe(plan->batch, parent, plan->err);
}

/* Decides by the parents: how many are open, whether one ended otherwise than required. Ends of
 * this batch are settled before, so that none reaches a task that has already seen it. */
static int link_parents(struct plan *plan, struct task *task, const struct task_input *input)
{
    struct batch *batch = plan->batch;
    struct task_dependency *rows;

    if (input->depends_on_count == 0)
        return 0;
    rows = arena_alloc_array(&batch->arena, input->depends_on_count, sizeof *rows);
    if (!rows)
        return err_no_memory(plan->err);
    TRY(batch_settle(batch, plan->err));
    for (uint32_t d = 0; d < input->depends_on_count; d++) {
        const struct input_dependency *dependency = &input->depends_on[d];
        struct uuid id = parent_of(plan, dependency);
        struct task *parent;

        TRY(batch_task(batch, &id, &parent, plan->err));
        rows[d] = (struct task_dependency){.task_id = id, .kind = dependency->kind};
        TRY(note_dependent(plan, dependency, parent));
        if (parent == NULL || !status_ended(parent->status))
            task->waits.open_dependencies++;
        else if (!dependency_met(dependency->kind, parent->status)) {
            task->waits.unsatisfied = true;
            plan->culprit = (struct culprit){id, parent->status, dependency->kind};
        }
    }
    batch->engine->any_dependencies = task->waits.has_dependencies = true;
    return batch->store->verbs->dependencies_insert(batch->store, &task->id, rows,
                                                    input->depends_on_count, plan->err);
}

static struct str forked_detail(struct batch *batch, const struct task_input *input)
{
    const struct checkpoint *from = input->checkpoint;
    struct buf text = BUF_INIT(4096);
    char id[UUID_TEXT_BYTES];
    struct str copy;

    uuid_format(&input->forked_from, id);
    buf_format(&text, "{\"forked_from\":\"%s\"", id);
    if (from) { /* as for every checkpoint, and which one of the original it was */
        buf_format(&text, ",\"from_checkpoint\":%lld,\"checkpoint\":1,\"name\":",
                   (long long)from->seq);
        json_write_string(&text, from->name);
        buf_format(&text, ",\"progress\":%lld", (long long)from->progress);
    }
    buf_byte(&text, '}');
    copy = text.failed ? STR_NONE : arena_str(&batch->arena, buf_view(&text));
    buf_deinit(&text);
    return copy;
}

/* The checkpoint becomes the new task's first: with an id, a number and a hash of its own. The task
 * must be in the store before. */
static int forked_begin(struct batch *batch, struct task *task, const struct checkpoint *from,
                        struct arena *arena, struct err *err)
{
    struct checkpoint own;

    if (!from)
        return 0;
    own = *from;
    own.id = uuid7_new(&batch->engine->ids, batch->now_us);
    own.task_key = task->key;
    own.created_at_us = batch->now_us;
    TRY(batch_flush(batch, err));
    TRY(batch->store->verbs->checkpoint_insert(batch->store, &task->id, &own, err));
    FAULT_POINT("fork.checkpoint");
    task->progress = own.progress;
    task->resume.checkpoint = checkpoint_short(&own, arena);
    TRY_MEMORY(task->resume.checkpoint.data);
    return batch_owe(batch, task, err);
}

/* What it says of its parent is in the answer, too, which comes when the batch is gone. */
static int end_unsatisfied(struct plan *plan, struct task *task, enum status to)
{
    TRY(unsatisfied_end(plan->batch, task, to, &plan->culprit, plan->err));
    task->fault.error = arena_str(plan->arena, task->fault.error);
    task->fault.details = arena_str(plan->arena, task->fault.details);
    return plan->arena->failed ? err_no_memory(plan->err) : 0;
}

/* Of the first event, if it has one. */
static struct str opening_detail(const struct plan *plan, uint32_t at)
{
    const struct task_input *input = &plan->inputs[at];
    const struct task *task = plan->tasks[at];
    uint32_t given = change_given(&input->about);
    struct str detail;

    if (task->opening_told)
        return STR_NONE;
    if (!uuid_is_nil(&input->forked_from))
        return forked_detail(plan->batch, input);
    detail = batch_text(plan->batch, "{\"priority\":%lld,\"payload_bytes\":%zu,"
                        "\"dependencies\":%u}", (long long)task->priority, task->spec.payload.len,
                        input->depends_on_count);
    return given ? change_tell(detail, &input->about, given, &plan->batch->arena) : detail;
}

static int add_task(struct plan *plan, uint32_t at)
{
    struct batch *batch = plan->batch;
    struct task *task = plan->tasks[at];
    enum status to = STATUS_BLOCKED;
    const char *state = "Queued";
    bool is_fork = !uuid_is_nil(&plan->inputs[at].forked_from);

    TRY(link_parents(plan, task, &plan->inputs[at]));
    TRY(batch_add(batch, task, plan->err));
    if (plan->parent) { /* before it can end: its end takes one off again */
        plan->parent->waits.open_children++;
        TRY(batch_owe(batch, plan->parent, plan->err));
    }
    if (!task->waits.unsatisfied)
        TRY(batch_waiting_status(batch, task, &to, &state, plan->err));
    task->opening_told = to == STATUS_PENDING && plan->actor == ACTOR_API && !is_fork &&
                         plan->inputs[at].depends_on_count == 0 &&
                         !change_given(&plan->inputs[at].about);
    if (is_fork && to != STATUS_DELAYED)
        state = "Forked";
    TRY(batch_move(batch, task, to, MOVE_ENQUEUE, state, plan->actor, opening_detail(plan, at),
                   plan->err));
    task->version = 1;
    batch->engine->figures.stats.totals[TOTAL_ENQUEUED]++;
    spans_enqueued(batch, task);
    if (is_fork)
        TRY(forked_begin(batch, task, plan->inputs[at].checkpoint, plan->arena, plan->err));
    if (!task->waits.unsatisfied)
        return 0;
    to = outcome_unsatisfied(task->spec.on_unsatisfied);
    if (to == STATUS_PENDING)
        return batch_let_go_on(batch, task, plan->err);
    return end_unsatisfied(plan, task, to);
}

int enqueue_ended(struct batch *batch, struct task_input *input, enum status to, struct str why,
                  struct str detail, struct err *err)
{
    struct plan plan = {.batch = batch, .inputs = input, .count = 1, .arena = &batch->arena,
                        .err = err};
    struct queue_state *queue;
    struct task *task;
    struct err sealed = {0};

    TRY(queue_name_enter(input->spec.namespace_name, &input->spec.queue, &batch->arena, err));
    task = TRY_MEMORY(make_task(&plan, input, NULL));
    plan.err = &sealed;
    if (admit_seal(&plan, task) < 0) { /* nothing is kept in clear text that must not be */
        task->spec.payload = STR_NONE;
        task->spec.seal = (struct task_seal){0};
    }
    TRY(limits_queue_make(batch, input->spec.queue, &queue, err));
    TRY(batch_add(batch, task, err));
    TRY(batch_move(batch, task, STATUS_PENDING, MOVE_ENQUEUE, "Queued", ACTOR_API, STR_NONE, err));
    task->version = 1;
    batch->engine->figures.stats.totals[TOTAL_ENQUEUED]++;
    task->fault.error = task->fault.last = why;
    task->fault.details = detail;
    return batch_move(batch, task, to, to == STATUS_CANCELLED ? MOVE_CANCEL : MOVE_NO_HANDLER,
                      to == STATUS_CANCELLED ? "Duplicate" : "Refused", ACTOR_LEADER, detail, err);
}

int enqueue_check(struct batch *batch, struct task_input *input, struct arena *arena,
                  struct err *err)
{
    struct plan plan = {.batch = batch, .inputs = input, .count = 1, .arena = arena, .err = err};
    struct task probe = {.spec = input->spec};

    TRY(plan_check_places(&plan));
    probe.spec.queue = input->spec.queue; /* its full name by now */
    probe.spec.namespace_name = queue_name_namespace(probe.spec.queue);
    return admit_seal(&plan, &probe);
}

/* The task of a run: it has no key and no parents, and its waits are those of its job. */
int enqueue_run(struct batch *batch, struct task_input *input, const struct run_wish *wish,
                uint32_t waits, struct arena *arena, struct task **out, struct err *err)
{
    struct plan plan = {.batch = batch, .inputs = input, .count = 1, .arena = arena, .err = err};
    struct task *task = make_task(&plan, input, wish);
    struct queue_state *queue;
    const char *state;
    enum status to;

    TRY_MEMORY(task);
    TRY(admit_seal(&plan, task));
    TRY(limits_queue_make(batch, input->spec.queue, &queue, err));
    *out = task;
    task->waits.open_dependencies = waits;
    TRY(batch_waiting_status(batch, task, &to, &state, err));
    TRY(batch_add(batch, task, err));
    TRY(batch_move(batch, task, to, MOVE_ENQUEUE,
                   to == STATUS_BLOCKED && wish->state.data ? wish->state.data : state, wish->actor,
                   wish->detail, err));
    task->version = 1;
    batch->engine->figures.stats.totals[TOTAL_ENQUEUED]++;
    spans_enqueued(batch, task);
    return 0;
}

int enqueue_tasks(struct batch *batch, struct task_input *inputs, uint32_t count,
                  enum actor actor, struct task *parent, struct arena *arena, struct task **tasks,
                  bool *duplicate, bool *differs, struct err *err)
{
    struct plan plan = {.batch = batch, .inputs = inputs, .count = count, .actor = actor,
                        .parent = parent, .arena = arena, .tasks = tasks, .duplicate = duplicate,
                        .differs = differs, .err = err, .culprit = {.status = STATUS_NONE}};

    for (uint32_t i = 0; parent && i < count; i++)
        inputs[i].spec.namespace_name = parent->spec.namespace_name;
    TRY(plan_check_parents(&plan));
    TRY(plan_check_places(&plan));
    if (actor != ACTOR_LEADER)
        TRY(namespace_admit(batch, inputs, count, err));
    TRY(plan_name_workflow(&plan));
    for (uint32_t i = 0; i < count; i++) {
        duplicate[i] = differs[i] = false;
        tasks[i] = TRY_MEMORY(make_task(&plan, &inputs[i], NULL));
        TRY(admit_seal(&plan, tasks[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (reserve(&plan, i) < 0 || reserve_external(&plan, i) < 0)
            return err->code == ERR_CONFLICT ? refuse(&plan, i + 1) : -(int)err->code;
    }
    if (merge_all_parents(&plan) < 0 || plan_check_token(&plan) < 0)
        return refuse(&plan, count);
    TRY(plan_make_queues(&plan));
    for (uint32_t i = 0; i < count; i++) {
        if (duplicate[i]) {
            batch->engine->figures.stats.totals[TOTAL_DUPLICATES]++;
            continue;
        }
        TRY(add_task(&plan, i));
        FAULT_POINT("enqueue.row");
    }
    return 0;
}

/* A fork is a copy of what another client may have made. */
static int note_fork(struct batch *batch, const struct enqueue_request *request, uint32_t at,
                     struct err *err)
{
    const struct uuid *original = &request->inputs[at].forked_from;
    char id[UUID_TEXT_BYTES];

    if (!request->base.caller || uuid_is_nil(original) || request->duplicate[at])
        return 0;
    uuid_format(&request->tasks[at]->id, id);
    return trail_note_id(batch, &request->base, "task.fork", "task", original,
                         batch_text(batch, "{\"after\":{\"task_id\":\"%s\"}}", id), err);
}

int enqueue_apply(struct batch *batch, struct request *base)
{
    struct enqueue_request *request = (struct enqueue_request *)base;
    struct arena *arena = request->base.arena;
    struct user_taken *taken;
    uint32_t taken_count;
    int rc;

    for (uint32_t i = 0; i < request->count; i++)
        request->inputs[i].spec.namespace_name =
            base->caller ? base->caller->namespace_name
                         : queue_name_namespace(request->inputs[i].spec.queue);
    request->tasks = arena_alloc_array(arena, request->count, sizeof *request->tasks);
    request->duplicate = arena_alloc_array(arena, request->count, sizeof *request->duplicate);
    request->differs = arena_alloc_array(arena, request->count, sizeof *request->differs);
    if (!request->tasks || !request->duplicate || !request->differs)
        return err_no_memory(&request->base.err);
    for (uint32_t i = 0; base->caller && i < request->count; i++)
        request->inputs[i].maker = base->caller->principal;
    TRY(user_limits_take(batch, base, request->inputs, request->count, &taken, &taken_count));
    rc = enqueue_tasks(batch, request->inputs, request->count, request->actor, NULL, arena,
                       request->tasks, request->duplicate, request->differs, &request->base.err);
    for (uint32_t i = 0; rc == 0 && i < request->count; i++)
        rc = note_fork(batch, request, i, &request->base.err);
    if (rc < 0)
        user_limits_give_back(taken, taken_count);
    return rc;
}
