/* Refusals for the audit trail (D18): each is counted by who asked for which route, and what was
 * counted becomes entries of the trail once a minute and when the server stops; so do encrypted
 * texts that did not open. Bounded: beyond REFUSALS_MAX different ones in a minute the rest is one
 * entry. Loop thread. */
#ifndef SERVER_DOOR_REFUSALS_H
#define SERVER_DOOR_REFUSALS_H

#include "server/call.h"

#define REFUSALS_MAX 256

struct refusals;

struct refusals *refusals_open(struct server *server, struct err *err);
/* Of a call whose answer is 401 or 403. */
void refusals_note(struct refusals *refusals, const struct api_call *call);
void refusals_stop(struct refusals *refusals); /* hands over what was counted */
void refusals_free(struct refusals *refusals);

#endif
