/* Finds tasks by what they wait for, on the writing connection. */
#include "core/bounds.h"
#include "core/settings.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_tasks.h"

#include <stdlib.h>

/* The lines a claim looks at, ordered as a heap by their heads. */
struct merge {
    struct line **lines;
    struct line_entry *heads;
    uint32_t count;
};

static bool head_before(const struct merge *merge, uint32_t a, uint32_t b)
{
    return merge->heads[a].order_key != merge->heads[b].order_key
               ? merge->heads[a].order_key < merge->heads[b].order_key
               : merge->heads[a].task_key < merge->heads[b].task_key;
}

static void sift_down(struct merge *merge, uint32_t at)
{
    for (;;) {
        uint32_t least = at;
        uint32_t left = 2 * at + 1;
        struct line *line = merge->lines[at];
        struct line_entry head = merge->heads[at];

        if (left < merge->count && head_before(merge, left, least))
            least = left;
        if (left + 1 < merge->count && head_before(merge, left + 1, least))
            least = left + 1;
        if (least == at)
            return;
        merge->lines[at] = merge->lines[least];
        merge->heads[at] = merge->heads[least];
        merge->lines[least] = line;
        merge->heads[least] = head;
        at = least;
    }
}

static void merge_drop_top(struct merge *merge)
{
    merge->count--;
    merge->lines[0] = merge->lines[merge->count];
    merge->heads[0] = merge->heads[merge->count];
    sift_down(merge, 0);
}

static int merge_add_queue(struct sqlite_store *store, const struct ready_want *want,
                           struct line_queue *queue, struct arena *arena, struct merge *merge,
                           uint32_t *cap, struct err *err)
{
    for (struct line *line = queue->lines; line; line = line->next_in_queue) {
        struct line_entry *head;

        if (line_ready(line) <= 0 ||
            !settings_types_cover(want->types, want->types_count, line->type) ||
            settings_types_name(want->types_not, want->types_not_count, line->type) ||
            !ready_wants_category(want, &line->category_id))
            continue;
        TRY(lines_head(store, line, &head, err));
        if (!head)
            continue;
        if (merge->count == *cap) {
            uint32_t grown = *cap ? *cap * 2 : 32;
            struct line **lines = arena_alloc_array(arena, grown, sizeof *lines);
            struct line_entry *heads = arena_alloc_array(arena, grown, sizeof *heads);

            if (!lines || !heads)
                return err_set(err, ERR_MEMORY, "out of memory for a claim");
            if (merge->count) {
                memcpy(lines, merge->lines, merge->count * sizeof *lines);
                memcpy(heads, merge->heads, merge->count * sizeof *heads);
            }
            merge->lines = lines;
            merge->heads = heads;
            *cap = grown;
        }
        merge->lines[merge->count] = line;
        merge->heads[merge->count++] = *head;
    }
    return 0;
}

static int merge_begin(struct sqlite_store *store, const struct ready_want *want,
                       struct arena *arena, struct merge *merge, struct err *err)
{
    uint32_t cap = 0;

    *merge = (struct merge){NULL, NULL, 0};
    store->lines.claims++;
    for (uint32_t i = 0; i < want->queues_count; i++) {
        struct line_queue *queue = lines_queue(&store->lines, want->queues[i]);

        if (!queue || queue->claim == store->lines.claims) /* named twice: a task is claimed once */
            continue;
        queue->claim = store->lines.claims;
        TRY(merge_add_queue(store, want, queue, arena, merge, &cap, err));
    }
    for (uint32_t i = merge->count / 2; i-- > 0;)
        sift_down(merge, i);
    return 0;
}

/* After the head of the top line was popped: continues with its next head, or drops the line. */
static int merge_advance(struct sqlite_store *store, struct merge *merge, struct err *err)
{
    struct line_entry *head;

    TRY(lines_head(store, merge->lines[0], &head, err));
    if (!head) {
        merge_drop_top(merge);
        return 0;
    }
    merge->heads[0] = *head;
    sift_down(merge, 0);
    return 0;
}

static void merge_drop_queue(struct merge *merge, struct str queue)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < merge->count; i++) {
        if (str_eq(merge->lines[i]->queue, queue))
            continue;
        merge->lines[kept] = merge->lines[i];
        merge->heads[kept++] = merge->heads[i];
    }
    merge->count = kept;
    for (uint32_t i = kept / 2; i-- > 0;)
        sift_down(merge, i);
}

/* Parks the task of an entry, because its key's limit is reached. */
static int park(struct sqlite_store *store, struct task *task, struct err *err)
{
    task->parked = true; /* invisible to users: the version stays */
    return sqlite_tasks_save(&store->base, &task, 1, err);
}

int sqlite_ready_take(struct store *base, const struct ready_want *want, struct arena *arena,
                      struct task **tasks, uint32_t *count, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    size_t used_bytes = arena->used_bytes;
    uint32_t parked = 0;
    struct merge merge;
    int rc = merge_begin(store, want, arena, &merge, err);

    *count = 0;
    while (rc == 0 && *count < want->max && merge.count > 0) {
        struct line *line = merge.lines[0];
        struct task *task;

        if (parked >= BOUND_CHORE_ROWS || arena->used_bytes - used_bytes >= BOUND_CLAIM_BYTES) {
            if (want->more && parked > 0)
                *want->more = true;
            break;
        }
        rc = sqlite_task_by_key(store, merge.heads[0].task_key, LOAD_ALL, arena, &task, err);
        if (rc < 0)
            break;
        if (!task || task->status != STATUS_PENDING)
            return err_set(err, ERR_STORAGE, "the ready line of queue '" STR_FMT
                           "' names a task that is not pending; run verify", STR_ARG(line->queue));
        switch (want->admit(want->ctx, line->queue, line->type, task->spec.limit_key,
                            &task->spec.category_id)) {
        case ADMIT_TAKE:
            tasks[(*count)++] = task;
            lines_pop(line);
            rc = merge_advance(store, &merge, err);
            break;
        case ADMIT_PARK:
            rc = park(store, task, err);
            parked++;
            if (rc == 0)
                rc = merge_advance(store, &merge, err);
            break;
        case ADMIT_SKIP_TYPE:
            merge_drop_top(&merge);
            break;
        case ADMIT_STOP_QUEUE:
            merge_drop_queue(&merge, line->queue);
            break;
        }
    }
    return rc;
}

int64_t sqlite_ready_count(struct store *base, struct str queue_name)
{
    struct line_queue *queue = lines_queue(&sqlite_of(base)->lines, queue_name);
    int64_t ready = 0;

    for (struct line *line = queue ? queue->lines : NULL; line; line = line->next_in_queue)
        ready += line_ready(line);
    return ready;
}

struct pending {
    int64_t task_key;
    int64_t priority;
    int64_t order_key;
};

/* All pending tasks of a lane, read before the first is changed: 24 bytes each, freed after the
 * call. */
static int read_pending(struct sqlite_store *store, struct line *line, struct pending **list,
                        int64_t *count, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_pending_orders, err);
    int64_t cap = line->counts[STATUS_PENDING];
    int rc;

    *count = 0;
    *list = malloc((size_t)(cap + 1) * sizeof **list);
    if (!stmt || !*list)
        return stmt ? err_set(err, ERR_MEMORY, "out of memory for a new order") : -(int)err->code;
    bind_int(stmt, 1, line->lane);
    while ((rc = sql_step(&store->sql, stmt, err)) > 0 && *count < cap)
        (*list)[(*count)++] = (struct pending){sqlite3_column_int64(stmt, 0),
                                               sqlite3_column_int64(stmt, 1),
                                               sqlite3_column_int64(stmt, 2)};
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

int sqlite_ready_reorder(struct store *base, struct str queue_name,
                         int64_t (*order)(void *ctx, int64_t priority, int64_t old_key), void *ctx,
                         struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    struct line_queue *queue = lines_queue(&store->lines, queue_name);
    int rc = 0;

    for (struct line *line = queue ? queue->lines : NULL; line && rc == 0;
         line = line->next_in_queue) {
        struct pending *list;
        int64_t count;

        rc = read_pending(store, line, &list, &count, err);
        for (int64_t i = 0; rc == 0 && i < count; i++) {
            sqlite3_stmt *stmt = sql_get(&store->sql, SQL_order_update, err);

            if (!stmt) {
                rc = -(int)err->code;
                break;
            }
            bind_int(stmt, 1, list[i].task_key);
            bind_int(stmt, 2, order(ctx, list[i].priority, list[i].order_key));
            rc = sql_run(&store->sql, stmt, NULL, err);
        }
        free(list);
        lines_forget(line);
    }
    return rc;
}

/* Runs a bound statement that returns @state@ and @spec@, and fills tasks. */
static int collect_tasks(struct sqlite_store *store, sqlite3_stmt *stmt, uint32_t limit,
                         struct arena *arena, struct task **tasks, uint32_t *count,
                         struct err *err)
{
    int rc;

    *count = 0;
    while ((rc = sql_step(&store->sql, stmt, err)) > 0) {
        struct task *task = *count < limit ? arena_alloc(arena, sizeof *task) : NULL;

        rc = task ? sqlite_task_from_row(store, stmt, LOAD_SPEC, arena, task, err)
                  : err_set(err, ERR_MEMORY, "out of memory while loading tasks");
        if (rc < 0) {
            sqlite3_reset(stmt);
            return rc;
        }
        tasks[(*count)++] = task;
    }
    return rc;
}

int sqlite_held_find(struct store *base, struct str worker_id, int64_t after_key, uint32_t limit,
                     struct arena *arena, struct task **tasks, uint32_t *count, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    sqlite3_stmt *stmt = sql_get(&store->sql,
                                 worker_id.data ? SQL_held_by_worker : SQL_held_all, err);

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, after_key);
    bind_int(stmt, 2, limit);
    if (worker_id.data)
        bind_str(stmt, 3, worker_id);
    return collect_tasks(store, stmt, limit, arena, tasks, count, err);
}

int sqlite_status_find(struct store *base, enum status status, int64_t after_key, uint32_t limit,
                       struct arena *arena, struct task **tasks, uint32_t *count, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_settled_by_status, err);

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, after_key);
    bind_int(stmt, 2, limit);
    bind_str(stmt, 3, str_of(status_word(status)));
    return collect_tasks(store, stmt, limit, arena, tasks, count, err);
}
