/* From a YAML tree to the settings; between config_yaml.c and config_walk.c only. */
#ifndef CLI_CONFIG_CONFIG_WALK_H
#define CLI_CONFIG_CONFIG_WALK_H

#include <yaml.h>

#include "cli/config/config.h"

/* name stands before the line in messages. */
int config_walk(struct config *config, yaml_document_t *document, const char *name,
                struct err *err);

#endif
