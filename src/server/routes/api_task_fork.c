/* POST /v1/tasks/{id}:fork: a new task like an old one, which begins behind one of its checkpoints.
 * A reader looks up what the old one is and its checkpoint, then it is enqueued like any other.
 * Loop thread, but for read_original. */
#include "server/api.h"
#include "server/body.h"
#include "server/server_int.h"

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

static int no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, "there is not enough memory; try again");
}

/* ---- what was asked for ---- */

static int parse_from(struct api_call *call, const struct body_field *field,
                      struct fork_call *fork)
{
    fork->from_seq = -1;
    if (!field->value.data)
        return 0;
    if (json_kind(field->value) == JSON_STRING) {
        fork->from_name = json_string(field->value, call->arena);
        return fork->from_name.data ? 0 : no_memory(&call->err);
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
    int rc = call_object(call, &object);

    fork->if_version = -1;
    if (rc == 0)
        rc = body_parse(object, fields, COUNT, &call->err);
    if (rc == 0)
        rc = parse_from(call, &fields[FROM], fork);
    if (rc == 0)
        rc = body_text(&fields[QUEUE], BOUND_NAME_BYTES, call->arena, &wish->queue, &call->err);
    if (rc == 0)
        rc = body_text(&fields[NAME], BOUND_NAME_BYTES, call->arena, &wish->name, &call->err);
    if (rc == 0 && wish->name.data)
        rc = body_check_name("name", wish->name, BOUND_NAME_BYTES, &call->err);
    if (rc == 0)
        rc = body_int(&fields[IF_VERSION], 0, INT64_MAX, &fork->if_version, &call->err);
    if (rc == 0 && fields[PRIORITY].value.data)
        rc = spec_read_priority(fields[PRIORITY].value, "priority", call->arena, &wish->priority,
                                &call->err);
    wish->has_priority = fields[PRIORITY].value.data != NULL;
    parse_json(&fields[PAYLOAD], &wish->payload, &wish->has_payload);
    parse_json(&fields[DATA], &wish->data, &wish->has_data);
    return rc;
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
        if (call->server->store->verbs->read_checkpoints(reader, &call->task_id, before, 1,
                                                         scratch, &row, &count, &call->err) < 0)
            return -(int)call->err.code;
        if (count == 0 || (fork->from_seq > 0 && row->seq != fork->from_seq))
            break;
        before = row->seq;
        if (!is_wanted(fork, &call->task_id, row))
            continue;
        if (!row->valid || !checkpoint_intact(&call->task_id, row))
            return err_set_field(&call->err, ERR_INVALID, "from_checkpoint", "the checkpoint %lld "
                                 "is damaged; choose another one", (long long)row->seq);
        *found = copy_checkpoint(row, call->arena);
        return *found ? 0 : no_memory(&call->err);
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

    if (verbs->read_task(reader, &call->task_id, call->arena, &task, &call->err) < 0)
        return -(int)call->err.code;
    if (!task)
        return err_set(&call->err, ERR_NOT_FOUND, "there is no task with this id");
    if (fork->if_version >= 0 && fork->if_version != task->version)
        return err_set(&call->err, ERR_VERSION, "the task is at version %lld, not %lld; read it "
                       "again", (long long)task->version, (long long)fork->if_version);
    if (verbs->read_dependencies(reader, &call->task_id, call->arena, &dependencies, &count,
                                 &call->err) < 0 ||
        find_checkpoint(call, reader, scratch, &checkpoint) < 0)
        return -(int)call->err.code;
    if (call->arena->failed)
        return no_memory(&call->err);
    return fork_input(task, dependencies, count, checkpoint, &fork->wish, call->arena,
                      &fork->input, &call->err);
}

/* ---- the new one ---- */

static void forked(struct api_call *call)
{
    const struct fork_call *fork = call->ctx;
    char location[16 + UUID_TEXT_BYTES] = "/v1/tasks/";

    call->task_id = fork->request.tasks[0]->id;
    uuid_format(&call->task_id, location + strlen(location));
    http_reply_header(call->exchange, "Location", location);
    call_read(call, api_read_task);
}

static void enqueue_fork(struct api_call *call)
{
    struct fork_call *fork = call->ctx;

    fork->request.inputs = &fork->input;
    fork->request.count = 1;
    fork->request.actor = ACTOR_USER;
    call_submit(call, &fork->request.base, REQUEST_ENQUEUE, forked);
}

void api_task_fork(struct api_call *call)
{
    struct fork_call *fork = arena_alloc(call->arena, sizeof *fork);
    int rc = call_task_id(call);

    if (rc == 0 && !fork)
        rc = no_memory(&call->err);
    if (rc == 0)
        rc = parse_fork(call, fork);
    if (rc < 0) {
        call_fail(call);
        return;
    }
    call->ctx = fork;
    call_look(call, read_original, enqueue_fork);
}
