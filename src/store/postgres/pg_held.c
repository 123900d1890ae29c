/* What the node's own workers hold, kept in memory from the commit of the claim until the commit of
 * the outcome, for all writers of the node, so that a report is decided without a query. Every
 * write names the row version it was made from. If another node changed the row meanwhile, the
 * transaction fails, the copy is dropped, and the retry reads the table. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_tasks.h"

#include "store/held.h"

#include <pthread.h>
#include <stdlib.h>

struct pg_held {
    pthread_mutex_t mutex;
    struct held tasks;
};

/* A task this transaction wrote, in its state after the commit. */
struct noted {
    const struct task *task;
    struct noted *next;
};

struct pg_held *pg_held_new(void)
{
    struct pg_held *held = calloc(1, sizeof *held);

    if (held)
        pthread_mutex_init(&held->mutex, NULL);
    return held;
}

void pg_held_free(struct pg_held *held)
{
    if (!held)
        return;
    held_forget(&held->tasks);
    pthread_mutex_destroy(&held->mutex);
    free(held);
}

static struct pg_held *held_of(const struct pg_store *store)
{
    return store->first ? store->first->held : store->held;
}

void pg_held_note(struct pg_store *store, const struct task *task)
{
    struct noted *noted = arena_alloc(&store->arena, sizeof *noted);

    if (!noted) { /* an unnoted write: no copy can be trusted */
        pg_held_forget(store);
        return;
    }
    *noted = (struct noted){task, store->noted};
    store->noted = noted;
}

/* Notes are newest first; copies are put in the order of the writes, so the last state of a task
 * counts. */
void pg_held_commit(struct pg_store *store)
{
    struct pg_held *held = held_of(store);
    struct noted *in_order = NULL;

    while (store->noted) {
        struct noted *next = store->noted->next;

        store->noted->next = in_order;
        in_order = store->noted;
        store->noted = next;
    }
    pthread_mutex_lock(&held->mutex);
    if (held->tasks.used_bytes > HELD_BYTES_MAX * 9 / 10) /* includes tasks that ended elsewhere */
        held_forget(&held->tasks);
    for (; in_order; in_order = in_order->next) {
        if (in_order->task->lease.held && in_order->task->has_spec)
            held_put(&held->tasks, in_order->task);
        else
            held_remove(&held->tasks, in_order->task->key);
    }
    pthread_mutex_unlock(&held->mutex);
}

void pg_held_forget(struct pg_store *store)
{
    struct pg_held *held = held_of(store);

    store->noted = NULL;
    pthread_mutex_lock(&held->mutex);
    held_forget(&held->tasks);
    pthread_mutex_unlock(&held->mutex);
}

int pg_held_recall(struct store *base, const struct uuid *ids, const int64_t *lease_tokens,
                   uint32_t count, struct arena *arena, struct task **tasks, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_held *held = held_of(store);

    pthread_mutex_lock(&held->mutex);
    for (uint32_t i = 0; i < count; i++)
        tasks[i] = held_get(&held->tasks, uuid7_key(&ids[i]), arena);
    pthread_mutex_unlock(&held->mutex);
    for (uint32_t i = 0; i < count; i++) {
        if (!tasks[i])
            continue;
        if (!uuid_eq(&tasks[i]->id, &ids[i]) || tasks[i]->lease.token != lease_tokens[i] ||
            !status_held(tasks[i]->status))
            tasks[i] = NULL; /* another node may have claimed it again */
        else if (pg_task_remember(store, tasks[i], arena, err) < 0)
            return -(int)err->code;
    }
    return 0;
}
