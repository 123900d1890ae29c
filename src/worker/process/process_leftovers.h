/* The last resort when a command's shim was killed itself: what is left of the command is found by
 * the marks in its environment. A slot's thread. */
#ifndef WORKER_PROCESS_PROCESS_LEFTOVERS_H
#define WORKER_PROCESS_PROCESS_LEFTOVERS_H

#include <stdint.h>

/* Kills every process whose environment has the PERDURA_TASK_ID and PERDURA_LEASE_TOKEN of the
 * given one, until none is found; returns how many were killed. Without both marks: none. */
uint32_t process_kill_leftovers(char *const *environment);

#endif
