/* See the header. Started and ended on the main thread. */
#include "brokers/brokers.h"

#include "brokers/broker_consumer.h"
#include "brokers/broker_link.h"

#include <stdio.h>
#include <stdlib.h>

struct brokers {
    struct broker_views views;
    uint32_t count;
    struct broker_consumer *consumers[];
};

static uint32_t count_views(void *ctx)
{
    return ((const struct brokers *)ctx)->count;
}

static void read_view(void *ctx, uint32_t index, struct broker_view *view)
{
    broker_consumer_view(((const struct brokers *)ctx)->consumers[index], view);
}

static int start_all(struct brokers *brokers, struct engine *engine,
                     const struct settings *settings, const struct log *log, struct err *err)
{
    for (uint32_t i = 0; i < settings->pool.brokers_count; i++) {
        const struct broker_rule *rule = &settings->pool.brokers[i];

        for (uint32_t at = 0; at < rule->inputs_count; at++) {
            struct broker_consumer *consumer =
                broker_consumer_start(engine, settings, rule, &rule->inputs[at], log, err);

            if (!consumer)
                return -(int)err->code;
            brokers->consumers[brokers->count++] = consumer;
        }
    }
    return 0;
}

int brokers_start(struct brokers **brokers, struct engine *engine,
                  const struct settings *settings, const struct log *log, struct err *err)
{
    uint32_t count = 0;

    *brokers = NULL;
    for (uint32_t i = 0; i < settings->pool.brokers_count; i++)
        count += settings->pool.brokers[i].inputs_count;
    if (count == 0)
        return 0;
    *brokers = TRY_MEMORY(calloc(1, sizeof **brokers + count * sizeof (*brokers)->consumers[0]));
    (*brokers)->views = (struct broker_views){*brokers, count_views, read_view};
    return start_all(*brokers, engine, settings, log, err);
}

void brokers_free(struct brokers *brokers)
{
    if (!brokers)
        return;
    for (uint32_t i = 0; i < brokers->count; i++) /* all of them at once, then one by one */
        broker_consumer_stop(brokers->consumers[i]);
    for (uint32_t i = 0; i < brokers->count; i++)
        broker_consumer_free(brokers->consumers[i]);
    free(brokers);
}

const struct broker_views *brokers_views(const struct brokers *brokers)
{
    return brokers ? &brokers->views : NULL;
}

bool brokers_try(const struct broker_rule *rule, char why[BROKER_WHY_BYTES])
{
    struct broker_link link;
    struct err err = {0};
    int rc = broker_link_open(&link, rule, &err);

    for (uint32_t i = 0; rc == 0 && i < rule->inputs_count; i++)
        rc = broker_link_queue(&link, rule, rule->inputs[i].queue, rule->inputs[i].queue_type,
                               &err);
    broker_link_close(&link);
    snprintf(why, BROKER_WHY_BYTES, "%s", err.text);
    return rc == 0;
}
