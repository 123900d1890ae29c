/* Two ways in that the connection vouches for: the header of a trusted proxy, and the client's
 * certificate. Pure; loop thread. */
#ifndef SERVER_DOOR_DOOR_OUTSIDE_H
#define SERVER_DOOR_DOOR_OUTSIDE_H

#include "core/access/principal.h"
#include "net/http.h"

/* The headers of access.proxy from an address that is no proxy's: ERR_FORBIDDEN, whatever else the
 * request shows; twice: ERR_MALFORMED. *user is absent where there is none. */
int door_proxy_headers(const struct proxy_settings *settings, const struct http_request *request,
                       struct str *user, struct str *groups, struct err *err);

/* Whether the client certificate decides here: it does where access.certificates is set, or where
 * every request needs a credential. */
bool door_certificate_counts(const struct settings *settings, const struct http_request *request);

#endif
