/* The node's second connection, with its own thread, so that the writer cannot delay it. It renews
 * the leadership, tells other nodes that there is work, receives such hints from them, and follows
 * the database's clock. All it knows is a hint or guarded elsewhere: transactions check the
 * leadership again, and a node that receives no hints polls. */
#ifndef STORE_POSTGRES_PG_KEEPER_H
#define STORE_POSTGRES_PG_KEEPER_H

#include "store/postgres/pg_int.h"

struct pg_keeper;

int keeper_start(struct pg_keeper **keeper, const struct pg_store *store,
                 const struct store_watch *watch, struct err *err);
void keeper_stop(struct pg_keeper *keeper); /* gives the leadership back */

/* Any thread. The epoch under which this node leads; 0 = it does not, or cannot know. */
int64_t keeper_epoch(const struct pg_keeper *keeper);
const char *keeper_node(const struct pg_keeper *keeper);
int64_t keeper_now_us(const struct pg_keeper *keeper);
/* Tells the other nodes soon, in one message with other hints. */
void keeper_tell(struct pg_keeper *keeper, struct str queue);
void keeper_tell_lanes(struct pg_keeper *keeper); /* this node made lanes */
bool keeper_lanes_made(struct pg_keeper *keeper); /* did another node, since the last call? */

#endif
