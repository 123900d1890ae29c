/* Where a request may come from: the Host and Origin checks that keep foreign web pages out (DNS
 * rebinding, forged requests), and where the server may listen. Who asks is in identify.h. Pure;
 * loop thread. */
#ifndef SERVER_DOOR_AUTH_H
#define SERVER_DOOR_AUTH_H

#include "base/err.h"
#include "core/access/principal.h"
#include "net/http.h"

struct auth {
    char host[HTTP_ADDRESS_BYTES]; /* the address listened on, without brackets */
    char port[8];
    bool any_address;              /* listens on 0.0.0.0 or [::] */
    bool loopback;
    const struct settings *settings;
    const struct call_keys *call_keys; /* NULL = no service is called from here */
};

/* address is "host:port" as bound. */
int auth_init(struct auth *auth, const char *address, const struct settings *settings,
              struct err *err);

/* Before listening: an address beyond loopback needs a token that cannot be guessed, or others that
 * clients can show: API tokens, or settings that ask for one (access.required). */
int auth_check_listen(struct str listen, struct str token, bool has_others, struct err *err);

/* The same for what is sent: it needs TLS, or settings that say who else does it. */
int auth_check_clear_text(struct str listen, const struct settings *settings, struct err *err);

#define AUTH_TOKEN_BYTES_MIN 16 /* beyond loopback: 64 bits even of hex digits */

/* 0, or -ERR_FORBIDDEN (Host, Origin). */
int auth_check(const struct auth *auth, const struct http_request *request, struct err *err);

/* Whether every client may ask for it, token or not. */
bool auth_is_open(const struct auth *auth, const struct http_request *request);

/* Whether it goes where services say how a call ended: no other credential counts there than the
 * URL itself. */
bool auth_is_completion(const struct http_request *request);
/* Is it a URL that came with a call? */
bool auth_completion_good(const struct auth *auth, const struct http_request *request);

#endif
