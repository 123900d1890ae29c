/* The configuration of a command that takes --config and --store. One thread. */
#ifndef CLI_CONFIG_STORE_CALL_H
#define CLI_CONFIG_STORE_CALL_H

#include "cli/frame/command.h"
#include "cli/config/config.h"

/* Flags of the call, environment, file and defaults. config_deinit in every case. */
int store_call_config(struct call *call, struct config *config);

#endif
