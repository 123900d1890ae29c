/* What can refuse an enqueue before its tasks are made: what they depend on, their category, their
 * queue, and what their maker may do. Also fills in what follows from these. Belongs to the thread
 * that has the turn (inbox.c). */
#include "engine/tasks/enqueue_int.h"

#include "core/callback_allow.h"
#include "core/plan/job.h"
#include "core/queue_name.h"
#include "engine/access/makers.h"
#include "engine/access/rights.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/limits/token_tasks.h"
#include "engine/limits/limits.h"
#include "engine/plans/categories.h"
#include "engine/tasks/ended.h"

/* Found ones stay in the batch. Those of a fork whose original had begun are done with: retention
 * may have removed them. */
static int check_parents_of(struct plan *plan, struct task_input *input)
{
    uint32_t kept = 0;

    for (uint32_t d = 0; d < input->depends_on_count; d++) {
        struct input_dependency *dependency = &input->depends_on[d];
        struct task *parent = NULL;
        char id[UUID_TEXT_BYTES];
        bool hides = false;

        if (!dependency->ref.data)
            TRY(batch_task(plan->batch, &dependency->task_id, &parent, plan->err));
        if (parent && !str_eq(parent->spec.namespace_name, input->spec.namespace_name))
            parent = NULL;
        if (parent)
            TRY(rights_depend(input, plan->parent, parent, &hides, plan->err));
        if (hides)
            parent = NULL; /* as if there were none */
        if (dependency->ref.data || parent) {
            input->depends_on[kept++] = *dependency;
            continue;
        }
        if (input->had_begun)
            continue;
        uuid_format(&dependency->task_id, id);
        return err_set_field(
            plan->err, ERR_INVALID, "depends_on", "there is no task %s to depend on%s", id,
            plan->batch->engine->config.lives_here ? " in the store of this queue" : "");
    }
    input->depends_on_count = kept;
    return 0;
}

/* Every named parent must be there. */
int plan_check_parents(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        TRY(check_parents_of(plan, &plan->inputs[i]));
    return 0;
}

/* What a plain task leaves out it gets of its category, also of one that is not active. */
static int take_category(struct plan *plan, struct task_input *input)
{
    struct category_state *category;

    TRY(categories_find(plan->batch, input->spec.namespace_name, input->category, &category,
                        plan->err));
    if (!category)
        return err_set_field(plan->err, ERR_INVALID, "category",
                             "there is no category '" STR_FMT "'%s", STR_ARG(input->category),
                             catalog_here(plan->batch->engine) ? ""
                                                               : " in the store of this queue");
    category_fill(&category->row, &category->rules, plan->batch->engine->settings, input);
    input->spec.category_id = category->row.id;
    input->spec.queue = arena_str(plan->arena, input->spec.queue); /* outlives the category */
    return input->spec.queue.data ? 0 : err_no_memory(plan->err);
}

/* There must be room for those that are not there yet. They come into being with their first task
 * (plan_make_queues): what is refused leaves nothing behind. */
static int check_queues(struct plan *plan)
{
    MAP_AUTO struct map fresh = MAP_INIT;

    for (uint32_t i = 0; i < plan->count; i++) {
        struct str queue = plan->inputs[i].spec.queue;

        if ((i > 0 && str_eq(queue, plan->inputs[i - 1].spec.queue)) ||
            limits_queue(plan->batch->engine, queue))
            continue;
        if (map_put(&fresh, queue, plan) < 0)
            return err_no_memory(plan->err);
        TRY(limits_queue_room(plan->batch, queue, map_count(&fresh), plan->err));
    }
    return 0;
}

/* What one user's credential makes is that user's; a child is its parent's user's. */
static int take_user(struct plan *plan, struct task_input *input)
{
    const struct principal *maker = input->maker;

    if (!input->spec.user_id.data && plan->parent)
        input->spec.user_id = plan->parent->spec.user_id;
    if (!maker || !maker->user_id.data)
        return 0;
    TRY(principal_check_user(maker, "user_id", input->spec.user_id, plan->err));
    input->spec.user_id = maker->user_id;
    return 0;
}

/* What the credential of its maker is limited to. */
static int check_rights(struct plan *plan, struct task_input *input)
{
    static const struct principal program = {0}; /* one that uses SQL: no scope of its own */
    const struct principal *asks = input->given_key ? &program : input->maker;

    TRY(take_user(plan, input));
    if (input->spec.callback.url.data && asks)
        TRY(callback_check_right(plan->batch->engine->settings, asks, plan->err));
    if (plan->parent)
        TRY(makers_check_child(plan->batch, plan->parent, input, plan->err));
    if (!input->maker || !uuid_is_nil(&input->spec.origin.job_id)) /* runs: make_input */
        return 0;
    return principal_check_work(input->maker, input->spec.queue, input->spec.type, input->category,
                                plan->err);
}

int plan_check_places(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->inputs[i].category.data)
            TRY(take_category(plan, &plan->inputs[i]));
        TRY(check_rights(plan, &plan->inputs[i]));
        TRY(queue_name_enter(plan->inputs[i].spec.namespace_name, &plan->inputs[i].spec.queue,
                             plan->arena, plan->err));
        if (i > 0 && str_eq(plan->inputs[i].spec.queue, plan->inputs[i - 1].spec.queue))
            continue;
        if (!queue_lives_here(plan->batch->engine, plan->inputs[i].spec.queue))
            return err_set_field(plan->err, ERR_INVALID, "queue", "the queue '" STR_FMT "' lives "
                                 "in another store; one step cannot be taken in two of them",
                                 STR_ARG(queue_name_plain(plan->inputs[i].spec.queue)));
    }
    return check_queues(plan);
}

/* An array with refs is a workflow; without a name of its own it gets one. */
int plan_name_workflow(struct plan *plan)
{
    struct str name = STR_NONE;

    for (uint32_t i = 0; i < plan->count && !name.data; i++) {
        struct uuid id;
        char text[UUID_TEXT_BYTES];

        for (uint32_t d = 0; d < plan->inputs[i].depends_on_count && !name.data; d++) {
            if (!plan->inputs[i].depends_on[d].ref.data)
                continue;
            id = uuid7_new(&plan->batch->engine->ids, plan->batch->now_us);
            uuid_format(&id, text);
            name = arena_str(plan->arena, str_of(text));
            if (!name.data)
                return err_no_memory(plan->err);
        }
    }
    for (uint32_t i = 0; i < plan->count && name.data; i++)
        if (!plan->inputs[i].spec.workflow_id.data)
            plan->inputs[i].spec.workflow_id = name;
    return 0;
}

int plan_make_queues(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        struct queue_state *state;

        if (!plan->duplicate[i])
            TRY(limits_queue_make(plan->batch, plan->inputs[i].spec.queue, &state, plan->err));
    }
    return 0;
}

/* Of what the request makes for its own principal; what was there before costs nothing. */
int plan_check_token(struct plan *plan)
{
    const struct principal *maker = plan->inputs[0].maker;
    uint32_t more = 0;

    if (!maker || !maker->max_tasks)
        return 0;
    for (uint32_t i = 0; i < plan->count; i++)
        more += !plan->duplicate[i] && str_eq(plan->tasks[i]->spec.origin.principal, maker->key);
    return token_tasks_check(plan->batch, maker, more, plan->err);
}
