/* Looking at tasks, waiting for them, controlling them: what is the same on both sides.
 * Any thread. */
#include "lib/lib_sizes.h"

#include "core/queue_name.h"

#include "core/task/task_fields.h"

#include <stdlib.h>

/* The editable texts of the list: where a result and an update have them, as task_edits does. */
#define ASK_NOT
#define ASK_TEXT(name, path, bytes, flag, value, help)
#define ASK_COUNT(name, path, given, max, flag, help)
#define ASK_MS(name, path, given, min, flag, help)
#define ASK_EDIT(name, path, bytes, flag, value, help) offsetof(struct pd_result, name),
#define EACH(name, path, kind, flags, empty, words, show, ask) ask
static const size_t in_result[] = {TASK_FIELDS_ALL(EACH) 0};
#undef ASK_EDIT
#define ASK_EDIT(name, path, bytes, flag, value, help) offsetof(struct pd_update, name),
static const size_t in_update[] = {TASK_FIELDS_ALL(EACH) 0};

static const char **text_in(void *given, size_t at)
{
    return (const char **)(void *)((char *)given + at);
}

static size_t room_of(struct str text)
{
    return text.data ? text.len + 1 : 0;
}

static const char *put(char **at, struct str text)
{
    char *copy = *at;

    if (!text.data)
        return NULL;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

_Static_assert((int)PD_STATUS_BLOCKED == (int)STATUS_BLOCKED &&
               (int)PD_STATUS_CANCELLED == (int)STATUS_CANCELLED, "statuses have the same numbers");

/* The JSON null is no value, on both sides. */
static struct str value_of(struct str json)
{
    return json.data && json_kind(json) == JSON_NULL ? STR_NONE : json;
}

int lib_fill_result(struct pd_result *result, const struct task *task, struct str payload,
                    struct err *err)
{
    const struct str parts[] = {task->spec.type,      queue_name_plain(task->spec.queue),
                                task->state,          value_of(task->spec.payload),
                                value_of(task->data), value_of(task->about.metadata),
                                value_of(payload),    task->fault.error,
                                task->fault.last};
    const char **texts[] = {&result->type, &result->queue, &result->state, &result->payload,
                            &result->data, &result->metadata, &result->result, &result->error,
                            &result->last_error};
    struct task_about about = task->about;
    size_t bytes = 1;
    char *at;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        bytes += room_of(parts[i]);
    for (size_t i = 0; task_edits[i].name; i++)
        bytes += room_of(*task_edit_text(&about, i));
    *result = (struct pd_result){.size = sizeof *result,
                                 .status = (enum pd_status)task->status,
                                 .ended = status_ended(task->status),
                                 .progress = (int)task->progress,
                                 .priority = (int)task->priority,
                                 .attempts = task->counts.attempts,
                                 .retry_count = task->counts.retries,
                                 .version = task->version,
                                 .created_at_us = task->spec.created_at_us,
                                 .started_at_us = task->lease.started_at_us,
                                 .completed_at_us = task->completed_at_us,
                                 .status_word = status_word(task->status),
                                 .memory = malloc(bytes)};
    TRY_MEMORY(result->memory);
    uuid_format(&task->id, result->id);
    at = result->memory;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        *texts[i] = put(&at, parts[i]);
    for (size_t i = 0; task_edits[i].name; i++)
        *text_in(result, in_result[i]) = put(&at, *task_edit_text(&about, i));
    return 0;
}

void pd_result_free(struct pd_result *result)
{
    struct err err;
    size_t size;

    if (!result || lib_check_size(&lib_sized_result, result->size, &err) < 0)
        return; /* never initialised, so nothing is in it */
    size = result->size;
    free(result->memory);
    memset(result, 0, size);
    result->size = size;
}

/* `whole` is as large as it is here, the program's own as it knows it. */
static int fetch(struct pd *pd, const char *id, int64_t wait_ms, struct pd_result *whole,
                 struct pd_result *result)
{
    struct err err = {0};
    struct uuid task_id;

    if (lib_check_size(&lib_sized_result, result->size, &err) < 0)
        return lib_fail(pd, &err);
    if (!pd->side)
        err_set(&err, ERR_INVALID, "the handle is not open");
    else if (lib_parse_id(id, &task_id, &err) == 0)
        pd->verbs->fetch(pd, &task_id, wait_ms, whole, &err);
    lib_give_struct(&lib_sized_result, whole, result);
    return err.code == ERR_NONE ? PD_OK : lib_fail(pd, &err);
}

int pd_get(struct pd *pd, const char *id, struct pd_result *result)
{
    struct pd_result whole = PD_RESULT_INIT;

    return fetch(pd, id, 0, &whole, result);
}

int pd_wait(struct pd *pd, const char *id, int64_t timeout_ms, struct pd_result *result)
{
    struct pd_result whole = PD_RESULT_INIT;
    int rc = fetch(pd, id, timeout_ms < 0 ? PD_FOREVER : timeout_ms, &whole, result);
    struct err err = {0};

    if (rc < 0 || whole.ended)
        return rc;
    err_set(&err, ERR_REQUEST_TIMEOUT, "task %s has not ended in time; it is %s", whole.id,
            whole.status_word);
    return lib_fail(pd, &err);
}

static int control_as(struct pd *pd, const char *id, struct control_request *wish)
{
    struct err err = {0};

    wish->actor = ACTOR_USER;
    if (!pd->side)
        err_set(&err, ERR_INVALID, "the handle is not open");
    else if (lib_parse_id(id, &wish->task_id, &err) == 0)
        pd->verbs->control(pd, wish, &err);
    return err.code == ERR_NONE ? PD_OK : lib_fail(pd, &err);
}

static int control(struct pd *pd, const char *id, enum control_op op)
{
    return control_as(pd, id, &(struct control_request){.op = op, .if_version = -1});
}

int pd_cancel(struct pd *pd, const char *id)
{
    return control(pd, id, CONTROL_CANCEL);
}

int pd_retry(struct pd *pd, const char *id)
{
    return control(pd, id, CONTROL_RETRY);
}

int pd_pause(struct pd *pd, const char *id)
{
    return control(pd, id, CONTROL_PAUSE);
}

int pd_resume(struct pd *pd, const char *id)
{
    return control(pd, id, CONTROL_RESUME);
}

int pd_recover(struct pd *pd, const char *id)
{
    return control(pd, id, CONTROL_RECOVER);
}

int pd_prioritize(struct pd *pd, const char *id, int priority)
{
    struct err err = {0};

    if (priority < -BOUND_PRIORITY || priority > BOUND_PRIORITY) {
        err_set(&err, ERR_INVALID, "a priority is a number from -%d to %d", BOUND_PRIORITY,
                BOUND_PRIORITY);
        return lib_fail(pd, &err);
    }
    return control_as(pd, id, &(struct control_request){.op = CONTROL_PRIORITIZE,
                                                        .if_version = -1,
                                                        .priority = priority});
}

static int fill_change(struct pd_update *update, struct task_change *change, struct err *err)
{
    for (size_t i = 0; task_edits[i].name; i++) {
        const char *given = *text_in(update, in_update[i]);
        struct str text;

        if (!given)
            continue;
        TRY(lib_check_text(given, task_edits[i].name, &text, err));
        TRY(change_add(change, i, text, err));
    }
    return 0;
}

int pd_update(struct pd *pd, const char *id, const struct pd_update *update)
{
    struct control_request wish = {.op = CONTROL_UPDATE, .if_version = -1};
    struct pd_update taken;
    struct err err = {0};

    if (lib_take_struct(&lib_sized_update, update, &taken, &err) < 0 ||
        fill_change(&taken, &wish.change, &err) < 0)
        return lib_fail(pd, &err);
    if (taken.if_version)
        wish.if_version = taken.if_version == PD_NONE ? 0 : taken.if_version;
    return control_as(pd, id, &wish);
}

int pd_delete(struct pd *pd, const char *id)
{
    return control(pd, id, CONTROL_DELETE);
}

int pd_enqueue_batch(struct pd *pd, const struct pd_task_spec *specs, size_t count,
                     struct pd_enqueued *enqueued)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    const void *taken;

    if (!pd->side)
        err_set(&err, ERR_INVALID, "the handle is not open");
    else if (count > BOUND_ARRAY)
        err_set(&err, ERR_TOO_LARGE, "%zu tasks are too many; enqueue at most %d at once", count,
                BOUND_ARRAY);
    else if (count > 0 &&
             lib_take_array(&lib_sized_spec, specs, count, &arena, &taken, &err) == 0)
        pd->verbs->enqueue(pd, taken, (uint32_t)count, enqueued, &err);
    return err.code == ERR_NONE ? PD_OK : lib_fail(pd, &err);
}

int pd_enqueue(struct pd *pd, const struct pd_task_spec *spec, char *id)
{
    struct pd_enqueued enqueued;
    int rc = pd_enqueue_batch(pd, spec, 1, &enqueued);

    if (rc == PD_OK && id)
        memcpy(id, enqueued.id, sizeof enqueued.id);
    return rc;
}
