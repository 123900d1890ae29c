/* A subset of JSON Schema, for the arguments of tools: type (also a list), properties, required,
 * additionalProperties (true or false), items, enum, const, minimum, maximum, minLength, maxLength,
 * minItems, maxItems. description, title, default, examples and $schema say nothing. Another word
 * is refused when the configuration is read, so that no rule is silently not kept. Pure. */
#ifndef CORE_AGENT_SCHEMA_H
#define CORE_AGENT_SCHEMA_H

#include "base/err.h"
#include "base/json.h"

int schema_check(struct str schema, struct err *err);

/* -ERR_INVALID: the sentence names the place, as the model can read it. Both were checked. */
int schema_validate(struct str schema, struct str value, struct err *err);

#endif
