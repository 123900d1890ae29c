#include "store/store_parts_int.h"

#include <stdlib.h>

int parts_check(const struct parts *parts, uint32_t part, struct err *err)
{
    if (!parts->config.failed(parts->config.ctx, part))
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "a store of this server has failed; restart the server "
                                         "once the store is healthy");
}

static void parts_close(struct store *store)
{
    free(store);
}

static void reader_close(struct store_reader *base)
{
    struct parts_reader *reader = parts_reader_of(base);

    for (uint32_t i = 0; i < reader->parts->base.parts; i++)
        if (reader->readers[i])
            reader->parts->stores[i]->verbs->reader_close(reader->readers[i]);
    free(reader);
}

static struct store_reader *reader_open(struct store *store, struct err *err)
{
    struct parts *parts = (struct parts *)store;
    struct parts_reader *reader = calloc(1, sizeof *reader);
    struct store_reader *base = (struct store_reader *)(void *)reader;

    if (!reader) {
        err_set(err, ERR_MEMORY, "there is not enough memory to read the stores");
        return NULL;
    }
    reader->parts = parts;
    for (uint32_t i = 0; i < store->parts; i++) {
        reader->readers[i] = parts->stores[i]->verbs->reader_open(parts->stores[i], err);
        if (!reader->readers[i]) {
            reader_close(base);
            return NULL;
        }
    }
    return base;
}

/* A part that does not answer may have the task, so "not found" would be wrong. */
static int read_task(struct store_reader *base, const struct uuid *id, struct arena *arena,
                     struct task **task, struct err *err)
{
    struct parts_reader *reader = parts_reader_of(base);
    struct parts *parts = reader->parts;
    struct err first = {0};

    *task = NULL;
    for (uint32_t i = 0; i < parts->base.parts; i++) {
        int rc = parts_check(parts, i, err);

        if (rc == 0)
            rc = parts->stores[i]->verbs->read_task(reader->readers[i], id, arena, task, err);
        if (rc == 0 && *task) {
            (*task)->row.part = i;
            reader->last = *id;
            reader->last_at = i;
            return 0;
        }
        if (rc < 0 && first.code == ERR_NONE)
            first = *err;
    }
    if (first.code == ERR_NONE)
        return 0;
    *err = first;
    return -(int)err->code;
}

/* The part that has the task; the main store if none has it. */
static int locate(struct parts_reader *reader, const struct uuid *id, struct arena *arena,
                  const struct store_verbs **verbs, struct store_reader **at, struct err *err)
{
    uint32_t part = 0;
    struct task *task;
    int rc = 0;

    if (!uuid_eq(&reader->last, id)) {
        rc = read_task((struct store_reader *)(void *)reader, id, arena, &task, err);
        if (rc < 0)
            return rc;
        part = task ? task->row.part : 0;
    } else {
        part = reader->last_at;
    }
    *verbs = reader->parts->stores[part]->verbs;
    *at = reader->readers[part];
    return 0;
}

#define LOCATED(verb, ...)                                                                \
    const struct store_verbs *verbs;                                                      \
    struct store_reader *at;                                                              \
    int rc = locate(parts_reader_of(reader), id, arena, &verbs, &at, err);                      \
                                                                                          \
    return rc < 0 ? rc : verbs->verb(at, id, __VA_ARGS__, err)

static int read_dependencies(struct store_reader *reader, const struct uuid *id,
                             struct arena *arena, struct task_dependency **dependencies,
                             uint32_t *count, struct err *err)
{
    LOCATED(read_dependencies, arena, dependencies, count);
}

static int read_dependents(struct store_reader *reader, const struct uuid *id,
                           struct arena *arena, struct task_dependency **dependents,
                           uint32_t *count, struct err *err)
{
    LOCATED(read_dependents, arena, dependents, count);
}

static int read_outputs(struct store_reader *reader, const struct uuid *id, bool children,
                        int64_t after_key, uint32_t limit, struct arena *arena,
                        struct output **outputs, uint32_t *count, struct err *err)
{
    LOCATED(read_outputs, children, after_key, limit, arena, outputs, count);
}

static int read_result(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                       struct str *payload, int64_t *created_at_us, struct err *err)
{
    LOCATED(read_result, arena, payload, created_at_us);
}

static int read_events(struct store_reader *reader, const struct uuid *id, int64_t before_seq,
                       uint32_t limit, struct arena *arena, struct task_event **events,
                       uint32_t *count, struct err *err)
{
    LOCATED(read_events, before_seq, limit, arena, events, count);
}

static int read_executions(struct store_reader *reader, const struct uuid *id, int64_t before_key,
                           uint32_t limit, struct arena *arena, struct execution **executions,
                           uint32_t *count, struct err *err)
{
    LOCATED(read_executions, before_key, limit, arena, executions, count);
}

static int read_checkpoints(struct store_reader *reader, const struct uuid *id, int64_t before_seq,
                            uint32_t limit, struct arena *arena, struct checkpoint **checkpoints,
                            uint32_t *count, struct err *err)
{
    LOCATED(read_checkpoints, before_seq, limit, arena, checkpoints, count);
}

static int read_logs(struct store_reader *reader, const struct uuid *id,
                     const struct log_filter *filter, struct arena *arena,
                     struct log_entry **entries, uint32_t *count, struct err *err)
{
    LOCATED(read_logs, filter, arena, entries, count);
}

/* ---- lists ---- */

struct list {
    struct task *tasks;
    uint32_t count;
    uint32_t next;
};

/* A part that contributed nothing yet continues from its current newest task: a task that comes
 * later is newer than the page before and belongs to no page after it. */
static int64_t begin_below(const struct list *list)
{
    return list->count ? list->tasks[0].key + 1 : 1;
}

static int read_lists(struct parts_reader *reader, const struct task_filter *filter, uint32_t mask,
                      struct arena *arena, struct list *lists, struct err *err)
{
    struct parts *parts = reader->parts;
    struct task_filter one = *filter;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < parts->base.parts; i++) {
        if (!(mask & 1u << i))
            continue;
        one.before_key = filter->before_keys[i];
        rc = parts_check(parts, i, err);
        if (rc == 0)
            rc = parts->stores[i]->verbs->read_tasks(reader->readers[i], &one, arena,
                                                     &lists[i].tasks, &lists[i].count, err);
        for (uint32_t t = 0; rc == 0 && t < lists[i].count; t++)
            lists[i].tasks[t].row.part = i;
    }
    return rc;
}

static int64_t next_created_us(const struct list *list)
{
    return list->tasks[list->next].spec.created_at_us;
}

/* The list whose next task comes first. */
static struct list *first(struct list *lists, uint32_t count, bool oldest_first)
{
    struct list *found = NULL;

    for (uint32_t i = 0; i < count; i++) {
        struct list *list = &lists[i];

        if (list->next < list->count &&
            (!found || (oldest_first ? next_created_us(list) < next_created_us(found)
                                     : next_created_us(list) > next_created_us(found))))
            found = list;
    }
    return found;
}

/* Each part gives a whole page; the first of all of them make the page. With the newest first, this
 * sets the filter's cursors of parts that were at their beginning. */
static int read_tasks(struct store_reader *base, const struct task_filter *filter,
                      struct arena *arena, struct task **tasks, uint32_t *count, struct err *err)
{
    struct parts_reader *reader = parts_reader_of(base);
    struct parts *parts = reader->parts;
    struct list lists[STORE_PARTS_MAX] = {{0}};
    uint32_t all = (1u << parts->base.parts) - 1;
    uint32_t mask = filter->queue.data ? parts->config.where(parts->config.ctx, filter->queue)
                                       : all;
    int rc = read_lists(reader, filter, mask & all, arena, lists, err);
    struct list *list;

    *count = 0;
    if (rc < 0)
        return rc;
    *tasks = arena_alloc_array(arena, filter->limit, sizeof **tasks);
    if (!*tasks)
        return err_set(err, ERR_TOO_LARGE, "the tasks of this page do not fit into memory");
    while (*count < filter->limit && (list = first(lists, parts->base.parts,
                                                     filter->oldest_first)) != NULL)
        (*tasks)[(*count)++] = list->tasks[list->next++];
    for (uint32_t i = 0; i < parts->base.parts; i++)
        if (filter->before_keys[i] == 0 && !filter->oldest_first)
            filter->before_keys[i] = begin_below(&lists[i]);
    return 0;
}

static int backup(struct store_reader *reader, const char *path,
                  void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                  struct err *err)
{
    (void)reader;
    (void)path;
    (void)progress;
    (void)ctx;
    return err_set(err, ERR_CONFLICT, "this server has several stores; copy each of them with "
                                      "'perdura backup --store STORE FILE'");
}

static const struct store_verbs parts_verbs = {.close = parts_close,
                                               .reader_open = reader_open,
                                               .reader_close = reader_close,
                                               .read_task = read_task,
                                               .read_tasks = read_tasks,
                                               .read_dependencies = read_dependencies,
                                               .read_dependents = read_dependents,
                                               .read_outputs = read_outputs,
                                               .read_result = read_result,
                                               .read_events = read_events,
                                               .read_executions = read_executions,
                                               .read_checkpoints = read_checkpoints,
                                               .read_logs = read_logs,
                                               .backup = backup,
                                               .catalog = &parts_catalog_verbs,
                                               .audit = &parts_audit_verbs,
                                               .recovery = &parts_recovery_verbs,
                                               .measures = &parts_measure_verbs};

/* "sqlite", or "sqlite+postgres" where there are both. */
static void name_kinds(struct parts *parts)
{
    for (uint32_t i = 0; i < parts->base.parts; i++) {
        const char *kind = parts->stores[i]->kind;
        size_t len = strlen(parts->kind);

        if (!strstr(parts->kind, kind))
            snprintf(parts->kind + len, sizeof parts->kind - len, "%s%s", len ? "+" : "", kind);
    }
    parts->base.kind = parts->kind;
}

struct store *store_parts_new(const struct store_parts_config *config, struct err *err)
{
    struct parts *parts = calloc(1, sizeof *parts);

    ASSERT(config->count >= 2 && config->count <= STORE_PARTS_MAX);
    if (!parts) {
        err_set(err, ERR_MEMORY, "there is not enough memory to start");
        return NULL;
    }
    parts->base.verbs = &parts_verbs;
    parts->base.parts = config->count;
    parts->config = *config;
    memcpy(parts->stores, config->stores, config->count * sizeof *config->stores);
    parts->config.stores = parts->stores;
    name_kinds(parts);
    return &parts->base;
}
