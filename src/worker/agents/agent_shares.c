/* The day of an agent over all processes: heartbeats say what this one used and hear what others
 * used. Any thread; takes the pool's lock. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/thread.h"
#include "worker/agents/agent_int.h"

#define LOOK_US (100 * CLOCK_MS_US)
#define HEARD_WAIT_US (10 * CLOCK_SECOND_US) /* then its own sums count alone */

static int64_t today(void)
{
    return clock_wall_us() / AGENT_DAY_US;
}

static uint32_t tell(void *ctx, struct agent_day *out, uint32_t max)
{
    struct agent_pool *pool = ctx;
    uint32_t count = 0;

    LOCKED(&pool->lock);
    for (uint32_t i = 0; pool->set && i < pool->set->lines_count && count < max; i++) {
        const struct agent_rule *rule = pool->set->lines[i].rule;

        if (agent_has_day(rule))
            out[count++] = (struct agent_day){rule->id, today(), agent_own_day(pool, rule->id)};
    }
    return count;
}

static struct agent_share *share_of(struct agent_pool *pool, struct str agent, bool make)
{
    struct agent_share *share = pool->shares;

    while (share && !str_is(agent, share->id))
        share = share->next;
    if (share || !make || agent.len > AGENT_ID_BYTES)
        return share;
    share = calloc(1, sizeof *share);
    if (!share)
        return NULL;
    memcpy(share->id, agent.data, agent.len);
    share->next = pool->shares;
    pool->shares = share;
    return share;
}

static void hear(void *ctx, const struct agent_day *others, uint32_t count)
{
    struct agent_pool *pool = ctx;

    LOCKED(&pool->lock);
    for (uint32_t i = 0; others && i < count; i++) {
        struct agent_share *share = share_of(pool, others[i].agent, true);

        if (!share)
            continue;
        share->others = others[i];
        share->others.agent = str_of(share->id); /* the text of the answer goes */
    }
    pthread_cond_broadcast(&pool->room_come);
}

void agent_shares_init(struct agent_pool *pool)
{
    uint8_t bytes[AGENT_PROCESS_CHARS / 2];

    hash_random(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(pool->process + 2 * i, 3, "%02x", bytes[i]);
    pool->days = (struct source_days){pool, str_of(pool->process), tell, hear};
}

void agent_shares_free(struct agent_pool *pool)
{
    while (pool->shares) {
        struct agent_share *share = pool->shares;

        pool->shares = share->next;
        free(share);
    }
}

const struct source_days *agent_pool_days(struct agent_pool *pool)
{
    return &pool->days;
}

struct agent_usage agent_today(struct agent_run *run)
{
    struct agent_pool *pool = run->line->pool;
    struct str agent = run->line->rule->id;
    int64_t until_us = clock_boot_us() + HEARD_WAIT_US;
    const struct agent_share *share = NULL;
    struct agent_usage sum;

    LOCKED(&pool->lock);
    while (!((share = share_of(pool, agent, false)) && share->others.day == today()) &&
           clock_boot_us() < until_us && !agent_stopped(run)) {
        struct timespec at = thread_deadline(LOOK_US);

        pthread_mutex_unlock(&pool->lock);
        run->base->beat(run->base);
        pthread_mutex_lock(&pool->lock);
        pthread_cond_timedwait(&pool->room_come, &pool->lock, &at);
    }
    sum = agent_own_day(pool, agent);
    if (share && share->others.day == today())
        usage_add(&sum, &share->others.used);
    return sum;
}
