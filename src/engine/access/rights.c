#include "engine/access/rights.h"

bool rights_hide(const struct request *request, struct str owner)
{
    return caller_row(request->caller, owner, false) == ROW_HIDDEN;
}

enum visibility rights_visibility(const struct caller *caller, const struct task *task)
{
    if (!caller || !caller->principal)
        return VISIBLE_WHOLE;
    if (principal_row(caller->principal, task->spec.user_id, false) == ROW_HIDDEN)
        return VISIBLE_NOT;
    return principal_visibility(caller->principal, task->spec.origin.principal);
}

static bool same_maker(const struct task *a, const struct task *b)
{
    return str_eq(a->spec.origin.principal, b->spec.origin.principal) &&
           !a->spec.origin.principal.data == !b->spec.origin.principal.data;
}

int rights_depend(const struct task_input *input, const struct task *spawner,
                  const struct task *on, bool *hides, struct err *err)
{
    const struct principal *maker = input->maker;
    enum visibility seen = VISIBLE_WHOLE;

    if (maker)
        seen = principal_visibility(maker, on->spec.origin.principal);
    *hides = maker && principal_row(maker, on->spec.user_id, false) == ROW_HIDDEN;
    if (*hides || seen == VISIBLE_WHOLE || !uuid_is_nil(&input->forked_from) ||
        (spawner && same_maker(spawner, on)))
        return 0;
    *hides = seen == VISIBLE_NOT;
    if (*hides)
        return 0;
    return err_set_field(err, ERR_FORBIDDEN, "depends_on", "a task gets the results of those it "
                         "depends on, so that naming one of another maker needs the scope "
                         "payloads:read; ask someone with access:write for a token that has it");
}

int rights_change(const struct request *request, struct str owner, const char *what,
                  struct err *err)
{
    if (caller_row(request->caller, owner, true) != ROW_READ_ONLY)
        return 0;
    return principal_refuse_ownerless(request->caller->principal, what, err);
}
