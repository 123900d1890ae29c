/* A part of a configuration as JSON, for values that are whatever the user writes. */
#ifndef CLI_CONFIG_CONFIG_JSON_H
#define CLI_CONFIG_CONFIG_JSON_H

#include <yaml.h>

#include "base/buf.h"

/* False: a key is no scalar. The tree's size and depth were checked. */
bool config_write_json(yaml_document_t *document, const yaml_node_t *node, struct buf *out);

#endif
