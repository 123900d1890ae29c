/* The source of the in-process pool and of the library: the queue in this very process. */
#ifndef WORKER_SOURCES_SOURCE_LOCAL_H
#define WORKER_SOURCES_SOURCE_LOCAL_H

#include "engine/engine.h"
#include "worker/sources/source.h"

/* The engine and the caller must outlive the source; caller NULL = the program itself, in the
 * namespace `default`. NULL without memory. */
struct source *source_local_new(struct engine *engine, const struct caller *caller);

#endif
