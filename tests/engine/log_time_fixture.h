/* For tests of logs that move the time (clock_wall_us is wrapped, see cmake/tests.cmake) and keep
 * records in files of their own. Included by one test program each. */
#ifndef TESTS_LOG_TIME_FIXTURE_H
#define TESTS_LOG_TIME_FIXTURE_H

#include "engine_fixture.h"

#define EVERY_MS 100 /* between records */

/* The linker puts it in the place of clock_wall_us: time can be moved. */
int64_t __real_clock_wall_us(void);
int64_t __wrap_clock_wall_us(void);
static _Atomic int64_t wall_ahead_us;

int64_t __wrap_clock_wall_us(void)
{
    return __real_clock_wall_us() + wall_ahead_us;
}

static inline struct str path_of(struct fixture *fx, const char *name)
{
    return arena_format(&fx->arena, "%s/%s", fx->folder, name);
}

/* Records often, signed on both stores, with an anchor file. */
static inline const char *keep_anchor(struct fixture *fx)
{
    fx->wanted.settings.logs.anchor_every_ms = EVERY_MS;
    fx->wanted.settings.logs.key = path_of(fx, "key");
    fx->wanted.settings.logs.anchor = path_of(fx, "anchor");
    reopen(fx);
    return fx->wanted.settings.logs.anchor.data;
}

#endif
