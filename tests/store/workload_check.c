/* The check of the workload: everything that is in the store was asked for, everything that was
 * acknowledged is in it as it was acknowledged, a request is there as a whole or not at all, and
 * the store agrees with itself. */
#include "workload_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE_TASKS 200
#define TEXT_BYTES_MAX (4 * 1024 * 1024)

struct seen {
    bool there;
    enum status status;
};

struct check {
    struct workload *w;
    struct store *store;
    struct store_reader *reader;
    int64_t position;
    struct seen *seen; /* per promise */
    struct buf text;
};

void workload_find(struct workload *w, const char *format, ...)
{
    va_list args;

    if (w->finding[0])
        return;
    va_start(args, format);
    vsnprintf(w->finding, sizeof w->finding, format, args);
    va_end(args);
}

static void tell(void *ctx, const char *line)
{
    workload_find(ctx, "verify: %s", line);
}

static void check_result(struct check *check, uint32_t at, const struct task *task)
{
    struct arena arena = ARENA_INIT(0);
    struct str payload = STR_NONE;
    int64_t created_us;

    buf_reset(&check->text);
    workload_result(at, &check->text);
    if (check->store->verbs->read_result(check->reader, &task->id, &arena, &payload, &created_us,
                                         &check->w->err) < 0)
        workload_find(check->w, "the result of task %u: %s", at, check->w->err.text);
    else if (!str_eq(payload, buf_view(&check->text)))
        workload_find(check->w, "task %u has another result", at);
    arena_deinit(&arena);
}

static void check_one(struct check *check, const struct task *task)
{
    struct workload *w = check->w;
    const struct promise *promise;
    int64_t at;

    if (!str_to_int64(task->spec.idempotency_key, &at) || at < 0 || at >= w->count) {
        workload_find(w, "not requested: " STR_FMT, STR_ARG(task->spec.idempotency_key));
        return;
    }
    promise = &w->promises[at];
    if (check->seen[at].there)
        workload_find(w, "task %d is there twice", (int)at);
    check->seen[at] = (struct seen){true, task->status};
    if (promise->asked == NEVER || promise->asked > check->position)
        workload_find(w, "task %d is there, its enqueue was refused or is still to come", (int)at);
    buf_reset(&check->text);
    workload_payload(w, (uint32_t)at, &check->text);
    if (!str_eq(task->spec.payload, buf_view(&check->text)))
        workload_find(w, "task %d has another payload", (int)at);
    if (task->status == STATUS_COMPLETED)
        check_result(check, (uint32_t)at, task);
}

static void read_all(struct check *check)
{
    struct task_filter filter = {.namespace_name = STR(TASK_DEFAULT_NAMESPACE),
                                 .limit = PAGE_TASKS};
    uint32_t count;

    do {
        struct arena arena = ARENA_INIT(0);
        struct task *tasks = NULL;

        if (check->store->verbs->read_tasks(check->reader, &filter, &arena, &tasks, &count,
                                            &check->w->err) < 0) {
            workload_find(check->w, "tasks cannot be read: %s", check->w->err.text);
            count = 0;
        }
        for (uint32_t i = 0; i < count; i++)
            check_one(check, &tasks[i]);
        if (count)
            filter.before_key = tasks[count - 1].key;
        arena_deinit(&arena);
    } while (count == PAGE_TASKS && !check->w->finding[0]);
}

/* Completed only when it was asked for, and completed for certain when it was acknowledged. */
static void check_end(struct check *check, uint32_t at)
{
    const struct promise *promise = &check->w->promises[at];
    const struct seen *seen = &check->seen[at];
    bool asked = promise->end_asked <= check->position;
    bool certain = promise->ended <= check->position;

    if (certain && !status_ended(seen->status))
        workload_find(check->w, "task %u was acknowledged as ended, it is %s", at,
             status_word(seen->status));
    if (status_ended(seen->status) && !asked)
        workload_find(check->w, "task %u is %s, not requested", at, status_word(seen->status));
    if (status_ended(seen->status) &&
        (seen->status == STATUS_COMPLETED) != (promise->end == STATUS_COMPLETED))
        workload_find(check->w, "task %u ended as %s, it should have ended as %s", at,
             status_word(seen->status), status_word(promise->end));
}

static void check_promises(struct check *check)
{
    struct workload *w = check->w;

    for (uint32_t i = 0; i < w->count; i++) {
        const struct promise *promise = &w->promises[i];
        bool may_be_gone = promise->remove_asked <= check->position;

        if (check->seen[i].there && promise->removed <= check->position)
            workload_find(w, "task %u was acknowledged as deleted, it is there", i);
        if (check->seen[i].there)
            check_end(check, i);
        else if (promise->stored <= check->position && !may_be_gone)
            workload_find(w, "task %u was acknowledged, it is not there", i);
        if (i > 0 && promise->unit == w->promises[i - 1].unit && !may_be_gone &&
            w->promises[i - 1].remove_asked > check->position &&
            check->seen[i].there != check->seen[i - 1].there)
            workload_find(w, "tasks %u and %u came in one request, only one is there", i - 1, i);
    }
}

bool workload_check_open(struct workload *w, struct store *store, int64_t position)
{
    struct check check = {.w = w, .store = store, .position = position,
                          .seen = calloc(WORKLOAD_TASKS_MAX, sizeof *check.seen),
                          .text = BUF_INIT(TEXT_BYTES_MAX)};
    int64_t findings = 0;

    if (store->verbs->verify(store, tell, w, &findings, &w->err) < 0)
        workload_find(w, "verify: %s", w->err.text);
    check.reader = store->verbs->reader_open(store, &w->err);
    if (check.reader) {
        read_all(&check);
        store->verbs->reader_close(check.reader);
        check_promises(&check);
    } else {
        workload_find(w, "no reader: %s", w->err.text);
    }
    buf_deinit(&check.text);
    free(check.seen);
    return w->finding[0] == '\0';
}

bool workload_check(struct workload *w, const char *path, int64_t position)
{
    struct store_options options = {.allow_network_fs = true};
    struct store *store = NULL;
    bool good;

    if (store_open(&store, str_of(path), &options, &w->err) < 0) {
        workload_find(w, "the store does not open: %s", w->err.text);
        return false;
    }
    good = workload_check_open(w, store, position);
    store->verbs->close(store);
    return good;
}
