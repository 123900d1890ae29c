/* The routes of target services, and of brokers. Loop thread. */
#ifndef SERVER_ROUTES_API_SERVICES_H
#define SERVER_ROUTES_API_SERVICES_H

#include "core/service/service_view.h"

struct api_call;

/* Of the caller's namespace, or of all that it may see; then those of others than the node's own
 * are named "namespace/service". NULL without memory. */
struct service_view *services_shown(struct api_call *call, bool all, uint32_t *count);

int api_services(struct api_call *call);
int api_service_get(struct api_call *call);
/* api_brokers.c */
int api_brokers(struct api_call *call);
/* api_completions.c */
int api_completion(struct api_call *call);
int api_jwks(struct api_call *call);

#endif
