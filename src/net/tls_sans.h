/* The names (SAN) of a certificate that the other side has shown, as text. Pure; any thread. */
#ifndef NET_TLS_SANS_H
#define NET_TLS_SANS_H

#include "base/str.h"

#include <openssl/x509v3.h>

#define TLS_SANS_MAX 32 /* names of a certificate that are looked at */

/* "URI:spiffe://..." and "DNS:name", in the order of the certificate; names of other kinds, and
 * those that could be mistaken for another, are left out. One piece of memory for free(); NULL
 * where there are none, or no memory. */
struct str *tls_sans_of(const GENERAL_NAMES *names, uint32_t *count);

#endif
