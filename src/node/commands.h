/* What the server and `perdura worker` need to run commands: the spawner, and a look at what those
 * commands could read. */
#ifndef NODE_COMMANDS_H
#define NODE_COMMANDS_H

#include "base/log.h"
#include "core/settings.h"
#include "worker/process/spawner.h"

/* Warns of each program that is not there: of handlers that run here, on a server of validators;
 * and of a worker that has no program at all. */
void commands_warn_missing(const struct settings *settings, bool has_store,
                           const struct log *log);

/* Warns of that, and where commands can read secrets of this process's user. NULL with err where
 * commands are configured and cannot be started as they shall. */
struct spawner *commands_open(const struct settings *settings, bool has_store,
                              const struct log *log, struct err *err);

#endif
