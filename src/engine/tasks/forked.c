/* The part of an enqueue that only forks have: the copied checkpoint, in the same transaction. */
#include "base/fault.h"
#include "base/json.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/tasks/enqueue.h"
#include "engine/tasks/reports.h"

struct str forked_detail(struct batch *batch, const struct task_input *input)
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
int forked_begin(struct batch *batch, struct task *task, const struct checkpoint *from,
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
