/* The root cause: from a task that waits for others to the one at the root, which waits for none;
 * from a task that ended because of another to the first one. Facts only, for explain.c. */
#include "base/json.h"
#include "engine/access/rights.h"
#include "engine/batch.h"
#include "engine/tasks/explain.h"

/* Of several that it waits for, the one that is least likely to end by itself. */
static int stuck_rank(enum status status)
{
    static const enum status order[] = {STATUS_CLAIMED, STATUS_RUNNING,  STATUS_RECOVERING,
                                        STATUS_PENDING, STATUS_DELAYED,  STATUS_BLOCKED,
                                        STATUS_ORPHANED, STATUS_PAUSED};
    int rank = 0;

    while (rank < (int)(sizeof order / sizeof *order) && order[rank] != status)
        rank++;
    return rank;
}

static bool waited_for(const struct why_facts *facts, struct uuid *id)
{
    const struct why_task *worst = NULL;

    for (uint32_t i = 0; i < facts->waits_for_count; i++)
        if (!worst || stuck_rank(facts->waits_for[i].status) > stuck_rank(worst->status))
            worst = &facts->waits_for[i];
    if (worst)
        *id = worst->id;
    return worst != NULL;
}

/* The task that is named by one that ended because of it, and as what it had ended. */
static bool blamed(const struct task *task, struct uuid *id, enum status *then,
                   struct arena *arena)
{
    struct str named = STR_NONE, status = STR_NONE;

    if (str_starts(task->fault.error, STR("dependency_unsatisfied")) && task->fault.details.data &&
        json_kind(task->fault.details) == JSON_OBJECT) {
        named = json_get(task->fault.details, STR("task_id"));
        status = json_get(task->fault.details, STR("status"));
    }
    if (!status.data || json_kind(status) != JSON_STRING ||
        !status_parse(json_string(status, arena), then))
        *then = STATUS_NONE;
    return named.data && json_kind(named) == JSON_STRING &&
           uuid_parse(json_string(named, arena), id);
}

static bool next_of(const struct why_facts *facts, struct uuid *id, enum status *then,
                    struct arena *arena)
{
    *then = STATUS_NONE;
    if (status_ended(facts->task->status))
        return blamed(facts->task, id, then, arena);
    return facts->task->status == STATUS_BLOCKED && waited_for(facts, id);
}

/* Errors are what handlers said. */
static int tell_root(struct why_facts *last, const struct caller *asker, struct arena *arena,
                     struct why_root *root, struct err *err)
{
    struct task *task = TRY_MEMORY(arena_copy(arena, last->task, sizeof *task));
    struct why why;

    if (rights_visibility(asker, task) != VISIBLE_WHOLE)
        task->fault = (struct task_fault){0};
    last->task = task;
    TRY(why_decide(last, arena, &why, err));
    *root = (struct why_root){
        .reason = why.reason,
        .text = why.text,
        .detail = why.detail,
        .error = arena_str(arena, task->fault.error.data ? task->fault.error : task->fault.last)};
    return 0;
}

int explain_chain(struct batch *batch, const struct caller *asker, struct arena *arena,
                  struct why_facts *facts, struct err *err)
{
    struct why_facts hop = *facts;
    enum status then = STATUS_NONE;
    struct uuid id;

    while (next_of(&hop, &id, &then, arena)) {
        struct task *task;

        if (facts->chain_count == WHY_CHAIN_MAX) {
            facts->chain_goes_on = true;
            return 0;
        }
        TRY(batch_task(batch, &id, &task, err));
        if (!task || rights_visibility(asker, task) == VISIBLE_NOT) /* removed, or as if it were */
            return 0;
        TRY(explain_task(batch, task, asker, arena, &hop, err));
        facts->chain[facts->chain_count++] =
            (struct why_task){.id = id, .status = task->status, .then = then};
        if (then && then != task->status)
            break; /* what it waits for now is not what it ended for then */
    }
    return facts->chain_count ? tell_root(&hop, asker, arena, &facts->root, err) : 0;
}
