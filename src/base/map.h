/* A hash map from byte strings to pointers. Keys are borrowed: their bytes usually lie in the value
 * and live at least as long as their entry. Values are never NULL and are not freed here.
 * A secret seed per map keeps outsiders from choosing keys that collide. Not thread-safe. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/str.h"

struct map_slot;

struct map {
    struct map_slot *slots;
    uint32_t cap;     /* 0 or a power of two */
    uint32_t count;   /* values */
    uint32_t removed; /* slots that keep a chain together though their value is gone */
    uint64_t seed;
};

#define MAP_INIT ((struct map){NULL, 0, 0, 0, 0})
#define MAP_AUTO __attribute__((cleanup(map_deinit))) /* struct map: freed when its block ends */

void *map_get(const struct map *map, struct str key); /* NULL when absent */

/* Puts value under key, in place of what was there (with the new key's bytes). 0 or -ERR_MEMORY,
 * and then nothing has changed. */
int map_put(struct map *map, struct str key, void *value);

void *map_remove(struct map *map, struct str key); /* the value, or NULL when absent */

static inline uint32_t map_count(const struct map *map)
{
    return map->count;
}

/* Each value once, in no order; *cursor starts at 0; NULL at the end. Removing is allowed meanwhile
 * (the value just returned or any other), putting is not. */
void *map_next(const struct map *map, uint32_t *cursor);

void map_deinit(struct map *map); /* empty and usable again */

#endif
