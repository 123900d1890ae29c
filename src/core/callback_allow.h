/* Which callback URLs may be called: the list `callbacks.allow`, or loopback when it is empty.
 * An entry is scheme and host, and maybe a port and a path prefix; hosts are compared whole. URLs
 * that programs may read differently (user info, backslashes, dot segments, odd ports) are never
 * allowed, so that the client cannot connect to another place than the one checked here. Pure; no
 * names are resolved. */
#ifndef CORE_CALLBACK_ALLOW_H
#define CORE_CALLBACK_ALLOW_H

#include "core/access/principal.h"
#include "core/settings.h"

/* True when an entry of the list covers url. Any thread. */
bool callback_allowed(const struct settings *settings, struct str url);

/* ERR_FORBIDDEN where only the default allows it: what listens on the server's own loopback is
 * nothing for clients from elsewhere, so without a list it takes someone who may do everything. */
int callback_check_right(const struct settings *settings, const struct principal *principal,
                         struct err *err);

/* True when entry can cover anything at all; the start refuses a list with others. */
bool callback_entry_valid(struct str entry);

/* The front of url up to its path: who is called, without what may be secret. Absent when url is
 * not one that could be allowed. */
struct str callback_origin(struct str url);

#endif
