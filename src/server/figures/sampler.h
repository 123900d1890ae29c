/* What the server knows of its last day. Loop thread. */
#ifndef SERVER_FIGURES_SAMPLER_H
#define SERVER_FIGURES_SAMPLER_H

#include "core/measure/history.h"
#include "server/server_int.h"

struct sampler *sampler_open(struct server *server, struct err *err);
void sampler_free(struct sampler *sampler);
void sampler_hurry(struct sampler *sampler); /* a client follows from now on */
const struct history *sampler_history(const struct sampler *sampler);
struct str sampler_within(const struct api_call *call);
/* The event of this second, as it is sent; only while stream_stats runs. `within`: of one namespace
 * (absent = all there are), `only`: of one queue, by its full name. */
void sampler_write_second(struct server *server, struct str within, struct str only,
                          struct buf *out);

#endif
