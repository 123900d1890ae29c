/* The source of the in-process pool and of the library: the queue in this very process. */
#ifndef WORKER_SOURCES_SOURCE_LOCAL_H
#define WORKER_SOURCES_SOURCE_LOCAL_H

#include "engine/engine.h"
#include "worker/sources/source.h"

/* The queue must outlive the source. NULL without memory. */
struct source *source_local_new(struct engine *engine);

#endif
