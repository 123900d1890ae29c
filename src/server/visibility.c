/* Which tasks a caller may see, and how much of them: the one place that decides it. Any thread
 * that works on the call. */
#include "server/visibility.h"

bool call_has_user(const struct api_call *call)
{
    return call->principal && call->principal->user_id.data;
}

bool call_hides_task(const struct api_call *call, const struct task *task)
{
    return call->principal &&
           principal_row(call->principal, task->spec.user_id, false) == ROW_HIDDEN;
}

int call_hides_id(struct api_call *call, struct store_reader *reader, const struct uuid *id,
                  struct arena *scratch, bool *hides)
{
    struct task *task = NULL;

    *hides = false;
    if (!call_has_user(call))
        return 0;
    TRY(call->server->store->verbs->read_task(reader, id, scratch, &task, &call->err));
    *hides = !task || call_hides_task(call, task);
    return 0;
}

enum visibility { VISIBLE_NOT, VISIBLE_REDACTED, VISIBLE_WHOLE };

bool call_sees_content(const struct api_call *call)
{
    return !call->principal || principal_allows(call->principal, SCOPE_PAYLOADS_READ);
}

/* What one has made oneself one may read as a whole: its maker wrote the payload and waits for the
 * result. */
static enum visibility visibility_of(const struct api_call *call, const struct task *task)
{
    const struct principal *principal = call->principal;
    struct str maker = task->spec.origin.principal;

    if (call_sees_content(call))
        return VISIBLE_WHOLE;
    if (principal_allows(principal, SCOPE_TASKS_ENQUEUE) && maker.data && principal->key.data &&
        str_eq(maker, principal->key))
        return VISIBLE_WHOLE;
    return principal_allows(principal, SCOPE_TASKS_READ) ? VISIBLE_REDACTED : VISIBLE_NOT;
}

bool call_redacts(const struct api_call *call, const struct task *task)
{
    return visibility_of(call, task) != VISIBLE_WHOLE;
}

int call_check_task(struct api_call *call, const struct task *task)
{
    if (task && !call_hides(call, task->spec.namespace_name) && !call_hides_task(call, task) &&
        (call->route->needs.kind != RIGHT_OWN || visibility_of(call, task) != VISIBLE_NOT))
        return 0;
    return err_set(&call->err, ERR_NOT_FOUND, "there is no task with this id");
}

static int read_visibility(struct api_call *call, struct store_reader *reader,
                           struct arena *scratch)
{
    struct task *task = NULL;

    TRY(call->server->store->verbs->read_task(reader, &call->task_id, scratch, &task, &call->err));
    return call_check_task(call, task);
}

int call_look_first(struct api_call *call, call_step *then)
{
    if (!call->principal ||
        (principal_allows(call->principal, SCOPE_TASKS_READ) && !call_has_user(call)))
        return then(call);
    return call_look(call, read_visibility, then);
}

int call_check_names(struct api_call *call, const struct name_list *own, const char *field,
                     const struct str *names, uint32_t count)
{
    for (uint32_t i = 0; own->count && i < count; i++)
        if (!name_list_includes(own, &(struct name_list){&names[i], 1}))
            return err_set_field(&call->err, ERR_FORBIDDEN, field, "this credential may not use '"
                                 STR_FMT "' of %s; ask for what `perdura whoami` lists, or ask "
                                 "someone with access:write for a token that has it",
                                 STR_ARG(str_cut(names[i], 100)), field);
    return 0;
}
