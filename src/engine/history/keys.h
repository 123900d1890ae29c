/* The data keys of encryption: lists them, wraps them again with the current key-encryption key,
 * destroys them. Engine's thread. */
#ifndef ENGINE_HISTORY_KEYS_H
#define ENGINE_HISTORY_KEYS_H

struct batch;
struct err;
struct request;

int keys_apply(struct batch *batch, struct request *base);

#endif
