/* The nearest known word to a mistyped one, for "did you mean" sentences. Pure. */
#ifndef CLI_FRAME_SUGGEST_H
#define CLI_FRAME_SUGGEST_H

#include "base/str.h"

struct suggest {
    struct str typed;
    const char *best; /* NULL = nothing is near enough */
    uint32_t distance;
};

void suggest_init(struct suggest *suggest, struct str typed);
void suggest_offer(struct suggest *suggest, const char *word); /* the first of equals stays */

#endif
