/* What workers gave back because they cannot run it: such a worker does not get tasks of that type
 * again at once, or one task would circulate without end. This concerns only workers that
 * registered no types, or more types than they have. Known to this process alone; reports and
 * claims come on several threads. */
#include "engine/tasks/declined.h"

#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define ENTRIES_MAX 256
#define PAUSE_FIRST_US (5 * CLOCK_SECOND_US)
#define PAUSE_MAX_US (300 * CLOCK_SECOND_US)
#define PLAIN_MAX 20 /* one task, given back unstarted without a reason, within ... */
#define PLAIN_US CLOCK_SECOND_US /* ... this time: it goes round, whatever its worker calls it */

struct entry {
    struct str worker;
    struct str type;
    struct uuid task_id; /* since then, so many times without a reason */
    int64_t since_us;
    uint32_t plain;
    int64_t until_us;  /* it does not get the type before this; 0 = it may */
    int64_t pause_us;
    char text[];
};

struct declined {
    pthread_mutex_t mutex;
    atomic_uint count; /* 0 most of the time; then no lock is taken */
    struct entry *entries[ENTRIES_MAX];
};

struct declined *declined_new(void)
{
    struct declined *declined = calloc(1, sizeof *declined);

    if (declined)
        pthread_mutex_init(&declined->mutex, NULL);
    return declined;
}

void declined_free(struct declined *declined)
{
    if (!declined)
        return;
    for (uint32_t i = 0; i < declined->count; i++)
        free(declined->entries[i]);
    pthread_mutex_destroy(&declined->mutex);
    free(declined);
}

static struct entry *find(struct declined *declined, struct str worker, struct str type)
{
    for (uint32_t i = 0; i < declined->count; i++) {
        struct entry *entry = declined->entries[i];

        if (str_eq(entry->worker, worker) && str_eq(entry->type, type))
            return entry;
    }
    return NULL;
}

static int64_t last_used_us(const struct entry *entry)
{
    return entry->until_us > entry->since_us ? entry->until_us : entry->since_us;
}

/* In place of the one that has been quiet for longest. */
static void put(struct declined *declined, struct entry *entry)
{
    uint32_t oldest = 0;

    if (declined->count < ENTRIES_MAX) {
        declined->entries[declined->count] = entry;
        atomic_fetch_add(&declined->count, 1);
        return;
    }
    for (uint32_t i = 1; i < ENTRIES_MAX; i++)
        if (last_used_us(declined->entries[i]) < last_used_us(declined->entries[oldest]))
            oldest = i;
    free(declined->entries[oldest]);
    declined->entries[oldest] = entry;
}

static struct entry *find_or_add(struct declined *declined, struct str worker, struct str type)
{
    struct entry *entry = find(declined, worker, type);

    if (entry)
        return entry;
    entry = calloc(1, sizeof *entry + worker.len + type.len);
    if (!entry) /* then it may come round once more */
        return NULL;
    memcpy(entry->text, worker.data, worker.len);
    memcpy(entry->text + worker.len, type.data, type.len);
    entry->worker = str_span(entry->text, worker.len);
    entry->type = str_span(entry->text + worker.len, type.len);
    put(declined, entry);
    return entry;
}

static bool goes_round(struct entry *entry, const struct uuid *task_id, int64_t now_us)
{
    if (now_us - entry->since_us > PLAIN_US) {
        entry->task_id = *task_id;
        entry->since_us = now_us;
        entry->plain = 0;
    }
    entry->plain += uuid_eq(&entry->task_id, task_id);
    return entry->plain >= PLAIN_MAX;
}

void declined_note(struct declined *declined, struct str worker, struct str type,
                   const struct uuid *task_id, bool no_handler, int64_t now_us)
{
    struct entry *entry;

    LOCKED(&declined->mutex);
    entry = find_or_add(declined, worker, type);
    if (entry && (no_handler || goes_round(entry, task_id, now_us))) {
        entry->pause_us = entry->pause_us ? 2 * entry->pause_us : PAUSE_FIRST_US;
        if (entry->pause_us > PAUSE_MAX_US)
            entry->pause_us = PAUSE_MAX_US;
        entry->until_us = now_us + entry->pause_us;
    }
}

bool declined_has(struct declined *declined, struct str worker, struct str type, int64_t now_us)
{
    const struct entry *entry;

    if (atomic_load(&declined->count) == 0)
        return false;
    LOCKED(&declined->mutex);
    entry = find(declined, worker, type);
    return entry && entry->until_us > now_us;
}

uint32_t declined_types(struct declined *declined, struct str worker, int64_t now_us,
                        struct arena *arena, struct str **types)
{
    uint32_t count = 0;

    *types = NULL;
    if (atomic_load(&declined->count) == 0)
        return 0;
    LOCKED(&declined->mutex);
    for (uint32_t i = 0; i < declined->count; i++) {
        const struct entry *entry = declined->entries[i];

        if (entry->until_us <= now_us || !str_eq(entry->worker, worker))
            continue;
        if (!*types)
            *types = arena_alloc_array(arena, declined->count - i, sizeof **types);
        if (*types)
            (*types)[count++] = arena_str(arena, entry->type);
    }
    return count;
}

void declined_forget(struct declined *declined, struct str worker)
{
    uint32_t kept = 0;

    if (atomic_load(&declined->count) == 0)
        return;
    LOCKED(&declined->mutex);
    for (uint32_t i = 0; i < declined->count; i++) {
        if (str_eq(declined->entries[i]->worker, worker))
            free(declined->entries[i]);
        else
            declined->entries[kept++] = declined->entries[i];
    }
    atomic_store(&declined->count, kept);
}
