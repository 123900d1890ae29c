/* From a service and a method to the request that calls it. A method is a name ("Charge", called as
 * POST {url}/Charge), a path ("/charges") or a verb and a path ("PUT /orders/{payload/id}"), whose
 * {…} are JSON pointers into the task. Values are percent-encoded, so that a payload cannot leave
 * the place in the URL that it was given. Also the type that runs of a job with a target have.
 * Pure; any thread. */
#ifndef CORE_SERVICE_SERVICE_URL_H
#define CORE_SERVICE_SERVICE_URL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define SERVICE_URL_BYTES 8192 /* with the values put in */

/* Tasks of this type are calls: "service:NAME/METHOD". */
#define SERVICE_TYPE_PREFIX "service:"

enum service_verb {
    SERVICE_POST,
    SERVICE_PUT,
    SERVICE_PATCH,
    SERVICE_DELETE,
    SERVICE_GET,
    SERVICE_VERB_COUNT
};

const char *service_verb_word(enum service_verb verb);
bool service_verb_has_body(enum service_verb verb);

/* What {…} may name. */
struct service_values {
    struct str id;       /* {task/id} */
    struct str payload;  /* JSON, checked; all three */
    struct str data;
    struct str metadata;
};

/* Whether the method can be called, whatever the payload. An absent one is POST to the URL. */
int service_method_check(struct str method, struct err *err);

/* The request's verb, and its URL appended to out. -ERR_INVALID names what the task lacks. */
int service_url_write(struct str url, struct str method, const struct service_values *values,
                      enum service_verb *verb, struct buf *out, struct err *err);

/* An address that a service may have: http, https, grpc or grpcs, a host, no user, query or
 * fragment, and for gRPC no path. */
bool service_url_valid(struct str url);
bool service_url_is_clear(struct str url);
bool service_url_is_grpc(struct str url);
bool service_url_is_loopback(struct str url);
/* The host, without brackets, and the port. */
void service_url_place(struct str url, struct str *host, int64_t *port);

bool service_name_valid(struct str name);
/* The type of a job's runs, in arena. STR_NONE without memory. */
struct str service_type(struct str service, struct str method, struct arena *arena);
/* The other way around; false = it is no such type. An empty method is absent. */
bool service_type_parse(struct str type, struct str *service, struct str *method);

#endif
