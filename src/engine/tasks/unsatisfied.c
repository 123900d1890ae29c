/* Ends a task whose dependency ended otherwise than required, as on_unsatisfied says, and names the
 * culprit. Also checks the dependencies of a task that is retried. */
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/tasks/ended.h"

#define PARENTS_PAGE 100 /* results come along */
#define NAMED_MAX 5      /* parents named in a refusal */

/* {"reason":…,"task_id":…,"status":…,"dependency_type":…}: of the event and of error_details. */
static struct str culprit_json(struct batch *batch, const struct culprit *culprit)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&culprit->task_id, id);
    return batch_text(batch, "{\"reason\":\"dependency_unsatisfied\",\"task_id\":\"%s\","
                      "\"status\":\"%s\",\"dependency_type\":\"%s\"}", id,
                      status_word(culprit->status), dependency_word(culprit->kind));
}

int unsatisfied_end(struct batch *batch, struct task *task, enum status to,
                    const struct culprit *culprit, struct err *err)
{
    struct str detail = STR_NONE;

    task->fault.error = STR("dependency_unsatisfied");
    if (culprit->status != STATUS_NONE) {
        char id[UUID_TEXT_BYTES];

        uuid_format(&culprit->task_id, id);
        task->fault.error = batch_text(batch, "dependency_unsatisfied: task %s ended as %s", id,
                                       status_word(culprit->status));
        detail = task->fault.details = culprit_json(batch, culprit);
    }
    return batch_move(batch, task, to, MOVE_RELEASE_DEPENDENCY, "Dependency not satisfied",
                      ACTOR_LEADER, detail, err);
}

/* Parents that are open, and such as ended otherwise than required. */
struct parents {
    int64_t open;
    struct culprit unmet[NAMED_MAX];
    uint32_t unmet_count; /* also those that are not named */
};

/* On a store that others write to: the end of a parent elsewhere and this must not miss each other,
 * so its row is written, and one of the two is tried again. */
static int hold_parent(struct batch *batch, const struct uuid *id, struct err *err)
{
    struct task *parent;

    if (!batch->store->shared)
        return 0;
    TRY(batch_task(batch, id, &parent, err));
    return parent ? batch_owe(batch, parent, err) : 0;
}

static int note_parent(struct batch *batch, const struct output *output, struct parents *parents,
                       struct err *err)
{
    if (!status_ended(output->status)) {
        parents->open++;
        return hold_parent(batch, &output->id, err);
    }
    if (dependency_met(output->kind, output->status))
        return hold_parent(batch, &output->id, err);
    if (parents->unmet_count < NAMED_MAX)
        parents->unmet[parents->unmet_count] =
            (struct culprit){output->id, output->status, output->kind};
    parents->unmet_count++;
    return 0;
}

static int look_at_parents(struct batch *batch, const struct task *task, struct parents *parents,
                           struct err *err)
{
    int64_t after = 0;
    uint32_t count = 0;

    *parents = (struct parents){0};
    if (!task_has_dependencies(batch, task))
        return 0;
    TRY(batch_settle(batch, err));
    TRY(batch_flush(batch, err));
    do {
        ARENA_AUTO struct arena page = ARENA_INIT(0);
        struct output *outputs;

        TRY(batch->store->verbs->outputs_find(batch->store, &task->id, false, after, PARENTS_PAGE,
                                              &page, &outputs, &count, err));
        for (uint32_t i = 0; i < count; i++) {
            after = outputs[i].key;
            TRY(note_parent(batch, &outputs[i], parents, err));
        }
        TRY_MEMORY(!page.failed);
    } while (count == PARENTS_PAGE);
    return 0;
}

int unsatisfied_find(struct batch *batch, const struct task *task, struct culprit *culprit,
                     struct err *err)
{
    struct parents parents;

    *culprit = (struct culprit){.status = STATUS_NONE};
    TRY(look_at_parents(batch, task, &parents, err));
    if (parents.unmet_count)
        *culprit = parents.unmet[0];
    return 0;
}

static int refuse_unmet(const struct parents *parents, struct err *err)
{
    BUF_AUTO struct buf names = BUF_INIT(4096);
    uint32_t named = parents->unmet_count < NAMED_MAX ? parents->unmet_count : NAMED_MAX;
    int rc;

    for (uint32_t i = 0; i < named; i++) {
        char id[UUID_TEXT_BYTES];

        uuid_format(&parents->unmet[i].task_id, id);
        buf_format(&names, "%s%s (%s)", i ? ", " : "", id, status_word(parents->unmet[i].status));
    }
    if (parents->unmet_count > named)
        buf_format(&names, " and %u more", parents->unmet_count - named);
    rc = err_set_field(err, ERR_TRANSITION, "ignore_dependencies", "its dependencies are not met: "
                       STR_FMT "; retry them first, or retry it with \"ignore_dependencies\"",
                       STR_ARG(names.failed ? STR("some of them") : buf_view(&names)));
    return rc;
}

int unsatisfied_check_retry(struct batch *batch, const struct task *task, int64_t *open,
                            struct err *err)
{
    struct parents parents;

    *open = 0;
    TRY(look_at_parents(batch, task, &parents, err));
    if (parents.unmet_count &&
        outcome_unsatisfied(task->spec.on_unsatisfied) != STATUS_PENDING)
        return refuse_unmet(&parents, err);
    *open = parents.open;
    return 0;
}

int unsatisfied_wait_again(struct batch *batch, struct task *task, int64_t open, struct err *err)
{
    struct str detail = batch_text(batch, "{\"reason\":\"dependencies\",\"open\":%lld}",
                                   (long long)open);

    if (!task_has_dependencies(batch, task))
        return 0;
    batch->wrote = true;
    TRY(batch->store->verbs->dependencies_undecide(batch->store, &task->id, err));
    if (open == 0)
        return 0;
    task->waits.open_dependencies += open;
    if (task->status != STATUS_PENDING) /* it waits for a slot of its job as well */
        return batch_owe(batch, task, err);
    return batch_move(batch, task, STATUS_BLOCKED, MOVE_POSTPONE, "Waiting for dependencies",
                      ACTOR_LEADER, detail, err);
}
