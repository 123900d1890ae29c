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
#define AGENT_DAY_PROCESSES 256  /* with a line of their own */
#define AGENT_DAY_BYTES (AGENT_DAY_PROCESSES * 128)

struct agent_day {
    struct str agent;
    int64_t day; /* since 1970, UTC */
    struct agent_usage used;
};

/* The text with what a process told; *changed: it says more than before. */
void agent_day_put(struct str text, struct str process, const struct agent_day *told,
                   struct buf *out, bool *changed);

/* A member "days", of a heartbeat and of its answer. */
void agent_days_write(const struct agent_day *days, uint32_t count, struct buf *out);

/* What all processes but this one used on a day. */
struct agent_usage agent_day_others(struct str text, struct str process, int64_t day);

#endif
