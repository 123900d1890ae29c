/* The worker's side of the spawner: finds its program, starts it, hands requests to it and starts
 * it again when it was killed. Any number of threads. */
#ifndef WORKER_PROCESS_SPAWNER_H
#define WORKER_PROCESS_SPAWNER_H

#include "base/err.h"
#include "worker/process/process_shim.h"

struct spawner;

/* Looks for perdura-spawn in the folder of this program and in ../libexec; it is started when it is
 * needed. In a program that owns its process this program takes its place where there is none (its
 * main must call process_spawner_main when its own name is SPAWNER_NAME), and what killed shims and
 * spawners leave becomes ours. */
struct spawner *spawner_open(bool owns_process, struct err *err);
int spawner_ready(struct spawner *spawner, struct err *err); /* starts it now, if it does not run */

/* Hands the descriptors of one shim over; the caller closes its own. */
int spawner_start(struct spawner *spawner, const int fds[SHIM_FD_COUNT], struct err *err);

/* A shim has begun, or its run is over. */
void spawner_note_shim(struct spawner *spawner, pid_t shim, bool lives);

/* After a shim and its spawner were killed both: ends what they left, in a process that is ours. */
void spawner_end_strays(struct spawner *spawner);

/* No run may be under way, but ones that were abandoned. NULL is fine. */
void spawner_close(struct spawner *spawner);

#endif
