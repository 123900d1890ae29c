/* The process that starts shims: a small program of its own (perdura-spawn), or this program run
 * again under that name. It was started with an empty environment and gets nothing but descriptors
 * from the worker, so that a handler that looks at its parents finds no secret. It outlives the
 * worker only until the last shim is gone. */
#ifndef WORKER_PROCESS_PROCESS_SPAWNER_H
#define WORKER_PROCESS_PROCESS_SPAWNER_H

#define SPAWNER_NAME "perdura-spawn"
#define SPAWNER_FD 3 /* the socket the worker's requests come from */
#define SPAWNER_HELLO 'H' /* sent once, when requests are taken */

_Noreturn void process_spawner_main(void);

#endif
