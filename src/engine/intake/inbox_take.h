/* Rows of inboxes become tasks (inbox_take.c). Belongs to the thread that has the turn
 * (engine/inbox.c). */
#ifndef ENGINE_INTAKE_INBOX_TAKE_H
#define ENGINE_INTAKE_INBOX_TAKE_H

#include "engine/engine.h"

struct batch;

int inbox_apply(struct batch *batch, struct request *base);

#endif
