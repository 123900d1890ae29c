/* Memory that is freed all at once: one arena per request, execution or tick.
 * Not thread-safe; the holder of the arena owns everything in it. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

struct arena_block;

struct arena {
    struct arena_block *head; /* newest block */
    size_t used_bytes;        /* handed out since the last reset */
    size_t max_bytes;         /* refusal beyond this; 0 = no maximum of its own */
    bool failed;              /* something was refused since the last reset: what came of it may be
                               * incomplete, so look here before it is kept or shown */
    uint32_t first_bytes;     /* size of the first block; 0 = a page */
};

#define ARENA_INIT(max) ((struct arena){NULL, 0, (max), false, 0})

/* All return NULL (or STR_NONE) when memory or the maximum is used up. Zeroed, 16-byte aligned. */
void *arena_alloc(struct arena *arena, size_t bytes);
void *arena_alloc_array(struct arena *arena, size_t count, size_t item_bytes);
void *arena_space(struct arena *arena, size_t bytes); /* not zeroed: the caller writes all of it */
void *arena_copy(struct arena *arena, const void *data, size_t bytes);
struct str arena_str(struct arena *arena, struct str text);   /* copy, NUL-terminated behind */
char *arena_cstr(struct arena *arena, struct str text);       /* copy as C string */
struct str arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void arena_reset(struct arena *arena); /* keeps one small block for the next turn */
void arena_deinit(struct arena *arena);
#define ARENA_AUTO __attribute__((cleanup(arena_deinit))) /* freed when its block ends */
void arena_adopt(struct arena *arena, struct arena *from); /* all of `from`, which is empty then */

#endif
