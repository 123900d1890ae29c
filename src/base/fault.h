/* Named fault points for test builds (-DPERDURA_FAULTS=1); nothing at all otherwise.
 * PERDURA_FAULT="NAME:N[:ACTION]" acts at the N-th time the point NAME is passed: kill (SIGKILL to
 * itself, the default), stop (SIGSTOP), abort. Several are separated by commas. With
 * PERDURA_FAULT_COUNTS=FILE the number of passes of every point is written there at exit.
 *
 * SEEDED_BUG(NAME) is a bug put in on purpose: true in a test build that is started with
 * PERDURA_SEEDED_BUG=NAME, otherwise the constant false. tests/campaign/seeded.py lists all of them
 * and shows that the tests find each. */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>

#ifdef PERDURA_FAULTS
void fault_point(const char *name);
bool fault_is_seeded(const char *name);
#define FAULT_POINT(name) fault_point(name)
#else
#define FAULT_POINT(name) ((void)0)
#endif

/* In a coverage build the bugs would count as code that no test runs. */
#if defined(PERDURA_FAULTS) && !defined(PERDURA_COVERAGE)
#define SEEDED_BUG(name) fault_is_seeded(name)
#else
#define SEEDED_BUG(name) false
#endif

#endif
