/* A server somewhere as the source of tasks: the worker's routes of the HTTP API. Claims, reports,
 * heartbeats and the rest each have a connection of their own, so that none waits for another. */
#ifndef WORKER_SOURCES_SOURCE_REMOTE_H
#define WORKER_SOURCES_SOURCE_REMOTE_H

#include "worker/sources/source.h"

/* NULL with err when the address or the token is no good; nothing is sent yet. */
struct source *source_remote_open(struct str url, struct str token, struct err *err);

#endif
