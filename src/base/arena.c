/* Blocks in a list, the newest first; each new one doubles up to 1 MiB. The oldest and smallest
 * block survives a reset, so that a small turn costs no malloc at all.
 * One owner at a time; no locks. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK_BYTES_MIN 4064 /* with malloc's header just under a page */
#define BLOCK_BYTES_KEEP 65536 /* a larger block is given back by reset */

struct arena_block {
    struct arena_block *next;
    size_t cap;
    size_t used;
    _Alignas(16) unsigned char data[];
};

static struct arena_block *block_new(struct arena *arena, size_t bytes)
{
    size_t first = arena->first_bytes ? arena->first_bytes : BLOCK_BYTES_MIN;
    size_t cap = arena->head ? arena->head->cap * 2 : first;
    struct arena_block *block;

    if (cap > 1024 * 1024)
        cap = 1024 * 1024;
    if (cap < bytes)
        cap = bytes;
    if (cap > SIZE_MAX - sizeof *block)
        return NULL;
    block = malloc(sizeof *block + cap);
    if (!block)
        return NULL;
    block->next = arena->head;
    block->cap = cap;
    block->used = 0;
    arena->head = block;
    return block;
}

/* Uninitialised memory; callers overwrite all of it or zero it. */
static void *take(struct arena *arena, size_t bytes)
{
    struct arena_block *block = arena->head;
    size_t rounded = (bytes + 15) & ~(size_t)15;
    void *memory;

    if (rounded < bytes ||
        (arena->max_bytes && rounded > arena->max_bytes - arena->used_bytes))
        block = NULL;
    else if (!block || block->cap - block->used < rounded)
        block = block_new(arena, rounded);
    if (!block) {
        arena->failed = true;
        return NULL;
    }
    memory = block->data + block->used;
    block->used += rounded;
    arena->used_bytes += rounded;
    return memory;
}

void *arena_space(struct arena *arena, size_t bytes)
{
    return take(arena, bytes ? bytes : 1);
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    void *memory = arena_space(arena, bytes);

    return memory ? memset(memory, 0, bytes) : NULL;
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t item_bytes)
{
    if (item_bytes && count > SIZE_MAX / item_bytes)
        return NULL;
    return arena_alloc(arena, count * item_bytes);
}

void *arena_copy(struct arena *arena, const void *data, size_t bytes)
{
    void *memory = take(arena, bytes ? bytes : 1);

    return memory && bytes ? memcpy(memory, data, bytes) : memory;
}

struct str arena_str(struct arena *arena, struct str text)
{
    char *copy;

    if (!text.data)
        return STR_NONE;
    copy = take(arena, text.len + 1);
    if (!copy)
        return STR_NONE;
    if (text.len)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    return str_span(copy, text.len);
}

char *arena_cstr(struct arena *arena, struct str text)
{
    char *copy = take(arena, text.len + 1);

    if (!copy)
        return NULL;
    if (text.len)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    return copy;
}

struct str arena_format(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_list again;
    int len;
    char *text;

    va_start(args, format);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = len < 0 ? NULL : take(arena, (size_t)len + 1);
    if (text)
        vsnprintf(text, (size_t)len + 1, format, again);
    va_end(again);
    return text ? str_span(text, (size_t)len) : STR_NONE;
}

void arena_reset(struct arena *arena)
{
    struct arena_block *block = arena->head;

    while (block && block->next) {
        struct arena_block *next = block->next;

        free(block);
        block = next;
    }
    if (block && block->cap > BLOCK_BYTES_KEEP) {
        free(block);
        block = NULL;
    }
    if (block)
        block->used = 0;
    arena->head = block;
    arena->used_bytes = 0;
    arena->failed = false;
}

void arena_deinit(struct arena *arena)
{
    while (arena->head) {
        struct arena_block *next = arena->head->next;

        free(arena->head);
        arena->head = next;
    }
    arena->used_bytes = 0;
    arena->failed = false;
}

/* Behind the newest block: that one still has room. */
void arena_adopt(struct arena *arena, struct arena *from)
{
    struct arena_block *last = from->head;

    if (last) {
        struct arena_block **at = arena->head ? &arena->head->next : &arena->head;

        while (last->next)
            last = last->next;
        last->next = *at;
        *at = from->head;
    }
    arena->used_bytes += from->used_bytes;
    arena->failed |= from->failed;
    *from = ARENA_INIT(from->max_bytes);
}
