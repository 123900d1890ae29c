/* The verbs that write: texts are encrypted before the store sees them, and are the caller's own
 * again afterwards. Writer's thread. */
#include "store/sealed/sealed_int.h"

#include "core/task/checkpoint.h"

/* ---- tasks ---- */

/* What is shown in place of a text that could not be opened. */
static bool is_closed(struct str text)
{
    return str_is(text, SEALED_TEXT) || str_is(text, SEALED_DESTROYED_TEXT) ||
           str_is(text, SEALED_DAMAGED_TEXT);
}

/* What is stored of the text already, while it is known, the text is the same, and it is not under
 * an older data key: copies in memory must not bring back what a rotation replaced. */
static int stored_before(struct sealed *sealed, const struct sealed_ctx *ctx,
                         const struct task *task, enum seal_text which, struct str text,
                         struct str *stored, struct err *err)
{
    const struct task_sealed *known = task->row.sealed;
    bool current = true;

    *stored = STR_NONE;
    if (!known || (task->row.sealed_in && task->row.sealed_in != sealed->number) ||
        !known->stored[which].data || !str_eq(known->clear[which], text))
        return 0;
    if (!is_closed(text))
        TRY(sealed_is_current(sealed, ctx, known->stored[which], &current, err));
    if (current)
        *stored = known->stored[which];
    return 0;
}

static int seal_task_one(struct sealed *sealed, const struct sealed_ctx *ctx, struct task *task,
                         enum seal_text which, struct task_sealed *kept, struct err *err)
{
    struct str *text = seal_task_text(task, which);
    struct seal_at at = seal_task_places[which];
    char space[SEAL_ROW_BYTES];
    struct str stored;

    kept->clear[which] = *text;
    if (!text->data)
        return 0;
    TRY(stored_before(sealed, ctx, task, which, *text, &stored, err));
    if (!stored.data) {
        at.row = seal_row_id(&task->id, space);
        stored = *text;
        TRY(which == SEAL_PAYLOAD || which == SEAL_DATA
                ? sealed_body(sealed, ctx, &at, &stored, err)
            : which == SEAL_CHECKPOINT ? sealed_text(sealed, ctx, &at, &stored, err)
                                       : sealed_told(sealed, ctx, &at, &stored, err));
    }
    if (stored.data != text->data)
        kept->stored[which] = stored;
    *text = stored;
    return 0;
}

/* The texts as they were. Where something is encrypted, what is stored of it stays known. */
static void give_back(const struct sealed *sealed, struct task *const *tasks, uint32_t count,
                      const struct task_sealed *kept)
{
    for (uint32_t i = 0; i < count; i++) {
        bool any = false;

        for (int which = 0; which < SEAL_TEXTS_COUNT; which++) {
            *seal_task_text(tasks[i], (enum seal_text)which) = kept[i].clear[which];
            any |= kept[i].stored[which].data != NULL;
        }
        if (any) {
            tasks[i]->row.sealed = &kept[i];
            tasks[i]->row.sealed_in = sealed->number;
        }
    }
}

/* The payload is written once. */
static int write_tasks(struct sealed *sealed, struct task *const *tasks, uint32_t count,
                       bool insert, struct err *err)
{
    struct task_sealed *kept = TRY_MEMORY(arena_alloc_array(&sealed->tx, count, sizeof *kept));
    uint32_t done = 0;
    int rc = 0;

    for (; rc == 0 && done < count; done++) {
        struct task *task = tasks[done];
        struct sealed_ctx *ctx = NULL;

        for (int which = 0; which < SEAL_TEXTS_COUNT; which++)
            kept[done].clear[which] = *seal_task_text(task, (enum seal_text)which);
        rc = sealed_note(sealed, task, &ctx, err);
        for (int which = 0; rc == 0 && which < SEAL_TEXTS_COUNT; which++)
            if (insert || which != SEAL_PAYLOAD)
                rc = seal_task_one(sealed, ctx, task, (enum seal_text)which, &kept[done], err);
    }
    if (rc == 0)
        rc = insert ? sealed->below->tasks_insert(sealed->store, tasks, count, err)
                    : sealed->below->tasks_save(sealed->store, tasks, count, err);
    give_back(sealed, tasks, done, kept);
    return rc;
}

static int tasks_insert(struct store *store, struct task *const *tasks, uint32_t count,
                        struct err *err)
{
    return write_tasks(sealed_of(store), tasks, count, true, err);
}

static int tasks_save(struct store *store, struct task *const *tasks, uint32_t count,
                      struct err *err)
{
    return write_tasks(sealed_of(store), tasks, count, false, err);
}

/* ---- history ---- */

static int events_insert(struct store *store, const struct task_event *events, uint32_t count,
                         struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct task_event *own = TRY_MEMORY(arena_alloc_array(&sealed->tx, count, sizeof *own));
    struct sealed_ctx *ctx;

    for (uint32_t i = 0; i < count; i++) {
        char space[SEAL_ROW_BYTES];
        struct seal_at at = {.table = "task_events", .column = "detail", .json = true};

        own[i] = events[i];
        if (!own[i].detail.data)
            continue;
        at.row = seal_row_event(own[i].task_key, own[i].seq, space);
        TRY(sealed_ctx_of(sealed, own[i].task_key, &ctx, err));
        TRY(sealed_told(sealed, ctx, &at, &own[i].detail, err));
    }
    return sealed->below->events_insert(store, own, count, err);
}

/* Wherever it is stored, as that of its task: readers show one in the place of the other. */
static int seal_result(struct sealed *sealed, const struct sealed_ctx *ctx, struct str *result,
                       struct err *err)
{
    char space[SEAL_ROW_BYTES];
    struct seal_at at = {.table = "task_results", .column = "payload", .json = true,
                         .row = seal_row_number(ctx->task_key, space)};

    return sealed_body(sealed, ctx, &at, result, err);
}

static int own_executions(struct sealed *sealed, const struct execution *executions,
                          uint32_t count, struct execution **out, struct err *err)
{
    struct execution *own = TRY_MEMORY(arena_alloc_array(&sealed->tx, count, sizeof *own));
    struct sealed_ctx *ctx;

    for (uint32_t i = 0; i < count; i++) {
        char space[SEAL_ROW_BYTES];
        struct seal_at at = {.table = "executions", .column = "error_data", .json = true};

        own[i] = executions[i];
        if (!own[i].result_data.data && !own[i].error_data.data)
            continue;
        TRY(sealed_ctx_of(sealed, own[i].task_key, &ctx, err));
        TRY(seal_result(sealed, ctx, &own[i].result_data, err));
        at.row = seal_row_number(own[i].key, space);
        TRY(sealed_told(sealed, ctx, &at, &own[i].error_data, err));
    }
    *out = own;
    return 0;
}

static int executions_insert(struct store *store, const struct execution *executions,
                             uint32_t count, struct err *err)
{
    struct execution *own;

    TRY(own_executions(sealed_of(store), executions, count, &own, err));
    return sealed_of(store)->below->executions_insert(store, own, count, err);
}

static int executions_save(struct store *store, const struct execution *executions,
                           uint32_t count, struct err *err)
{
    struct execution *own;

    TRY(own_executions(sealed_of(store), executions, count, &own, err));
    return sealed_of(store)->below->executions_save(store, own, count, err);
}

static int result_put(struct store *store, const struct uuid *task_id, struct str payload,
                      int64_t now_us, struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct sealed_ctx *ctx;

    TRY(sealed_ctx_of(sealed, uuid7_key(task_id), &ctx, err));
    TRY(seal_result(sealed, ctx, &payload, err));
    return sealed->below->result_put(store, task_id, payload, now_us, err);
}

/* The store numbers and hashes it; what the caller gets back has the hash of its own texts. */
static int checkpoint_insert(struct store *store, const struct uuid *task_id,
                             struct checkpoint *checkpoint, struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct checkpoint own = *checkpoint;
    struct sealed_ctx *ctx;
    char space[SEAL_ROW_BYTES];
    struct seal_at at = {.table = "task_checkpoints", .json = true,
                         .row = seal_row_id(&own.id, space)};

    TRY(sealed_ctx_of(sealed, uuid7_key(task_id), &ctx, err));
    if (!own.data.data)
        own.data = checkpoint->data = STR("{}");
    at.column = "recoverable_data";
    TRY(sealed_text(sealed, ctx, &at, &own.data, err));
    at.column = "database_state";
    TRY(sealed_text(sealed, ctx, &at, &own.database_state, err));
    at.column = "file_state";
    TRY(sealed_text(sealed, ctx, &at, &own.file_state, err));
    TRY(sealed->below->checkpoint_insert(store, task_id, &own, err));
    checkpoint->task_key = own.task_key;
    checkpoint->seq = own.seq;
    checkpoint->valid = own.valid;
    return checkpoint_hash(task_id, checkpoint, checkpoint->hash) < 0 ? err_no_memory(err) : 0;
}

/* Before the store makes their hashes: a chain is of what is stored. */
static int logs_insert(struct store *store, struct log_entry *entries, uint32_t count,
                       struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct log_entry *own = TRY_MEMORY(arena_copy(&sealed->tx, entries, count * sizeof *own));
    struct sealed_ctx *ctx;

    for (uint32_t i = 0; i < count; i++) {
        char space[SEAL_ROW_BYTES];
        struct seal_at at = {.table = "execution_logs", .row = seal_row_id(&own[i].id, space)};

        TRY(sealed_ctx_of(sealed, uuid7_key(&own[i].task_id), &ctx, err));
        at.column = "message";
        TRY(sealed_text(sealed, ctx, &at, &own[i].message, err));
        at.column = "context";
        at.json = true;
        TRY(sealed_text(sealed, ctx, &at, &own[i].context, err));
    }
    TRY(sealed->below->logs_insert(store, own, count, err));
    for (uint32_t i = 0; i < count; i++)
        entries[i].seq = own[i].seq;
    return 0;
}

/* ---- outbox, recovery ---- */

/* A task that ends without its key has its callback all the same, which says which one it was. */
static struct str without_content(struct sealed *sealed, const struct uuid *task_id)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(task_id, id);
    return arena_format(&sealed->tx, "{\"id\":\"%s\",\"encrypted\":true}", id);
}

static int outbox_insert(struct store *store, const struct outbox_message *messages,
                         uint32_t count, struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct outbox_message *own = TRY_MEMORY(arena_copy(&sealed->tx, messages,
                                                       count * sizeof *own));
    struct sealed_ctx *ctx;

    for (uint32_t i = 0; i < count; i++) {
        char space[SEAL_ROW_BYTES];
        struct seal_at at = {.table = "outbox", .column = "body",
                             .row = seal_row_id(&own[i].id, space)};

        TRY(sealed_ctx_of(sealed, uuid7_key(&own[i].task_id), &ctx, err));
        if (ctx->sealed && !keyring_ready(sealed->keyring))
            own[i].body = without_content(sealed, &own[i].task_id);
        else
            TRY(sealed_text(sealed, ctx, &at, &own[i].body, err));
        TRY_MEMORY(own[i].body.data);
    }
    return sealed->below->outbox_insert(store, own, count, err);
}

static int seal_entry(struct sealed *sealed, struct recovery_entry *entry, struct err *err)
{
    struct sealed_ctx *ctx;
    char space[SEAL_ROW_BYTES];
    struct seal_at at = {.table = "recovery_queue", .row = seal_row_id(&entry->id, space)};

    TRY(sealed_ctx_of(sealed, uuid7_key(&entry->task_id), &ctx, err));
    at.column = "error_message";
    TRY(sealed_told(sealed, ctx, &at, &entry->error_message, err));
    at.column = "recovery_result";
    at.json = true;
    return sealed_told(sealed, ctx, &at, &entry->result, err);
}

static int recovery_put(struct store *store, const struct recovery_entry *entries, uint32_t count,
                        struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct recovery_entry *own = TRY_MEMORY(arena_copy(&sealed->tx, entries,
                                                       count * sizeof *own));

    for (uint32_t i = 0; i < count; i++)
        TRY(seal_entry(sealed, &own[i], err));
    return sealed->below->recovery->put(store, own, count, err);
}

static int recovery_save(struct store *store, const struct recovery_entry *entry, struct err *err)
{
    struct recovery_entry own = *entry;

    TRY(seal_entry(sealed_of(store), &own, err));
    return sealed_of(store)->below->recovery->save(store, &own, err);
}

void sealed_set_writes(struct sealed *sealed)
{
    struct store_verbs *verbs = &sealed->verbs;

    verbs->tasks_insert = tasks_insert;
    verbs->tasks_save = tasks_save;
    verbs->events_insert = events_insert;
    verbs->executions_insert = executions_insert;
    verbs->executions_save = executions_save;
    verbs->result_put = result_put;
    verbs->checkpoint_insert = checkpoint_insert;
    verbs->logs_insert = logs_insert;
    verbs->outbox_insert = outbox_insert;
    sealed->recovery.put = recovery_put;
    sealed->recovery.save = recovery_save;
}
