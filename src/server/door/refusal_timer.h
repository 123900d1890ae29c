/* Delays refusals, so that their timing reveals nothing. A caller who may not see every row gets
 * the same answer for a hidden row as for a missing one. This timer also sends both at the same
 * moment: a whole number of steps after the request arrived. Loop thread. */
#ifndef SERVER_DOOR_REFUSAL_TIMER_H
#define SERVER_DOOR_REFUSAL_TIMER_H

#include "server/server_int.h"

#define REFUSAL_STEP_US 5000   /* longer than reading and checking a row takes */
#define REFUSAL_LONG_US 100000 /* of a workflow: of many rows, which are read for a while */

struct refusal_timer;

struct refusal_timer *refusal_timer_open(struct server *server, struct err *err);
void refusal_timer_free(struct refusal_timer *timer); /* NULL is fine */
void refusal_timer_stop(struct refusal_timer *timer); /* sends all delayed refusals */

/* Notes when the call arrived, if its caller may not see every row. */
void refusal_timer_note(struct api_call *call);
/* True: the timer has taken the call and will send its refusal later. */
bool refusal_timer_takes(struct refusal_timer *timer, struct api_call *call);
/* The same for an answer (call->out) that says of a hidden row that it is missing. */
int refusal_timer_reply(struct refusal_timer *timer, struct api_call *call, int status);

#endif
