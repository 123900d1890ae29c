/* The routes of target services, and of brokers. Loop thread. */
#ifndef SERVER_ROUTES_API_SERVICES_H
#define SERVER_ROUTES_API_SERVICES_H

struct api_call;

int api_services(struct api_call *call);
int api_service_get(struct api_call *call);
/* api_brokers.c */
int api_brokers(struct api_call *call);
/* api_completions.c */
int api_completion(struct api_call *call);
int api_jwks(struct api_call *call);

#endif
