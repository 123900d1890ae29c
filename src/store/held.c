#include "store/held.h"

#include "core/task/task_fields.h"

#include <stdlib.h>

struct held_task {
    struct task task; /* its texts lie behind it */
    size_t bytes;
    char texts[];
};

static struct str key_bytes(const int64_t *key)
{
    return str_span((const char *)key, sizeof *key);
}

/* Moves the texts of a copied task behind it, one after the other, each with its NUL. */
static void pack_texts(struct task *task, char *at)
{
    for (size_t i = 0; i < TASK_TEXTS_COUNT; i++) {
        struct str *text = task_text(task, i);

        if (!text->data)
            continue;
        memcpy(at, text->data, text->len);
        at[text->len] = '\0';
        text->data = at;
        at += text->len + 1;
    }
}

static size_t texts_bytes(const struct task *task)
{
    size_t bytes = 0;

    for (size_t i = 0; i < TASK_TEXTS_COUNT; i++) {
        const struct str *text = task_text((struct task *)task, i);

        bytes += text->data ? text->len + 1 : 0;
    }
    return bytes;
}

void held_remove(struct held *held, int64_t task_key)
{
    struct held_task *old = map_remove(&held->by_key, key_bytes(&task_key));

    if (!old)
        return;
    held->used_bytes -= old->bytes;
    free(old);
}

void held_put(struct held *held, const struct task *task)
{
    size_t bytes = sizeof(struct held_task) + texts_bytes(task);
    struct held_task *copy;

    held_remove(held, task->key);
    if (held->used_bytes + bytes > HELD_BYTES_MAX || !task->has_spec)
        return;
    copy = malloc(bytes);
    if (!copy)
        return;
    copy->task = *task;
    copy->bytes = bytes;
    copy->task.spec.payload = STR_NONE;
    copy->task.data = STR_NONE;
    copy->task.row.sealed = NULL; /* its texts are as they are stored */
    copy->task.has_data = false;
    copy->task.mark = TASK_CLEAN;
    copy->task.execution_slot = 0;
    pack_texts(&copy->task, copy->texts);
    if (map_put(&held->by_key, key_bytes(&copy->task.key), copy) < 0) {
        free(copy);
        return;
    }
    held->used_bytes += bytes;
}

struct task *held_get(const struct held *held, int64_t task_key, struct arena *arena)
{
    struct held_task *stored = map_get(&held->by_key, key_bytes(&task_key));
    struct held_task *copy = stored ? arena_copy(arena, stored, stored->bytes) : NULL;

    for (size_t i = 0; copy && i < TASK_TEXTS_COUNT; i++) {
        struct str *text = task_text(&copy->task, i);

        if (text->data) /* as far behind its task as it was */
            text->data = (const char *)copy + (text->data - (const char *)stored);
    }
    return copy ? &copy->task : NULL;
}

void held_forget(struct held *held)
{
    struct held_task *task;
    uint32_t cursor = 0;

    while ((task = map_next(&held->by_key, &cursor)))
        free(task);
    map_deinit(&held->by_key);
    held->used_bytes = 0;
}
