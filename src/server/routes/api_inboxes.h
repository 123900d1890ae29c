/* Handlers of the route about inboxes; listed in router.c. Loop thread. */
#ifndef SERVER_ROUTES_API_INBOXES_H
#define SERVER_ROUTES_API_INBOXES_H

struct api_call;

int api_inboxes(struct api_call *call);

#endif
