/* What the files of GET /metrics share. */
#ifndef SERVER_FIGURES_METRICS_INT_H
#define SERVER_FIGURES_METRICS_INT_H

#include "core/measure/metrics_text.h"
#include "server/figures/stats_look.h"

#define METRICS_QUEUE(name)                                                                    \
    ((const struct metrics_label[]){{"queue", (name)}, {NULL, STR_NONE}})

/* Is it about the whole server, or about one namespace? */
bool metrics_of_all(const struct api_call *call);
bool metrics_shows(const struct api_call *call, struct str queue); /* by its full name */

/* metrics_measures.c: counters and histograms per queue, type, target and outcome */
void metrics_write_measures(struct api_call *call);
/* metrics_services.c */
void metrics_write_services(struct api_call *call);
/* metrics_inboxes.c */
void metrics_write_inboxes(struct api_call *call);
/* metrics_agents.c */
void metrics_write_agents(struct api_call *call);
/* metrics_brokers.c */
void metrics_write_brokers(struct api_call *call);

#endif
