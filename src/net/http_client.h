/* A blocking HTTP client for calls to our own API: JSON in, JSON out, one connection kept alive.
 * Not for the servers of strangers. A client belongs to one thread; only interrupt may come from
 * another. */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include "base/buf.h"
#include "base/err.h"

#define HTTP_CLIENT_RESPONSE_BYTES (64 * 1024 * 1024) /* a claim of many large tasks */

struct http_client;

/* base_url: http:// or https://, host, port, and maybe a path in front of every path. token may be
 * absent. NULL with err (ERR_INVALID for a bad URL or token). */
struct http_client *http_client_new(struct str base_url, struct str token, struct err *err);
void http_client_free(struct http_client *client);

/* For a server behind https://. What is absent: the CAs of the system; no client certificate; the
 * key is in the file of the certificate. */
struct http_client_tls {
    struct str ca, cert, key; /* PEM files, read again when they change */
};

/* Once, before the first call. -ERR_INVALID when a file cannot be read. */
int http_client_set_tls(struct http_client *client, const struct http_client_tls *tls,
                        struct err *err);

/* Sent with every call from now on. Name and value were checked: neither has a line break. */
int http_client_add_header(struct http_client *client, struct str name, struct str value,
                           struct err *err);

/* One request. body absent = none. 0 with *status whenever the server answered, whatever it said;
 * -ERR_UNAVAILABLE when it cannot be reached, TLS fails (field "tls") or the call was interrupted,
 * -ERR_REQUEST_TIMEOUT, -ERR_TOO_LARGE, -ERR_IO. response is reset first; its maximum counts if it
 * is the smaller one. No redirects are followed and no proxy of the environment is used. */
int http_client_call(struct http_client *client, const char *method, const char *path,
                     struct str body, int64_t timeout_ms, struct buf *response, int *status,
                     struct err *err);

/* The same, and a status of 400 and above becomes the error its body tells. */
int http_client_request(struct http_client *client, const char *method, const char *path,
                        struct str body, int64_t timeout_ms, struct buf *response, int *status,
                        struct err *err);

/* The call under way and all later ones end with -ERR_UNAVAILABLE. */
void http_client_interrupt(struct http_client *client);

/* The error of an answer {"error":{"code","message","field"}}; the status decides where the body
 * does not. Returns the negative code. */
int http_client_error(int status, struct str body, struct err *err);

/* The error of a 401: what is missing, and how to give it. Returns the negative code. */
int http_client_unauthorized(const struct http_client *client, const struct err *why,
                             struct err *err); /* why: in the words of the server */

/* Appends text as one path segment or query value. */
void http_client_escape(struct buf *out, struct str text);

#endif
