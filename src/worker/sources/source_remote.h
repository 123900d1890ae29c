/* A server somewhere as the source of tasks: the worker's routes of the HTTP API. Claims, reports,
 * heartbeats and the rest each have a connection of their own, so that none waits for another. */
#ifndef WORKER_SOURCES_SOURCE_REMOTE_H
#define WORKER_SOURCES_SOURCE_REMOTE_H

#include "net/http_client.h"
#include "worker/sources/source.h"

/* NULL with err when the address, the token or a file of TLS is no good; nothing is sent yet. tls
 * may be NULL; namespace_name absent = that of the token. */
struct source *source_remote_open(struct str url, struct str token, struct str namespace_name,
                                  const struct http_client_tls *tls, struct err *err);

#endif
