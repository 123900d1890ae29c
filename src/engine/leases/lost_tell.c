/* What the log says of lost tasks, after the commit: one line per commit with how many were taken
 * back, from whom and why, and a line for each of the first that became poison. Never a line per
 * task: a server that comes back may find thousands. The queue's thread. */
#include "engine/leases/lost_tell.h"

#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/engine_state.h"

#define FROM_BYTES_MAX 2048

static struct lost_group *group_of(struct lost_told *told, struct str worker_id, const char *reason)
{
    for (uint32_t i = 0; i < told->groups_count; i++)
        if (str_eq(told->groups[i].worker_id, worker_id) &&
            strcmp(told->groups[i].reason, reason) == 0)
            return &told->groups[i];
    return NULL;
}

/* Before it is released: afterwards its holder is unknown. */
void lost_note(struct batch *batch, const struct task *task, const char *reason)
{
    struct lost_told *told = &batch->lost;
    struct str worker_id = task->lease.worker_id.data ? task->lease.worker_id : STR("nobody");
    struct lost_group *group = group_of(told, worker_id, reason);

    told->tasks_count++;
    if (!group && told->groups_count < LOST_GROUPS_MAX) {
        group = &told->groups[told->groups_count++];
        *group = (struct lost_group){arena_str(&batch->arena, worker_id), reason, 0};
    }
    if (group)
        group->tasks_count++;
    else
        told->others_count++;
}

void lost_note_poison(struct batch *batch, const struct task *task)
{
    struct lost_told *told = &batch->lost;

    if (told->poison_count < LOST_POISON_MAX)
        told->poison[told->poison_count] = task;
    told->poison_count++;
}

static void tell_poison(const struct log *log, const struct lost_told *told)
{
    uint32_t count = told->poison_count < LOST_POISON_MAX ? told->poison_count : LOST_POISON_MAX;

    for (uint32_t i = 0; i < count; i++) {
        const struct task *task = told->poison[i];
        char id[UUID_TEXT_BYTES];

        uuid_format(&task->id, id);
        LOG(log, LOG_WARN, "task.poison", KC("task", id), KS("type", task->spec.type),
            KS("namespace", task->spec.namespace_name),
            KS("queue", queue_name_plain(task->spec.queue)), KI("crashes", task->counts.crashes),
            KS("correlation_id", task->spec.correlation_id));
    }
    if (told->poison_count > count)
        LOG(log, LOG_WARN, "tasks.poison", KI("more", told->poison_count - count),
            KC("meaning", "as many others became poison; perdura task list --status dead_letter "
               "shows them"));
}

void lost_tell(const struct engine *engine, const struct batch *batch)
{
    const struct lost_told *told = &batch->lost;
    BUF_AUTO struct buf from = BUF_INIT(FROM_BYTES_MAX);

    if (told->tasks_count == 0)
        return;
    for (uint32_t i = 0; i < told->groups_count; i++)
        buf_format(&from, "%s%u of " STR_FMT " (%s)", i ? ", " : "", told->groups[i].tasks_count,
                   STR_ARG(told->groups[i].worker_id), told->groups[i].reason);
    if (told->others_count)
        buf_format(&from, ", %u of others", told->others_count);
    LOG(engine->log, LOG_INFO, "tasks.taken_back", KI("tasks", told->tasks_count),
        KS("from", buf_view(&from)), KI("poison", told->poison_count));
    tell_poison(engine->log, told);
}
