/* The list of inboxes and what a new configuration changes in it. Its own mutex; the threads know
 * nothing of each other. */
#include "node/inboxes/inboxes.h"

#include "base/thread.h"

static uint32_t count_views(void *ctx)
{
    struct inboxes *inboxes = ctx;
    LOCKED(&inboxes->mutex);

    return inboxes->count;
}

static bool read_view(void *ctx, uint32_t index, struct inbox_view *view)
{
    struct inboxes *inboxes = ctx;
    LOCKED(&inboxes->mutex);

    if (index >= inboxes->count)
        return false;
    inbox_run_view(inboxes->list[index], view);
    return true;
}

void inboxes_init(struct inboxes *inboxes)
{
    *inboxes = (struct inboxes){.views = {inboxes, count_views, read_view}};
    pthread_mutex_init(&inboxes->mutex, NULL);
}

static bool same_names(const struct str *a, uint32_t a_count, const struct str *b,
                       uint32_t b_count)
{
    for (uint32_t i = 0; a_count == b_count && i < a_count; i++)
        if (!str_eq(a[i], b[i]))
            return false;
    return a_count == b_count;
}

static bool same_rule(const struct inbox_rule *a, const struct inbox_rule *b)
{
    return str_eq(a->name, b->name) && str_eq(a->store, b->store) && str_eq(a->table, b->table) &&
           str_eq(a->namespace_name, b->namespace_name) && str_eq(a->after, b->after) &&
           same_names(a->queues, a->queues_count, b->queues, b->queues_count) &&
           same_names(a->types, a->types_count, b->types, b->types_count);
}

static struct inbox_run *take_same(struct inbox_run **list, uint32_t count,
                                   const struct inbox_rule *rule)
{
    for (uint32_t i = 0; i < count; i++) {
        struct inbox_run *run = list[i];

        if (!run || !same_rule(inbox_run_rule(run), rule))
            continue;
        list[i] = NULL;
        return run;
    }
    return NULL;
}

static void stop_all(struct inbox_run **list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i])
            inbox_run_stop_begin(list[i]);
    for (uint32_t i = 0; i < count; i++)
        if (list[i])
            inbox_run_stop(list[i]);
}

/* Those that are gone stop first: another one may have their name, and so their note. */
int inboxes_configure(struct inboxes *inboxes, const struct settings *settings, struct err *err)
{
    struct inbox_run *before[INBOXES_MAX], *now[INBOXES_MAX] = {NULL};
    uint32_t before_count = inboxes->count, kept = 0, started = 0;
    int rc = 0;

    if (inboxes->rules == settings->enqueue.inboxes)
        return 0;
    memcpy(before, inboxes->list, sizeof before);
    for (uint32_t i = 0; i < settings->enqueue.inboxes_count; i++)
        now[i] = take_same(before, before_count, &settings->enqueue.inboxes[i]);
    pthread_mutex_lock(&inboxes->mutex);
    for (uint32_t i = 0; i < settings->enqueue.inboxes_count; i++)
        if (now[i])
            inboxes->list[kept++] = now[i];
    inboxes->count = kept;
    pthread_mutex_unlock(&inboxes->mutex);
    stop_all(before, before_count);
    for (uint32_t i = 0; rc == 0 && i < settings->enqueue.inboxes_count; i++) {
        if (!now[i])
            now[i] = inbox_run_start(inboxes->engine, &settings->enqueue.inboxes[i], inboxes->log,
                                     err);
        rc = now[i] ? 0 : -(int)err->code;
    }
    pthread_mutex_lock(&inboxes->mutex);
    for (uint32_t i = 0; i < settings->enqueue.inboxes_count; i++)
        if (now[i])
            inboxes->list[started++] = now[i];
    inboxes->count = started;
    pthread_mutex_unlock(&inboxes->mutex);
    inboxes->rules = rc == 0 ? settings->enqueue.inboxes : NULL;
    return rc;
}

void inboxes_close(struct inboxes *inboxes)
{
    uint32_t count = inboxes->count;

    pthread_mutex_lock(&inboxes->mutex);
    inboxes->count = 0;
    pthread_mutex_unlock(&inboxes->mutex);
    stop_all(inboxes->list, count);
    pthread_mutex_destroy(&inboxes->mutex);
}
