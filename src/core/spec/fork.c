/* What task a fork is. Pure, any thread. */
#include "core/spec/fork.h"

#include "base/json.h"
#include "core/bounds.h"

/* Its metadata with forked_from in front; that of a fork names its own original only. */
static struct str write_metadata(const struct task *task, struct arena *arena)
{
    BUF_AUTO struct buf text = BUF_INIT(BOUND_METADATA_BYTES + BOUND_FORKED_FROM_BYTES);
    char id[UUID_TEXT_BYTES];
    struct json_member member;
    struct json_iter iter;
    struct str copy;

    uuid_format(&task->id, id);
    buf_format(&text, "{\"forked_from\":\"%s\"", id);
    if (task->about.metadata.data) {
        json_begin(task->about.metadata, &iter);
        while (json_next_member(&iter, &member)) {
            if (json_key_is(member.key, STR("forked_from")))
                continue;
            buf_text(&text, ",\"");
            buf_str(&text, member.key);
            buf_text(&text, "\":");
            buf_str(&text, member.value);
        }
    }
    buf_byte(&text, '}');
    copy = text.failed ? STR_NONE : arena_str(arena, buf_view(&text));
    return copy;
}

/* What belongs to the original alone. */
static void drop_own(struct task_spec *spec)
{
    spec->idempotency_key = STR_NONE;
    spec->input_hash = STR_NONE;
    spec->external_id = STR_NONE;
    spec->origin.ref = STR_NONE;
    spec->origin.job_id = (struct uuid){{0}};
    spec->origin.schedule_id = (struct uuid){{0}};
    spec->origin.recurring_job_id = (struct uuid){{0}};
    spec->origin.parent_id = (struct uuid){{0}};
    spec->run_at_us = 0;
    spec->created_at_us = 0;
}

static int copy_dependencies(const struct task_dependency *dependencies, uint32_t count,
                             struct arena *arena, struct task_input *input, struct err *err)
{
    input->depends_on = arena_alloc_array(arena, count + 1, sizeof *input->depends_on);
    if (!input->depends_on)
        return err_no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        input->depends_on[i] = (struct input_dependency){.task_id = dependencies[i].task_id,
                                                         .kind = dependencies[i].kind};
    input->depends_on_count = count;
    return 0;
}

static void take_wishes(const struct fork_wish *wish, struct task_input *input)
{
    if (wish->has_payload)
        input->spec.payload = wish->payload;
    if (wish->has_data)
        input->data = wish->data;
    if (wish->queue.data)
        input->spec.queue = wish->queue;
    if (wish->name.data)
        input->spec.name = wish->name;
    if (wish->has_priority)
        input->priority = wish->priority;
    input->has_queue = input->has_priority = true;
}

int fork_input(const struct task *task, const struct task_dependency *dependencies,
               uint32_t dependencies_count, const struct checkpoint *checkpoint,
               const struct fork_wish *wish, struct arena *arena, struct task_input *input,
               struct err *err)
{
    spec_init(input);
    input->spec = task->spec;
    drop_own(&input->spec);
    input->had_begun = task->counts.attempts > 0;
    if (input->had_begun)
        input->spec.on_unsatisfied = UNSATISFIED_RUN;
    input->data = task->data;
    input->priority = task->priority;
    input->forked_from = task->id;
    input->checkpoint = checkpoint;
    input->about.metadata = write_metadata(task, arena);
    if (!input->about.metadata.data)
        return err_no_memory(err);
    TRY(copy_dependencies(dependencies, dependencies_count, arena, input, err));
    take_wishes(wish, input);
    return spec_finish(input, NULL, arena, err);
}
