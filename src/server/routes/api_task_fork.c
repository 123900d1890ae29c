/* POST /v1/tasks/{id}:fork: a new task like an old one, which begins behind one of its checkpoints.
 * A reader looks up what the old one is and its checkpoint, then it is enqueued like any other.
 * Loop thread, but for read_original. */
#include "server/body.h"
#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "core/bounds.h"
#include "core/task/checkpoint.h"
#include "core/spec/fork.h"

#define CHECKPOINTS_SEEN_MAX 10000 /* looked through for a name */

struct fork_call {
    struct enqueue_request request;
    struct task_input input;
    struct fork_wish wish;
    int64_t if_version;    /* -1 = any */
    struct str from_name;  /* absent: by number ... */
    int64_t from_seq;      /* ... -1 = the newest that is whole, 0 = from the start */
};

/* ---- what was asked for ---- */

static int parse_from(struct api_call *call, const struct body_field *field,
                      struct fork_call *fork)
{
    fork->from_seq = -1;
    if (!field->value.data)
        return 0;
    if (json_kind(field->value) == JSON_STRING) {
        fork->from_name = json_string(field->value, call->arena);
        return fork->from_name.data ? 0 : call_no_memory(call);
    }
    if (json_int64(field->value, &fork->from_seq) && fork->from_seq >= 0)
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "from_checkpoint", "'from_checkpoint' must be "
                         "the number or the name of a checkpoint, or 0 for the start");
}

/* JSON that may also be null; it is a slice of the body. */
static void parse_json(const struct body_field *field, struct str *value, bool *given)
{
    *given = field->value.data || field->is_null;
    *value = field->value;
}

static int parse_fork(struct api_call *call, struct fork_call *fork)
{
    enum { FROM, PAYLOAD, DATA, QUEUE, NAME, PRIORITY, IF_VERSION, COUNT };
    struct body_field fields[COUNT] = {{.name = "from_checkpoint"}, {.name = "payload"},
                                       {.name = "data"}, {.name = "queue"}, {.name = "name"},
                                       {.name = "priority"}, {.name = "if_version"}};
    struct fork_wish *wish = &fork->wish;
    struct str object;

    TRY(call_object(call, &object));
    fork->if_version = -1;
    TRY(body_parse(object, fields, COUNT, &call->err));
    TRY(parse_from(call, &fields[FROM], fork));
    TRY(body_text(&fields[QUEUE], BOUND_NAME_BYTES, call->arena, &wish->queue, &call->err));
    TRY(body_text(&fields[NAME], BOUND_NAME_BYTES, call->arena, &wish->name, &call->err));
    if (wish->name.data)
        TRY(body_check_name("name", wish->name, BOUND_NAME_BYTES, &call->err));
    TRY(body_int(&fields[IF_VERSION], 0, INT64_MAX, &fork->if_version, &call->err));
    if (fields[PRIORITY].value.data)
        TRY(spec_read_priority(fields[PRIORITY].value, "priority", call->arena, &wish->priority,
                               &call->err));
    wish->has_priority = fields[PRIORITY].value.data != NULL;
    parse_json(&fields[PAYLOAD], &wish->payload, &wish->has_payload);
    parse_json(&fields[DATA], &wish->data, &wish->has_data);
    return 0;
}

/* ---- what it is a fork of ---- */

static int no_such_checkpoint(struct err *err, const struct fork_call *fork)
{
    if (fork->from_name.data)
        return err_set_field(err, ERR_INVALID, "from_checkpoint", "the task has no checkpoint "
                             "named '" STR_FMT "'", STR_ARG(str_cut(fork->from_name, 100)));
    return err_set_field(err, ERR_INVALID, "from_checkpoint", "the task has no checkpoint %lld, or "
                         "retention has removed it", (long long)fork->from_seq);
}

static bool is_wanted(const struct fork_call *fork, const struct uuid *task_id,
                      const struct checkpoint *checkpoint)
{
    if (fork->from_name.data)
        return str_eq(checkpoint->name, fork->from_name);
    return fork->from_seq > 0 ? checkpoint->seq == fork->from_seq
                              : checkpoint->valid && checkpoint_intact(task_id, checkpoint);
}

static struct checkpoint *copy_checkpoint(const struct checkpoint *from, struct arena *arena)
{
    struct checkpoint *copy = arena_copy(arena, from, sizeof *from);

    if (!copy)
        return NULL;
    copy->name = arena_str(arena, from->name);
    copy->description = arena_str(arena, from->description);
    copy->data = arena_str(arena, from->data);
    copy->database_state = arena_str(arena, from->database_state);
    copy->file_state = arena_str(arena, from->file_state);
    return arena->failed ? NULL : copy;
}

/* From the newest back, one at a time: each may have megabytes. The one wanted goes to the call's
 * arena; none is NULL where none was named. */
static int find_checkpoint(struct api_call *call, struct store_reader *reader,
                           struct arena *scratch, struct checkpoint **found)
{
    const struct fork_call *fork = call->ctx;
    int64_t before = fork->from_seq > 0 ? fork->from_seq + 1 : 0;
    bool named = fork->from_name.data || fork->from_seq > 0;
    struct checkpoint *row;
    uint32_t count = 1;

    *found = NULL;
    for (uint32_t seen = 0; fork->from_seq != 0 && count && seen < CHECKPOINTS_SEEN_MAX; seen++) {
        arena_reset(scratch);
        TRY(call->server->store->verbs->read_checkpoints(reader, &call->task_id, before, 1, scratch,
                                                         &row, &count, &call->err));
        if (count == 0 || (fork->from_seq > 0 && row->seq != fork->from_seq))
            break;
        before = row->seq;
        if (!is_wanted(fork, &call->task_id, row))
            continue;
        if (!row->valid || !checkpoint_intact(&call->task_id, row))
            return err_set_field(&call->err, ERR_INVALID, "from_checkpoint", "the checkpoint %lld "
                                 "is damaged; choose another one", (long long)row->seq);
        *found = copy_checkpoint(row, call->arena);
        return *found ? 0 : call_no_memory(call);
    }
    return named ? no_such_checkpoint(&call->err, fork) : 0;
}

static int read_original(struct api_call *call, struct store_reader *reader,
                         struct arena *scratch)
{
    const struct store_verbs *verbs = call->server->store->verbs;
    struct fork_call *fork = call->ctx;
    struct task_dependency *dependencies = NULL;
    struct checkpoint *checkpoint;
    struct task *task = NULL;
    uint32_t count = 0;

    TRY(verbs->read_task(reader, &call->task_id, call->arena, &task, &call->err));
    TRY(call_check_task(call, task));
    if (caller_row(&call->caller, task->spec.user_id, true) == ROW_READ_ONLY)
        return principal_refuse_ownerless(call->principal, "this task", &call->err);
    if (task->row.locked)
        return err_set(&call->err, ERR_LOCKED, "the task is encrypted and cannot be opened here, "
                                               "so that there is nothing to fork");
    if (fork->if_version >= 0 && fork->if_version != task->version)
        return err_set(&call->err, ERR_VERSION, "the task is at version %lld, not %lld; read it "
                       "again", (long long)task->version, (long long)fork->if_version);
    TRY(verbs->read_dependencies(reader, &call->task_id, call->arena, &dependencies, &count,
                                 &call->err));
    TRY(find_checkpoint(call, reader, scratch, &checkpoint));
    if (call->arena->failed)
        return call_no_memory(call);
    return fork_input(task, dependencies, count, checkpoint, &fork->wish, call->arena,
                      &fork->input, &call->err);
}

/* ---- the new one ---- */

static int forked(struct api_call *call)
{
    const struct fork_call *fork = call->ctx;

    call->task_id = fork->request.tasks[0]->id;
    call_location(call, "/v1/tasks/", &call->task_id);
    return call_read(call, api_read_task);
}

static int enqueue_fork(struct api_call *call)
{
    struct fork_call *fork = call->ctx;

    fork->request.inputs = &fork->input;
    fork->request.count = 1;
    fork->request.actor = ACTOR_USER;
    return call_submit(call, &fork->request.base, REQUEST_ENQUEUE, forked);
}

int api_task_fork(struct api_call *call)
{
    struct fork_call *fork = CALL_NEW(call, sizeof *fork);

    TRY(call_task_id(call));
    TRY(parse_fork(call, fork));
    return call_look(call, read_original, enqueue_fork);
}
