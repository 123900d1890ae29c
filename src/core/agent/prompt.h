/* Prompt templates: {{payload}}, {{payload.topic}}, {{data.x.0}}, {{metadata.x}}, {{dependencies}},
 * {{children}}, {{type}}, {{id}}. Texts stand as they are, other values as JSON, what is not there
 * as nothing. What is put in is not read as a template again. Pure. */
#ifndef CORE_AGENT_PROMPT_H
#define CORE_AGENT_PROMPT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct prompt_values {
    struct str id, type;
    struct str payload, data, metadata; /* JSON, checked; data with dependencies and children */
};

/* When the configuration is read: every {{…}} is closed and names something there can be. */
int prompt_check(struct str text, struct err *err);
void prompt_write(struct str text, const struct prompt_values *values, struct arena *arena,
                  struct buf *out);

#endif
