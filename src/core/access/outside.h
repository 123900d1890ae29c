/* Principals that others vouch for: the issuer of a JWT, the CA of a client certificate, a proxy in
 * front of the server. Each function turns what they say into a principal by the section `access:`
 * of the configuration. Whether they may be believed was decided before: the signature, the
 * handshake, the address of the proxy. Pure; any thread. */
#ifndef CORE_ACCESS_OUTSIDE_H
#define CORE_ACCESS_OUTSIDE_H

#include "core/access/jwt.h"
#include "core/access/principal.h"

/* All three: 0 and a principal in the arena, or ERR_FORBIDDEN with a sentence that says what is
 * missing, or ERR_MEMORY. */

/* The claims of a JWT whose signature and times are right. */
int outside_jwt(const struct jwt_settings *settings, const struct jwt *jwt, int64_t expires_at_us,
                struct arena *arena, const struct principal **principal, struct err *err);

/* The first rule whose name is among those of the certificate ("URI:…", "DNS:…"). Rights of several
 * rules are never added up. */
int outside_certificate(const struct access_settings *settings, const struct str *sans,
                        uint32_t sans_count, struct arena *arena,
                        const struct principal **principal, struct err *err);

/* What a proxy says of a person: a name, and groups with commas between. */
int outside_person(const struct proxy_settings *settings, struct str user, struct str groups,
                   struct arena *arena, const struct principal **principal, struct err *err);

/* Whether a rule's name is one that a certificate can have: an exact URI or DNS name. */
bool outside_san_valid(struct str san);
bool outside_san_matches(struct str rule, struct str given);

#endif
