/* The id of a worker or node: host-pid-random, the random part 64 bits (E3, F-B10). */
#ifndef CORE_WORKER_ID_H
#define CORE_WORKER_ID_H

#include "base/arena.h"

/* Of this process. A long hostname is cut between characters; absent = "worker". */
struct str worker_id_new(struct str hostname, struct arena *arena);

#endif
