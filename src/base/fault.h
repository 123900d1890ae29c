/* Named fault points for test builds (-DPERDURA_FAULTS=1); nothing at all otherwise.
 * PERDURA_FAULT="NAME:N[:ACTION]" acts at the N-th time the point NAME is passed: kill (SIGKILL to
 * itself, the default), stop (SIGSTOP), abort. Several are separated by commas. With
 * PERDURA_FAULT_COUNTS=FILE the number of passes of every point is written there at exit. */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#ifdef PERDURA_FAULTS
void fault_point(const char *name);
#define FAULT_POINT(name) fault_point(name)
#else
#define FAULT_POINT(name) ((void)0)
#endif

#endif
