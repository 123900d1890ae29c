/* What is done with the keys that encrypt what is stored: listed, wrapped again by the current
 * key-encryption key, destroyed. Engine's thread. */
#ifndef ENGINE_HISTORY_KEYS_H
#define ENGINE_HISTORY_KEYS_H

struct batch;
struct err;
struct request;

int keys_apply(struct batch *batch, struct request *base);

#endif
