/* The inboxes of a node: a thread for each, which takes rows of its table to the engine and marks
 * them (inboxes.c). */
#ifndef NODE_INBOXES_INBOXES_H
#define NODE_INBOXES_INBOXES_H

#include "base/log.h"
#include "core/inbox/inbox_view.h"
#include "engine/engine.h"

#include <pthread.h>

#define INBOXES_MAX 256

struct inbox_run;

struct inboxes {
    struct engine *engine;
    const struct log *log;
    struct inbox_views views;
    pthread_mutex_t mutex; /* of the list */
    struct inbox_run *list[INBOXES_MAX];
    uint32_t count;
    const struct inbox_rule *rules; /* that they were started with */
};

void inboxes_init(struct inboxes *inboxes);

/* Starts what a configuration names; a later one changes it. The rules live until inboxes_close.
 * Those that did not change keep working. */
int inboxes_configure(struct inboxes *inboxes, const struct settings *settings, struct err *err);
void inboxes_close(struct inboxes *inboxes); /* before the engine is */

/* inbox_run.c: one of them. */
struct inbox_run *inbox_run_start(struct engine *engine, const struct inbox_rule *rule,
                                  const struct log *log, struct err *err);
const struct inbox_rule *inbox_run_rule(const struct inbox_run *run);
void inbox_run_view(struct inbox_run *run, struct inbox_view *view);
void inbox_run_stop_begin(struct inbox_run *run);
void inbox_run_stop(struct inbox_run *run);

#endif
