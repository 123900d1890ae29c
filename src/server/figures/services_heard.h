/* What workers elsewhere told of the services they call: how each one is, as long as they live, and
 * the calls of all of them together. In memory, for those that show it. Loop thread. */
#ifndef SERVER_FIGURES_SERVICES_HEARD_H
#define SERVER_FIGURES_SERVICES_HEARD_H

#include "core/service/service_told.h"

struct services_heard {
    struct service_heard *first; /* the one heard of last */
    uint32_t count;
};

/* Of a worker that has just proved that it lives. */
void services_heard_put(struct services_heard *heard, struct str namespace_name, struct str worker,
                        const struct services_told *told, int64_t lease_us);

uint32_t services_heard_count(const struct services_heard *heard);

/* One after the other: *at begins as NULL. Texts live until the next put. */
bool services_heard_next(const struct services_heard *heard, const struct service_heard **at,
                         int64_t lease_us, struct str *namespace_name, struct service_view *view);

void services_heard_deinit(struct services_heard *heard);

#endif
