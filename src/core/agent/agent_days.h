/* What the agents of all processes of a store have used today (C9). Each process sends its own sum
 * of the day. That sum only grows, so a sum that arrives twice or late does no harm; if two nodes
 * write at the same moment, the sum that is lost is sent again. The store keeps a text per agent:
 * the day, then a line for each process. Pure. */
#ifndef CORE_AGENT_AGENT_DAYS_H
#define CORE_AGENT_AGENT_DAYS_H

#include "base/buf.h"
#include "core/agent/budget.h"

#define AGENT_DAYS_MAX 64        /* agents of a process that have a budget per day */
#define AGENT_PROCESS_CHARS 16   /* hex digits that stand for a process */
#define AGENT_DAYS_NAMESPACE 256 /* agents of a namespace, over all processes */
#define AGENT_DAY_PROCESSES 256  /* lines of a text; the oldest beyond become one */
#define AGENT_DAY_BYTES (AGENT_DAY_PROCESSES * 128)

struct agent_day {
    struct str agent;
    int64_t day; /* since 1970, UTC */
    struct agent_usage used;
};

#define AGENT_DAY_US (INT64_C(86400) * 1000000)

/* Clocks differ, but not by days. A sum that is not of today, yesterday or tomorrow is dropped, so
 * no process with a wrong clock can end the day of the others. */
static inline bool agent_day_is_near(int64_t day, int64_t wall_us)
{
    int64_t today = wall_us / AGENT_DAY_US;

    return day >= today - 1 && day <= today + 1;
}

/* Writes the text with the sum that a process sent; nothing if that sum is of an older day.
 * *changed: the process has used more than the text said. */
void agent_day_put(struct str text, struct str process, const struct agent_day *told,
                   struct buf *out, bool *changed);

/* Writes the member "days" of a heartbeat, or of its answer. */
void agent_days_write(const struct agent_day *days, uint32_t count, struct buf *out);

/* What all processes but this one used on that day. */
struct agent_usage agent_day_others(struct str text, struct str process, int64_t day);

#endif
