/* What agents of this process did, for metrics. Pure data. */
#ifndef CORE_AGENT_AGENT_FIGURES_H
#define CORE_AGENT_AGENT_FIGURES_H

#include "core/agent/budget.h"

enum agent_outcome { AGENT_ANSWERED, AGENT_LIMITED, AGENT_FAILED, AGENT_STOPPED, AGENT_OUTCOMES };

struct agent_figures {
    char agent[AGENT_ID_BYTES + 1];
    char model[AGENT_ID_BYTES + 1];
    int64_t calls[AGENT_OUTCOMES];
    struct agent_usage usage;
    int64_t day;           /* since the epoch, UTC */
    struct agent_usage today;
};

/* Where they come from; NULL views = there are none. */
struct agent_views {
    bool (*view)(void *ctx, uint32_t index, struct agent_figures *figures);
    void *ctx;
};

#endif
