/* The rules about principals. Each is written once, here, and tested as a table. Pure; any
 * thread. */
#include "core/access/principal.h"

#include "core/plan/catalog.h"
#include "core/queue_name.h"
#include "core/task/task.h"

static const char *const kind_words[PRINCIPAL_KIND_COUNT] = {
    [PRINCIPAL_LOCAL] = "local",
    [PRINCIPAL_ROOT] = "root",
    [PRINCIPAL_TOKEN] = "token",
    [PRINCIPAL_JWT] = "jwt",
    [PRINCIPAL_CERTIFICATE] = "certificate",
    [PRINCIPAL_PROXY] = "proxy",
    [PRINCIPAL_SQL] = "sql",
};

const char *principal_kind_word(enum principal_kind kind)
{
    return kind_words[kind];
}

void principal_write_label(struct buf *out, const struct principal *principal)
{
    buf_text(out, kind_words[principal->kind]);
    if (principal->kind == PRINCIPAL_LOCAL || principal->kind == PRINCIPAL_ROOT)
        return;
    buf_byte(out, ':');
    buf_str(out, principal->name);
}

bool principal_allows(const struct principal *principal, enum scope scope)
{
    return scopes_allow(principal->scopes, scope);
}

bool principal_is_global(const struct principal *principal)
{
    return str_is(principal->namespace_name, ACCESS_ANY_NAMESPACE);
}

bool principal_enters(const struct principal *principal, struct str namespace_name)
{
    return principal_is_global(principal) || str_eq(principal->namespace_name, namespace_name);
}

int principal_choose_namespace(const struct principal *principal, struct str asked,
                               struct str *chosen, struct err *err)
{
    if (asked.data) {
        *chosen = asked;
        TRY(namespace_check_name(asked, err));
        if (principal_enters(principal, asked))
            return 0;
        return err_set(err, ERR_FORBIDDEN,
                       "this credential belongs to the namespace " STR_FMT " and has no rights in "
                       STR_FMT "; leave Perdura-Namespace out, or ask for a token of that "
                       "namespace", STR_ARG(principal->namespace_name), STR_ARG(asked));
    }
    *chosen = principal_is_global(principal) ? STR(TASK_DEFAULT_NAMESPACE)
                                             : principal->namespace_name;
    return 0;
}

enum row_access principal_row(const struct principal *principal, struct str owner, bool write)
{
    if (!principal->user_id.data || (owner.data && str_eq(owner, principal->user_id)))
        return ROW_ALLOWED;
    if (owner.data)
        return ROW_HIDDEN;
    return write ? ROW_READ_ONLY : ROW_ALLOWED;
}

enum row_access caller_row(const struct caller *caller, struct str owner, bool write)
{
    return caller && caller->principal ? principal_row(caller->principal, owner, write)
                                       : ROW_ALLOWED;
}

int principal_refuse_ownerless(const struct principal *principal, const char *what,
                               struct err *err)
{
    return err_set(err, ERR_FORBIDDEN, "%s belongs to no user, and this credential may change what "
                   "belongs to user " STR_FMT " only; it may read it", what,
                   STR_ARG(str_cut(principal->user_id, 100)));
}

int principal_check_all_users(const struct principal *principal, struct err *err)
{
    if (!principal->user_id.data)
        return 0;
    return err_set(err, ERR_FORBIDDEN, "this concerns the tasks of all users, and this credential "
                   "is limited to those of user " STR_FMT "; use one without user_id",
                   STR_ARG(str_cut(principal->user_id, 100)));
}

int principal_check_user(const struct principal *principal, const char *field, struct str user,
                         struct err *err)
{
    if (!principal->user_id.data || !user.data || str_eq(user, principal->user_id))
        return 0;
    return err_set_field(err, ERR_FORBIDDEN, field, "this credential is limited to user " STR_FMT
                         "; leave '%s' out", STR_ARG(str_cut(principal->user_id, 100)), field);
}

bool scope_is_of_rows(enum scope scope)
{
    static const scope_set of_rows =
        SCOPE_BIT(SCOPE_TASKS_READ) | SCOPE_BIT(SCOPE_PAYLOADS_READ) |
        SCOPE_BIT(SCOPE_TASKS_ENQUEUE) | SCOPE_BIT(SCOPE_TASKS_CONTROL) |
        SCOPE_BIT(SCOPE_TASKS_DELETE) | SCOPE_BIT(SCOPE_PLANS_READ) |
        SCOPE_BIT(SCOPE_PLANS_WRITE) | SCOPE_BIT(SCOPE_PLANS_RUN) |
        SCOPE_BIT(SCOPE_ACCESS_WRITE);

    return (of_rows & SCOPE_BIT(scope)) != 0;
}

enum visibility principal_visibility(const struct principal *principal, struct str maker)
{
    if (principal_allows(principal, SCOPE_PAYLOADS_READ) ||
        (principal_allows(principal, SCOPE_TASKS_ENQUEUE) && maker.data && principal->key.data &&
         str_eq(maker, principal->key)))
        return VISIBLE_WHOLE;
    return principal_allows(principal, SCOPE_TASKS_READ) ? VISIBLE_REDACTED : VISIBLE_NOT;
}

/* The scopes of a token never change; those of others who ask may be more tomorrow. */
int principal_check_take(const struct principal *principal, struct str maker, const char *what,
                         struct err *err)
{
    bool is_own = maker.data && principal->key.data && str_eq(maker, principal->key);
    bool never_reads = !principal->key.data || (principal->kind == PRINCIPAL_TOKEN &&
                                                !principal_allows(principal, SCOPE_TASKS_ENQUEUE));

    if (is_own || never_reads || principal_allows(principal, SCOPE_PAYLOADS_READ))
        return 0;
    return err_set(err, ERR_FORBIDDEN, "%s would belong to your credential from now on, with all "
                   "it holds: that needs the scope payloads:read; ask someone with access:write "
                   "for a token that has it", what);
}

bool name_list_has(const struct name_list *list, struct str name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (settings_type_matches(list->names[i], name))
            return true;
    return list->count == 0;
}

/* "media*" is covered by "media*", "med*" and "*", not by "media". */
static bool pattern_includes(struct str whole, struct str part)
{
    bool open = whole.len && whole.data[whole.len - 1] == '*';

    if (open)
        return str_starts(part, str_span(whole.data, whole.len - 1));
    return str_eq(whole, part);
}

static bool list_includes_one(const struct name_list *whole, struct str part)
{
    for (uint32_t i = 0; i < whole->count; i++)
        if (pattern_includes(whole->names[i], part))
            return true;
    return false;
}

bool name_list_includes(const struct name_list *whole, const struct name_list *part)
{
    if (whole->count == 0)
        return true;
    for (uint32_t i = 0; i < part->count; i++)
        if (!list_includes_one(whole, part->names[i]))
            return false;
    return part->count > 0;
}

bool principal_owns(const struct principal *principal, struct str key)
{
    return scopes_allow(principal->scopes, SCOPE_ADMIN) ||
           (key.data && principal->key.data && str_eq(key, principal->key));
}

const struct caller *caller_keep(const struct caller *caller, struct arena *arena)
{
    struct caller *copy = caller ? arena_alloc(arena, sizeof *copy) : NULL;
    struct principal *principal = copy ? arena_alloc(arena, sizeof *principal) : NULL;

    if (!principal)
        return NULL;
    *principal = (struct principal){.kind = caller->principal->kind,
                                    .name = arena_str(arena, caller->principal->name),
                                    .id = arena_str(arena, caller->principal->id),
                                    .scopes = caller->principal->scopes,
                                    .max_tasks = caller->principal->max_tasks,
                                    .user_id = arena_str(arena, caller->principal->user_id),
                                    .key = arena_str(arena, caller->principal->key)};
    *copy = (struct caller){.principal = principal,
                            .namespace_name = arena_str(arena, caller->namespace_name),
                            .request_id = arena_str(arena, caller->request_id),
                            .is_program = caller->is_program};
    if (caller->address)
        copy->address = arena_copy(arena, caller->address, CALLER_ADDRESS_BYTES);
    return copy;
}

static int check_name(const struct name_list *list, struct str name, const char *field,
                      const char *what, struct err *err)
{
    if (name_list_has(list, name))
        return 0;
    return err_set_field(err, ERR_FORBIDDEN, field,
                         "this credential may not use the %s '" STR_FMT "'; use one that "
                         "`perdura whoami` lists, or ask someone with access:write for a token "
                         "that has it", what, STR_ARG(str_cut(name, 100)));
}

int principal_check_work(const struct principal *principal, struct str queue, struct str type,
                         struct str category, struct err *err)
{
    if (!(principal->queues.count | principal->types.count | principal->categories.count))
        return 0;
    TRY(check_name(&principal->queues, queue_name_plain(queue), "queue", "queue", err));
    TRY(check_name(&principal->types, type, "type", "type", err));
    return check_name(&principal->categories, category.data ? category : STR(CATEGORY_GENERAL),
                      "category", "category", err);
}

int principal_check_place(const struct principal *principal, struct str queue,
                          struct str category, struct err *err)
{
    TRY(check_name(&principal->categories, category, "category", "category", err));
    return check_name(&principal->queues, queue, "queue", "queue", err);
}

static int check_scopes(const struct principal *maker, const struct principal *made,
                        struct err *err)
{
    for (int i = 0; i < SCOPE_COUNT; i++)
        if ((made->scopes & SCOPE_BIT(i)) && !scopes_include(maker->scopes, SCOPE_BIT(i)))
            return err_set_field(err, ERR_FORBIDDEN, "scopes",
                                 "you cannot give the scope %s, because you do not have it",
                                 scope_word((enum scope)i));
    return 0;
}

static int check_list(const struct name_list *maker, const struct name_list *made,
                      const char *field, struct err *err)
{
    if (name_list_includes(maker, made))
        return 0;
    return err_set_field(err, ERR_FORBIDDEN, field,
                         "you can only give %s that your own credential is limited to", field);
}

/* Requests in the same time, and as many at once: compared without dividing. */
static bool rate_includes(const struct rate_rule *whole, const struct rate_rule *part)
{
    if (!whole->count)
        return true;
    return part->count && part->burst <= whole->burst &&
           (__int128)part->count * whole->per_ms <= (__int128)whole->count * part->per_ms &&
           (whole->burst || part->count <= whole->count);
}

static int check_rate(const struct principal *maker, const struct principal *made, struct err *err)
{
    if (rate_includes(&maker->rate, &made->rate))
        return 0;
    return err_set_field(err, ERR_FORBIDDEN, "rate",
                         "your own credential may make %lld requests in %lld ms; give a rate that "
                         "is no higher, with no larger burst", (long long)maker->rate.count,
                         (long long)maker->rate.per_ms);
}

static int check_tasks(const struct principal *maker, const struct principal *made,
                       struct err *err)
{
    if (!maker->max_tasks || (made->max_tasks && made->max_tasks <= maker->max_tasks))
        return 0;
    return err_set_field(err, ERR_FORBIDDEN, "max_tasks",
                         "your own credential may have %lld tasks that have not ended; give a "
                         "max_tasks that is no higher", (long long)maker->max_tasks);
}

int principal_check_grant(const struct principal *maker, const struct principal *made,
                          struct err *err)
{
    if (!principal_enters(maker, made->namespace_name))
        return err_set_field(err, ERR_FORBIDDEN, "namespace",
                             "you cannot give access to the namespace " STR_FMT
                             ", because you have none", STR_ARG(made->namespace_name));
    TRY(check_scopes(maker, made, err));
    if (maker->user_id.data && !str_eq(maker->user_id, made->user_id))
        return err_set_field(err, ERR_FORBIDDEN, "user_id",
                             "your own credential is limited to user " STR_FMT
                             "; set user_id to that", STR_ARG(maker->user_id));
    TRY(check_list(&maker->queues, &made->queues, "queues", err));
    TRY(check_list(&maker->types, &made->types, "types", err));
    TRY(check_list(&maker->categories, &made->categories, "categories", err));
    TRY(check_rate(maker, made, err));
    TRY(check_tasks(maker, made, err));
    if (maker->expires_at_us &&
        (!made->expires_at_us || made->expires_at_us > maker->expires_at_us))
        return err_set_field(err, ERR_FORBIDDEN, "expires_at",
                             "what you make cannot outlive your own credential; set an earlier "
                             "expires_at");
    return 0;
}

int principal_refuse(const struct principal *principal, enum scope scope,
                     struct str namespace_name, struct err *err)
{
    BUF_AUTO struct buf label = BUF_INIT(256);

    principal_write_label(&label, principal);
    return err_set(err, ERR_FORBIDDEN,
                   STR_FMT " may not do this in namespace " STR_FMT ": it needs the scope %s (%s); "
                   "ask someone with access:write for a token that has it",
                   STR_ARG(str_cut(buf_view(&label), 120)),
                   STR_ARG(str_cut(namespace_name, 80)), scope_word(scope), scope_text(scope));
}
