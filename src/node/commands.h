/* What the server and `perdura worker` need to run commands: the spawner, and a look at what those
 * commands could read. */
#ifndef NODE_COMMANDS_H
#define NODE_COMMANDS_H

#include "base/log.h"
#include "core/settings.h"
#include "worker/spawner.h"

/* NULL with err where commands are configured and cannot be started. */
struct spawner *commands_open(const struct settings *settings, struct err *err);

#endif
