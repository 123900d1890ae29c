/* What a principal may ask for: scopes, and roles as names for usual sets of scopes. Every route
 * names the scope it needs (server/router.c). Pure data and functions; any thread. */
#ifndef CORE_ACCESS_SCOPE_H
#define CORE_ACCESS_SCOPE_H

#include "base/buf.h"
#include "base/err.h"

/* name, word, what it allows */
#define SCOPES(X)                                                                                 \
    X(TASKS_READ, "tasks:read", "see tasks, without payloads, results, checkpoints and log texts") \
    X(PAYLOADS_READ, "payloads:read", "see tasks with all they hold")                             \
    X(TASKS_ENQUEUE, "tasks:enqueue", "enqueue tasks, and read and wait for one's own")           \
    X(TASKS_CONTROL, "tasks:control", "cancel, retry, pause, resume, prioritize, recover, fork")  \
    X(TASKS_DELETE, "tasks:delete", "delete tasks")                                               \
    X(WORK, "work", "register as a worker, claim tasks and report on them")                       \
    X(PLANS_READ, "plans:read", "see categories, jobs, schedules and patterns")                   \
    X(PLANS_WRITE, "plans:write", "change categories, jobs, schedules and patterns")              \
    X(PLANS_RUN, "plans:run", "run jobs, schedules and patterns now")                             \
    X(QUEUES_WRITE, "queues:write", "change, pause, resume and delete queues")                    \
    X(METRICS_READ, "metrics:read", "see figures, metrics, services, inboxes and brokers")        \
    X(AUDIT_READ, "audit:read", "see the audit trail")                                            \
    X(ACCESS_WRITE, "access:write", "make and revoke tokens, change namespaces and keys")         \
    X(ADMIN, "admin", "everything")

enum scope {
#define X(name, word, text) SCOPE_##name,
    SCOPES(X)
#undef X
        SCOPE_COUNT
};

typedef uint32_t scope_set; /* bits of enum scope */

#define SCOPE_BIT(scope) ((scope_set)1 << (scope))

const char *scope_word(enum scope scope);
const char *scope_text(enum scope scope); /* what it allows */
bool scope_parse(struct str word, enum scope *scope);

/* A role is one word for a set of scopes; nothing else is stored of it. */
struct role {
    const char *word;
    scope_set scopes;
};
extern const struct role roles[];
extern const uint32_t roles_count;
const struct role *role_find(struct str word); /* NULL = there is none */

/* Whether the set allows it: by name, by `admin`, or because another scope includes it. */
bool scopes_allow(scope_set scopes, enum scope scope);
/* Whether everything `part` allows is allowed by `whole`. */
bool scopes_include(scope_set whole, scope_set part);

/* Adds the scope or the role with this word; false = there is neither. */
bool scopes_add_word(scope_set *scopes, struct str word);
/* The words with a space between, as they are stored. Unknown words are ERR_INVALID. */
void scopes_write(struct buf *out, scope_set scopes);
int scopes_read(struct str words, scope_set *scopes, struct err *err);
void scopes_write_json(struct buf *out, scope_set scopes); /* an array of the words */

#endif
