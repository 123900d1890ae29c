/* "Did you mean Europe/Paris?" behind a refusal that says that there is no such time zone. */
#ifndef CLI_PLANS_ZONE_HINT_H
#define CLI_PLANS_ZONE_HINT_H

#include "base/err.h"

/* Adds it to the sentence where this machine has a zone of a name near enough; other sentences, and
 * zones that are far from all others, stay as they are. */
void zone_hint_add(struct err *err);

#endif
