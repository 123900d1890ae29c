/* The one table of routes. A pattern is segments with at most two {names}, and a last segment that
 * may end in :verb. Matching works on the raw path, so that an escaped slash or colon is part of a
 * name. Pure, any thread. */
#ifndef SERVER_ROUTER_H
#define SERVER_ROUTER_H

#include "base/arena.h"
#include "base/err.h"
#include "core/access/scope.h"
#include "net/http.h"

#define ROUTES_MAX 128
#define ROUTE_PARAMETERS_MAX 20
#define ROUTE_NAMES_MAX 2

struct api_call;

/* What a route asks of the one who calls it. */
struct right {
    enum right_kind {
        RIGHT_UNSAID, /* in no row */
        RIGHT_NONE,   /* open to everyone, with a credential or not */
        RIGHT_ANYONE, /* any principal */
        RIGHT_SCOPE,  /* a principal with the scope */
        RIGHT_EVERYWHERE, /* the same, of every namespace: it concerns the whole store */
        RIGHT_OWN     /* the same, or tasks:enqueue for what the principal itself has made */
    } kind;
    enum scope scope;
};

struct route {
    enum http_method method;
    const char *pattern;
    int (*handle)(struct api_call *call); /* a call_step */
    struct right needs;
    const char *summary;
    const char *parameters[ROUTE_PARAMETERS_MAX]; /* query parameters it knows */
    int what; /* for a handler of several routes: the kind of thing, or what is done to it */
};

extern const struct route routes[]; /* ends with a NULL pattern */
uint32_t routes_count(void);

#define ROUTER_ALLOW_BYTES 64

/* 0 and the route with its decoded {names}; -ERR_NOT_FOUND; -ERR_METHOD with the methods there are
 * in `allow` ("GET, HEAD, DELETE"); -ERR_MALFORMED for a bad escape. HEAD finds the GET route. */
int router_find(enum http_method method, struct str path, struct arena *arena,
                const struct route **route, struct str names[ROUTE_NAMES_MAX],
                char allow[ROUTER_ALLOW_BYTES], struct err *err);

/* The query by the route's own parameters, in their order; absent ones are STR_NONE. An unknown,
 * repeated or (but for "cursor") empty parameter is ERR_INVALID with its name as the field. */
int router_query(const struct route *route, struct str query, struct arena *arena,
                 struct str values[ROUTE_PARAMETERS_MAX], struct err *err);

const char *router_method_word(enum http_method method);

#endif
