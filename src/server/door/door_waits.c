/* A list in the order of arrival. A call whose client leaves is answered into the void and goes. */
#include "server/door/door_waits.h"

#include "server/door/door.h"

struct door_wait {
    TAILQ_ENTRY(door_wait) others;
    struct api_call *call;
    struct door_waits *waits; /* NULL = no longer in the list */
};

void door_waits_init(struct door_waits *waits)
{
    *waits = (struct door_waits){.count = 0};
    TAILQ_INIT(&waits->list);
}

bool door_waits_room(const struct door_waits *waits)
{
    return !waits->over && waits->count < DOOR_WAITS_MAX;
}

static struct api_call *take_out(struct door_wait *wait)
{
    TAILQ_REMOVE(&wait->waits->list, wait, others);
    wait->waits->count--;
    wait->waits = NULL;
    return wait->call;
}

static void client_left(void *ctx)
{
    struct door_wait *wait = ctx;

    if (wait->waits)
        call_fail(take_out(wait)); /* with the error it was put into the list with */
}

bool door_waits_add(struct door_waits *waits, struct api_call *call)
{
    struct door_wait *wait = door_waits_room(waits) ? arena_alloc(call->arena, sizeof *wait) : NULL;

    if (!wait)
        return false;
    *wait = (struct door_wait){.call = call, .waits = waits};
    TAILQ_INSERT_TAIL(&waits->list, wait, others);
    waits->count++;
    http_on_gone(call->exchange, client_left, wait);
    return true;
}

void door_waits_end(struct door_waits *waits, bool stopping)
{
    waits->over = true;
    while (!TAILQ_EMPTY(&waits->list)) {
        struct api_call *call = take_out(TAILQ_FIRST(&waits->list));

        if (stopping) {
            err_set(&call->err, ERR_UNAVAILABLE, "the server is stopping");
            call_fail(call);
        } else {
            call->err = (struct err){0};
            door_enter(call);
        }
    }
    waits->over = false;
}
