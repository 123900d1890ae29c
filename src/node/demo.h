/* The demonstration of `perdura serve --demo`: sample handlers in plain sh, and on an empty store
 * some tasks for them, so that there is something to see at once. */
#ifndef NODE_DEMO_H
#define NODE_DEMO_H

#include "engine/engine.h"

/* Adds the demo's handlers (types demo:*) behind those of the configuration. */
int demo_settings(struct settings *settings, struct arena *arena);
/* Enqueues the sample tasks when the store has none yet. */
int demo_enqueue(struct engine *engine, const struct settings *settings, struct err *err);

#endif
