/* Opening everything that is encrypted, task by task, through the layer that does it for readers:
 * what it counts as damaged between two tasks is the task's. */
#include "node/verify_sealed.h"

#include "core/bounds.h"
#include "node/encryption_keys.h"
#include "store/sealed/sealed.h"

#include <stdio.h>

#define PAGE 100

struct walk {
    struct store *store;
    struct store_reader *reader;
    struct keyring *keyring;
    struct err *err;
};

static void on_missing(void *ctx, struct str id, const char *why)
{
    (void)ctx;
    (void)id;
    (void)why; /* what it encrypts is locked, which is no damage */
}

static int read_logs(struct walk *walk, const struct uuid *id)
{
    struct log_filter filter = {.limit = BOUND_LIST_LIMIT};
    uint32_t count;

    do {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct log_entry *entries;

        TRY(walk->store->verbs->read_logs(walk->reader, id, &filter, &arena, &entries, &count,
                                          walk->err));
        if (count > 0) {
            filter.after_execution = entries[count - 1].execution_id;
            filter.after_seq = entries[count - 1].seq;
        }
    } while (count == BOUND_LIST_LIMIT);
    return 0;
}

static int read_parts(struct walk *walk, const struct uuid *id)
{
    const struct store_verbs *verbs = walk->store->verbs;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct execution *executions;
    struct checkpoint *checkpoints;
    struct task_event *events;
    struct str result;
    int64_t created_us;
    uint32_t count;

    TRY(verbs->read_result(walk->reader, id, &arena, &result, &created_us, walk->err));
    TRY(verbs->read_executions(walk->reader, id, 0, BOUND_LIST_LIMIT, &arena, &executions, &count,
                               walk->err));
    TRY(verbs->read_events(walk->reader, id, 0, BOUND_LIST_LIMIT, &arena, &events, &count,
                           walk->err));
    TRY(verbs->read_checkpoints(walk->reader, id, 0, BOUND_LIST_LIMIT, &arena, &checkpoints, &count,
                                walk->err));
    return read_logs(walk, id);
}

static void tell_damage(const struct uuid *id, int64_t texts,
                        void (*tell)(void *ctx, const char *line), void *ctx)
{
    char line[128], text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    snprintf(line, sizeof line, "task %s: %lld encrypted texts were changed or moved after they "
             "were written", text, (long long)texts);
    tell(ctx, line);
}

/* What the list of tasks itself opens counts for the page: each task is read once more alone. */
static int walk_page(struct walk *walk, struct task_filter *filter, uint32_t *count,
                     void (*tell)(void *ctx, const char *line), void *ctx)
{
    const struct store_verbs *verbs = walk->store->verbs;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct task *tasks, *task;

    TRY(verbs->read_tasks(walk->reader, filter, &arena, &tasks, count, walk->err));
    for (uint32_t i = 0; i < *count; i++) {
        int64_t before = keyring_counted(walk->keyring, OPENED_DAMAGED), damaged;

        filter->before_key = tasks[i].key;
        if (!tasks[i].spec.seal.encrypt && !tasks[i].spec.seal.fields.data &&
            !tasks[i].row.sealed)
            continue;
        TRY(verbs->read_task(walk->reader, &tasks[i].id, &arena, &task, walk->err));
        if (task)
            TRY(read_parts(walk, &tasks[i].id));
        damaged = keyring_counted(walk->keyring, OPENED_DAMAGED) - before;
        if (damaged)
            tell_damage(&tasks[i].id, damaged, tell, ctx);
    }
    return 0;
}

static int walk_tasks(struct walk *walk, void (*tell)(void *ctx, const char *line), void *ctx)
{
    struct task_filter filter = {.limit = PAGE};
    uint32_t count;

    do {
        TRY(walk_page(walk, &filter, &count, tell, ctx));
    } while (count == PAGE);
    return 0;
}

int verify_sealed(struct store *store, const struct settings *settings,
                  void (*tell)(void *ctx, const char *line), void *ctx, int64_t *texts,
                  struct err *err)
{
    struct walk walk = {.store = store, .err = err};
    int rc;

    *texts = 0;
    TRY(encryption_keys_open(settings, on_missing, NULL, &walk.keyring, err));
    if (!walk.keyring)
        return 0;
    rc = sealed_install(store, walk.keyring, err);
    walk.reader = rc == 0 ? store->verbs->reader_open(store, err) : NULL;
    rc = walk.reader ? walk_tasks(&walk, tell, ctx) : -(int)err->code;
    if (walk.reader)
        store->verbs->reader_close(walk.reader);
    *texts = keyring_counted(walk.keyring, OPENED_WELL);
    sealed_remove(store);
    keyring_free(walk.keyring);
    return rc;
}
