/* Searching logs by what their context holds: `/user/id:7` names a JSON pointer and the value that
 * must be there (D9). The same answers on every store. Pure, any thread. */
#ifndef CORE_LOG_LOG_MATCH_H
#define CORE_LOG_LOG_MATCH_H

#include "base/arena.h"

struct log_match {
    struct str pointer; /* absent = everything matches */
    struct str value;
};

/* False when it is not a pointer, a colon and a value. */
bool log_match_parse(struct str text, struct log_match *match);

/* Texts are compared decoded, everything else as it is written. A line without a context never
 * matches. The arena holds what was decoded. */
bool log_match_context(const struct log_match *match, struct str context, struct arena *arena);

#endif
