/* The writer's verbs that load: what they give is opened, and tasks stay known for what is written
 * about them in the same transaction. Writer's thread. */
#include "store/sealed/sealed_int.h"

/* Each of the array is a task or NULL. */
static int open_tasks(struct store *store, struct task *const *tasks, uint32_t count,
                      struct arena *arena, struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct sealed_ctx *ctx;
    struct opener opener;
    int rc = 0;

    opener_begin(&opener, sealed, rows_of(store), arena, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        if (!tasks[i])
            continue;
        rc = sealed_note(sealed, tasks[i], &ctx, err);
        if (rc == 0 && !tasks[i]->has_spec)
            tasks[i]->spec.seal = ctx->seal;
        if (rc == 0)
            rc = open_task(&opener, tasks[i]);
    }
    opener_end(&opener);
    return rc;
}

static int tasks_load(struct store *store, const struct uuid *ids, uint32_t count, unsigned parts,
                      struct arena *arena, struct task **tasks, struct err *err)
{
    TRY(sealed_of(store)->below->tasks_load(store, ids, count, parts, arena, tasks, err));
    return open_tasks(store, tasks, count, arena, err);
}

static int ready_take(struct store *store, const struct ready_want *want, struct arena *arena,
                      struct task **tasks, uint32_t *count, struct err *err)
{
    TRY(sealed_of(store)->below->ready_take(store, want, arena, tasks, count, err));
    return open_tasks(store, tasks, *count, arena, err);
}

static int held_find(struct store *store, struct str worker_id, int64_t after_key, uint32_t limit,
                     struct arena *arena, struct task **tasks, uint32_t *count, struct err *err)
{
    TRY(sealed_of(store)->below->held_find(store, worker_id, after_key, limit, arena, tasks, count,
                                           err));
    return open_tasks(store, tasks, *count, arena, err);
}

static int status_find(struct store *store, enum status status, int64_t after_key, uint32_t limit,
                       struct arena *arena, struct task **tasks, uint32_t *count,
                       struct err *err)
{
    TRY(sealed_of(store)->below->status_find(store, status, after_key, limit, arena, tasks, count,
                                             err));
    return open_tasks(store, tasks, *count, arena, err);
}

static int held_recall(struct store *store, const struct uuid *ids, const int64_t *lease_tokens,
                       uint32_t count, struct arena *arena, struct task **tasks, struct err *err)
{
    TRY(sealed_of(store)->below->held_recall(store, ids, lease_tokens, count, arena, tasks, err));
    return open_tasks(store, tasks, count, arena, err);
}

static int outputs_find(struct store *store, const struct uuid *task_id, bool children,
                        int64_t after_key, uint32_t limit, struct arena *arena,
                        struct output **outputs, uint32_t *count, struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct opener opener;
    int rc = 0;

    TRY(sealed->below->outputs_find(store, task_id, children, after_key, limit, arena, outputs,
                                    count, err));
    opener_begin(&opener, sealed, rows_of(store), arena, err);
    for (uint32_t i = 0; rc == 0 && i < *count; i++)
        rc = open_result(&opener, uuid7_key(&(*outputs)[i].id), &(*outputs)[i].result);
    opener_end(&opener);
    return rc;
}

static int execution_load(struct store *store, int64_t key, struct arena *arena,
                          struct execution **execution, struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct opener opener;
    char space[SEAL_ROW_BYTES];
    const struct seal_at at = {.table = "executions", .column = "error_data", .json = true,
                               .row = seal_row_number(key, space)};
    enum opened opened;
    int rc;

    TRY(sealed->below->execution_load(store, key, arena, execution, err));
    if (!*execution)
        return 0;
    opener_begin(&opener, sealed, rows_of(store), arena, err);
    rc = open_result(&opener, (*execution)->task_key, &(*execution)->result_data);
    if (rc == 0)
        rc = open_text(&opener, STR_NONE, &at, &(*execution)->error_data, &opened);
    opener_end(&opener);
    return rc;
}

/* One whose key is not here may be good elsewhere: it is neither used nor given up. */
static int opened_checkpoint(struct store *store, const struct uuid *task_id, struct arena *arena,
                             struct checkpoint *checkpoint, struct err *err)
{
    struct opener opener;
    enum opened opened;
    int rc;

    if (!checkpoint)
        return 0;
    opener_begin(&opener, sealed_of(store), rows_of(store), arena, err);
    rc = open_checkpoint(&opener, task_id, checkpoint, &opened);
    opener_end(&opener);
    if (rc == 0 && opened == OPENED_LOCKED)
        return err_set(err, ERR_LOCKED, "the checkpoint of this task is encrypted with a key that "
                                        "is not configured here; add it to encryption.keys");
    return rc;
}

static int checkpoint_newest(struct store *store, const struct uuid *task_id, struct arena *arena,
                             struct checkpoint **checkpoint, struct err *err)
{
    TRY(sealed_of(store)->below->checkpoint_newest(store, task_id, arena, checkpoint, err));
    return opened_checkpoint(store, task_id, arena, *checkpoint, err);
}

static int checkpoint_before(struct store *store, const struct uuid *task_id, int64_t before_seq,
                             struct arena *arena, struct checkpoint **checkpoint, struct err *err)
{
    TRY(sealed_of(store)->below->recovery->checkpoint_before(store, task_id, before_seq, arena,
                                                             checkpoint, err));
    return opened_checkpoint(store, task_id, arena, *checkpoint, err);
}

/* A body that cannot be opened is never sent: the message says so. */
static int outbox_due(struct store *store, int64_t now_us, uint32_t limit, struct arena *arena,
                      struct outbox_message **messages, uint32_t *count, int64_t *next_at_us,
                      struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct seal_at at = {.table = "outbox", .column = "body"};
    struct opener opener;
    int rc = 0;

    TRY(sealed->below->outbox_due(store, now_us, limit, arena, messages, count, next_at_us, err));
    opener_begin(&opener, sealed, rows_of(store), arena, err);
    for (uint32_t i = 0; rc == 0 && i < *count; i++) {
        struct outbox_message *message = &(*messages)[i];
        char space[SEAL_ROW_BYTES];
        enum opened opened;

        at.row = seal_row_id(&message->id, space);
        rc = open_text(&opener, STR_NONE, &at, &message->body, &opened);
        message->locked = opened > OPENED_WELL;
    }
    opener_end(&opener);
    return rc;
}

static int recovery_load(struct store *store, const struct uuid *id, struct arena *arena,
                         struct recovery_entry **entry, struct err *err)
{
    struct opener opener;
    int rc;

    TRY(sealed_of(store)->below->recovery->load(store, id, arena, entry, err));
    if (!*entry)
        return 0;
    opener_begin(&opener, sealed_of(store), rows_of(store), arena, err);
    rc = open_recovery(&opener, *entry);
    opener_end(&opener);
    return rc;
}

static int recovery_due(struct store *store, int64_t now_us, int64_t lease_us, uint32_t limit,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        int64_t *next_us, struct err *err)
{
    struct opener opener;
    int rc = 0;

    TRY(sealed_of(store)->below->recovery->due(store, now_us, lease_us, limit, arena, entries,
                                               count, next_us, err));
    opener_begin(&opener, sealed_of(store), rows_of(store), arena, err);
    for (uint32_t i = 0; rc == 0 && i < *count; i++)
        rc = open_recovery(&opener, &(*entries)[i]);
    opener_end(&opener);
    return rc;
}

void sealed_set_loads(struct sealed *sealed)
{
    struct store_verbs *verbs = &sealed->verbs;

    verbs->tasks_load = tasks_load;
    verbs->ready_take = ready_take;
    verbs->held_find = held_find;
    verbs->status_find = status_find;
    verbs->held_recall = verbs->held_recall ? held_recall : NULL;
    verbs->outputs_find = outputs_find;
    verbs->execution_load = execution_load;
    verbs->checkpoint_newest = checkpoint_newest;
    verbs->outbox_due = outbox_due;
    sealed->recovery.checkpoint_before = checkpoint_before;
    sealed->recovery.load = recovery_load;
    sealed->recovery.due = recovery_due;
}
