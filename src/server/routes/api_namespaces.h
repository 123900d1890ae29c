/* /v1/namespaces: the handlers. Each is a step (server/call.h). Loop thread. */
#ifndef SERVER_ROUTES_API_NAMESPACES_H
#define SERVER_ROUTES_API_NAMESPACES_H

#include "server/server_int.h"

int api_namespaces_list(struct api_call *call);
int api_namespace_get(struct api_call *call);
int api_namespace_create(struct api_call *call);
int api_namespace_update(struct api_call *call);
int api_namespace_delete(struct api_call *call);

#endif
