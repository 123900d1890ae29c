/* Requests that wait at the door for the keys of an issuer: few, and never longer than one fetch of
 * them takes. Others are not held up. Loop thread. */
#ifndef SERVER_DOOR_DOOR_WAITS_H
#define SERVER_DOOR_DOOR_WAITS_H

#include "server/server_int.h"

#include <sys/queue.h>

#define DOOR_WAITS_MAX 256

struct door_wait;
TAILQ_HEAD(door_wait_list, door_wait);

struct door_waits {
    struct door_wait_list list;
    uint32_t count;
    bool over; /* a fetch has ended: those in the list are tried now, and do not wait again */
};

void door_waits_init(struct door_waits *waits);
/* Whether one more may wait. */
bool door_waits_room(const struct door_waits *waits);
/* The call waits until door_waits_end. False: no room or no memory. */
bool door_waits_add(struct door_waits *waits, struct api_call *call);
/* Each is entered again (door_enter), or answered with an error where `stopping`. */
void door_waits_end(struct door_waits *waits, bool stopping);

#endif
