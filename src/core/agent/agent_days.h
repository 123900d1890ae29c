/* What agents have used today, by all processes of a store (C9). Each process tells its own sum of
 * the day, which only grows: a sum that comes twice or late does no harm, and one of two that nodes
 * wrote at the same moment comes again. The store keeps a text per agent: the day, then a line for
 * each process. Pure. */
#ifndef CORE_AGENT_AGENT_DAYS_H
#define CORE_AGENT_AGENT_DAYS_H

#include "base/buf.h"
#include "core/agent/budget.h"

#define AGENT_DAYS_MAX 64        /* agents of a process whose day has a budget */
#define AGENT_PROCESS_CHARS 16   /* hex digits that stand for a process */
#define AGENT_DAYS_NAMESPACE 256 /* agents of all processes in a namespace */
#define AGENT_DAY_PROCESSES 256  /* with a line of their own */
#define AGENT_DAY_BYTES (AGENT_DAY_PROCESSES * 128)

struct agent_day {
    struct str agent;
    int64_t day; /* since 1970, UTC */
    struct agent_usage used;
};

#define AGENT_DAY_US (INT64_C(86400) * 1000000)

/* Clocks differ, but not by days: what is of another day than about now is not kept, so that no
 * process can end the day of the others. */
static inline bool agent_day_is_near(int64_t day, int64_t wall_us)
{
    int64_t today = wall_us / AGENT_DAY_US;

    return day >= today - 1 && day <= today + 1;
}

/* The text with what a process told; *changed: it says more than before. */
void agent_day_put(struct str text, struct str process, const struct agent_day *told,
                   struct buf *out, bool *changed);

/* A member "days", of a heartbeat and of its answer. */
void agent_days_write(const struct agent_day *days, uint32_t count, struct buf *out);

/* What all processes but this one used on a day. */
struct agent_usage agent_day_others(struct str text, struct str process, int64_t day);

#endif
