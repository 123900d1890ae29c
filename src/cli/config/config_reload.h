/* The configuration, read again while a server or worker runs. A reload takes the settings that may
 * change at any time from the file; everything else stays as it was at the start, and is named.
 * Every configuration that was in force stays in memory until the end: running handlers still use
 * theirs, and later configurations share what did not change. A configuration without changes is
 * not kept. */
#ifndef CLI_CONFIG_CONFIG_RELOAD_H
#define CLI_CONFIG_CONFIG_RELOAD_H

#include "cli/frame/command.h"
#include "cli/config/config.h"
#include "node/node.h"

struct config_reload {
    struct call *call;
    struct config *newest; /* each has the one before it; the first is its owner's */
};

void config_reload_deinit(struct config_reload *reload);
#define CONFIG_RELOAD_AUTO __attribute__((cleanup(config_reload_deinit)))
/* For node_serve_main and node_worker_main. */
struct node_config config_reload_source(struct config_reload *reload);

#endif
