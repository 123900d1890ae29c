/* What a person says when a task that asked is resumed: kept as data.resume, where its handler
 * finds it. The number of the event tells one answer from the next. The writer's thread. */
#include "engine/tasks/resume_answer.h"

#include "base/json.h"
#include "core/bounds.h"

/* A task that the batch holds may have left its data in the store. */
static int load_data(struct batch *batch, struct task *task, struct err *err)
{
    struct task *whole = NULL;

    if (task->has_data)
        return 0;
    TRY(batch->store->verbs->tasks_load(batch->store, &task->id, 1, LOAD_ALL, &batch->arena,
                                        &whole, err));
    if (!whole)
        return err_set(err, ERR_NOT_FOUND, "the task was removed");
    if (whole->row.locked)
        return err_set(err, ERR_TRANSITION, "the task is encrypted, and its key is not here");
    task->data = whole->data;
    return 0;
}

int resume_answer_put(struct batch *batch, struct task *task, struct str answer, struct err *err)
{
    BUF_AUTO struct buf out = BUF_INIT(BOUND_DATA_BYTES);
    struct json_member member;
    struct json_iter iter;

    TRY(load_data(batch, task, err));
    if (task->data.data && json_kind(task->data) != JSON_OBJECT &&
        json_kind(task->data) != JSON_NULL)
        return err_set(err, ERR_TRANSITION, "the task's data is no object and cannot "
                       "keep an answer");
    buf_byte(&out, '{');
    json_begin(task->data.data ? task->data : STR("{}"), &iter);
    while (json_next_member(&iter, &member)) {
        if (json_key_is(member.key, STR("resume")))
            continue;
        json_comma(&out);
        buf_byte(&out, '"');
        buf_str(&out, member.key);
        buf_text(&out, "\":");
        buf_str(&out, member.value);
    }
    json_comma(&out);
    buf_format(&out, "\"resume\":{\"event\":%lld,", (long long)task->event_seq + 1);
    buf_append(&out, answer.data + 1, answer.len - 1);
    buf_byte(&out, '}');
    if (out.failed)
        return err_set(err, ERR_TOO_LARGE, "the task's data would be larger than 1 MiB");
    task->data = arena_str(&batch->arena, buf_view(&out));
    TRY_MEMORY(task->data.data);
    task->has_data = true;
    return 0;
}
