/* The door every request passes before it is looked at: who may ask (auth.h), what becomes of wrong
 * tokens (auth_guard.h), and who has to wait outside when there is no room. Loop thread. */
#ifndef SERVER_DOOR_DOOR_H
#define SERVER_DOOR_DOOR_H

#include "server/door/auth_guard.h"
#include "server/door/door_waits.h"
#include "server/door/refusal_timer.h"
#include "server/door/identify.h"
#include "server/door/refusals.h"
#include "server/door/token_watch.h"
#include "server/server_int.h"

#include <sys/queue.h>

/* An answer that waits; in its exchange's arena. */
struct door_held {
    TAILQ_ENTRY(door_held) others;
    struct api_call *call;
    int64_t due_us;
};
TAILQ_HEAD(door_held_list, door_held);

struct door {
    struct server *server;
    struct auth_guard guard;
    struct tokens tokens;
    struct token_watch *watch;
    struct door_jwt *jwt;
    struct door_waits waits;
    struct door_held_list held; /* the first one is due first */
    struct loop_timer *timer;
    struct refusals *refusals; /* for the audit trail */
    struct refusal_timer *refusal_timer;
};

struct door *door_open(struct server *server, struct err *err);
/* Fills the table of tokens; before the server listens. */
int door_read_tokens(struct door *door, struct err *err);
/* Whether clients have something to show beside the server's own token. */
bool door_has_tokens(const struct door *door);
void door_stop(struct door *door); /* answers all that wait */
void door_free(struct door *door);

/* What the settings say of other ways in, at the start and when they were read again. -ERR_INVALID,
 * and nothing changed, when a file they name cannot be used. */
int door_configure(struct door *door, const struct settings *settings, struct err *err);

/* Lets a request in and runs its handler, or answers why not, now or later. */
void door_enter(struct api_call *call);
/* Whether a body may be read before its request is looked at. */
bool door_admits_body(struct door *door, struct http_exchange *exchange);

#endif
