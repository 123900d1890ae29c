/* Refusals that must not tell by their time. A caller who may not know of every row gets the same
 * words for hidden ones as for missing ones, and here at the same time: a whole step of time behind
 * its request. Loop thread. */
#ifndef SERVER_DOOR_EVEN_H
#define SERVER_DOOR_EVEN_H

#include "server/server_int.h"

#define EVEN_STEP_US 5000    /* more than a row takes to be read and judged */
#define EVEN_LONG_US 100000  /* the same of a workflow: many rows, which it looks at for a while */

struct even;

struct even *even_open(struct server *server, struct err *err);
void even_free(struct even *even); /* NULL is fine */
void even_stop(struct even *even); /* answers all that wait */

/* Where it may matter, when the call came. */
void even_came(struct api_call *call);
/* Whether its refusal was taken, to be answered later. */
bool even_holds(struct even *even, struct api_call *call);

#endif
