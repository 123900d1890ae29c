/* The id of a worker or node: host-pid-random, the random part 64 bits (E3, F-B10). The process id
 * is the worker's own, which only the worker knows. */
#ifndef CORE_TASK_WORKER_ID_H
#define CORE_TASK_WORKER_ID_H

#include "base/arena.h"

/* A long hostname is cut between characters; absent = "worker". pid 0 = not known: left out. */
struct str worker_id_new(struct str hostname, int64_t pid, struct arena *arena);

#endif
