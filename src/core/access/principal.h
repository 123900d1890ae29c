/* Who asks, and what that allows: one struct for tokens, JWTs, certificates and people behind a
 * proxy. The door (server/door) makes one per request; routes and the engine ask the functions
 * below and decide nothing themselves. Pure; any thread. */
#ifndef CORE_ACCESS_PRINCIPAL_H
#define CORE_ACCESS_PRINCIPAL_H

#include "base/arena.h"
#include "core/access/scope.h"
#include "core/settings.h"

#define ACCESS_ANY_NAMESPACE "*"

enum principal_kind {
    PRINCIPAL_LOCAL,       /* no credential is asked for: loopback without tokens */
    PRINCIPAL_ROOT,        /* PERDURA_TOKEN */
    PRINCIPAL_TOKEN,       /* a row of api_tokens */
    PRINCIPAL_JWT,
    PRINCIPAL_CERTIFICATE,
    PRINCIPAL_PROXY,
    PRINCIPAL_SQL,         /* a role of the database, in a transaction of its own */
    PRINCIPAL_KIND_COUNT
};

/* Names that count, each exact or a prefix ending in '*'. None listed = all count. */
struct name_list {
    const struct str *names;
    uint32_t count;
};

struct principal {
    enum principal_kind kind;
    struct str name;           /* how people know it: the token's name, the subject, the SAN */
    struct str id;             /* of a token: its 16 hex digits; else absent */
    struct str key;            /* what its tasks and workers remember: "token:ID", "root"; absent
                                * for `local` */
    struct str namespace_name; /* "*" = every namespace */
    scope_set scopes;
    struct str user_id;        /* sees and changes rows of this user only; absent = of all */
    struct name_list queues, types, categories; /* narrow enqueueing and work */
    struct rate_rule rate;     /* of requests; count 0 = no limit */
    int64_t max_tasks;         /* of a token: its tasks that have not ended; 0 = no limit */
    int64_t expires_at_us;     /* 0 = never */
};

/* One request of a principal: what it is about, and where it came from. The engine gets one with
 * every request of a client; a request without one is the program's own. */
#define CALLER_ADDRESS_BYTES 16
struct caller {
    const struct principal *principal;
    struct str namespace_name; /* one namespace, never "*" */
    const uint8_t *address;    /* of the client (IPv6 or mapped); NULL = unknown */
    struct str request_id;     /* X-Request-Id; absent = none */
    bool is_program;           /* the program itself, within a namespace: nothing to audit */
};

const char *principal_kind_word(enum principal_kind kind);
/* "local", "root", "token:NAME", "jwt:NAME" …: what events, audit and metrics say. */
void principal_write_label(struct buf *out, const struct principal *principal);

bool principal_allows(const struct principal *principal, enum scope scope);
bool principal_enters(const struct principal *principal, struct str namespace_name);
/* The namespace of a request: the one it asked for (absent = none asked for), the principal's own,
 * or `default` for a principal of every namespace. ERR_INVALID for what is no name, ERR_FORBIDDEN
 * for a namespace the principal has no rights in. */
int principal_choose_namespace(const struct principal *principal, struct str asked,
                               struct str *chosen, struct err *err);
/* Whether it may see and change what concerns all namespaces. */
bool principal_is_global(const struct principal *principal);

/* What a principal with a user_id may do with a row of that owner (absent = ownerless). */
enum row_access {
    ROW_ALLOWED,
    ROW_HIDDEN,   /* another user's: as if it were not there */
    ROW_READ_ONLY /* ownerless: it may be read, and a change is refused */
};
enum row_access principal_row(const struct principal *principal, struct str owner, bool write);
/* The same for a request; the program itself (NULL) may do everything. */
enum row_access caller_row(const struct caller *caller, struct str owner, bool write);
/* The refusals of one that is limited to the rows of a user: of a change to what has no owner
 * ("this task"), of what concerns the rows of all users, and of a user that is not its own. */
int principal_refuse_ownerless(const struct principal *principal, const char *what,
                               struct err *err);
int principal_check_all_users(const struct principal *principal, struct err *err);
int principal_check_user(const struct principal *principal, const char *field, struct str user,
                         struct err *err);
/* Whether what this scope is for is in the rows of users; all else a principal of one user does not
 * get, whatever its scopes are. */
bool scope_is_of_rows(enum scope scope);

/* How much it may see of a task that the principal with the key `maker` has made (absent = one
 * without a credential). What one has made oneself one may read as a whole: its maker wrote the
 * payload and waits for the result. */
enum visibility { VISIBLE_NOT, VISIBLE_REDACTED, VISIBLE_WHOLE };
enum visibility principal_visibility(const struct principal *principal, struct str maker);

/* ERR_FORBIDDEN where it must not become the maker of what one with the key `maker` has made: it
 * could read what it may not read now. */
int principal_check_take(const struct principal *principal, struct str maker, const char *what,
                         struct err *err);

bool name_list_has(const struct name_list *list, struct str name);
/* Whether every name that `part` covers is covered by `whole`. */
bool name_list_includes(const struct name_list *whole, const struct name_list *part);

/* Whether it may use what the principal with this key has made (absent = the program itself):
 * its own, or anything with admin rights. */
bool principal_owns(const struct principal *principal, struct str key);

/* For a request that may outlive the caller's: its own copy, with what principal_owns, caller_row
 * and the audit trail ask for and nothing else of the principal. NULL for NULL; else the arena says
 * whether there was memory. */
const struct caller *caller_keep(const struct caller *caller, struct arena *arena);

/* A credential can give no more than its maker has. ERR_FORBIDDEN names what is missing. */
int principal_check_grant(const struct principal *maker, const struct principal *made,
                          struct err *err);

/* Whether it may put work into this queue (by either name), of this type and category (absent =
 * `general`). ERR_FORBIDDEN names what its credential is limited to. */
int principal_check_work(const struct principal *principal, struct str queue, struct str type,
                         struct str category, struct err *err);

/* The same of a category, which gives jobs and tasks their queue. */
int principal_check_place(const struct principal *principal, struct str queue,
                          struct str category, struct err *err);

/* The refusal of a request that needs a scope the principal does not have: ERR_FORBIDDEN with a
 * sentence that names scope and namespace and says how to get it. */
int principal_refuse(const struct principal *principal, enum scope scope,
                     struct str namespace_name, struct err *err);

#endif
