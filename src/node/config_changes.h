/* Logs what a reload of the configuration removes or leaves unchanged: a reload that only says
 * "done" would hide both. */
#ifndef NODE_CONFIG_CHANGES_H
#define NODE_CONFIG_CHANGES_H

#include "base/log.h"
#include "core/settings.h"

struct config_reader {
    bool runs_handlers; /* a worker, or a server with a pool */
    bool has_queues;    /* the command line names the queues it serves */
    bool has_store;     /* a server */
};

/* Which types have no handler here any more, which queues are served no more, which queues keep
 * limits that the file does not name any more. */
void config_changes_tell(const struct settings *before, const struct settings *now,
                         const struct config_reader *reader, const struct log *log);

#endif
