/* Open addressing with linear probing, at most three quarters full. Removing never moves an entry
 * (so that iteration may remove), it leaves a mark where a chain runs on. Memory goes back when the
 * last value is removed, and whenever a put finds the table much too large. */
#include "base/map.h"

#include "base/err.h"
#include "base/hash.h"

#define CAP_MIN 16u
#define CAP_MAX (1u << 30)
#define HASH_EMPTY 0u
#define HASH_REMOVED 1u
#define HASH_FIRST 2u /* real hashes are lifted to at least this */

struct map_slot {
    uint64_t hash;
    struct str key;
    void *value;
};

static uint64_t hash_of(const struct map *map, struct str key)
{
    uint64_t hash = hash_bytes64(key.data, key.len, map->seed);

    return hash < HASH_FIRST ? hash + HASH_FIRST : hash;
}

static struct map_slot *find(const struct map *map, struct str key, uint64_t hash)
{
    uint32_t mask = map->cap - 1;

    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        struct map_slot *slot = &map->slots[i];

        if (slot->hash == HASH_EMPTY)
            return NULL;
        if (slot->hash == hash && str_eq(slot->key, key))
            return slot;
    }
}

void *map_get(const struct map *map, struct str key)
{
    struct map_slot *slot = map->count ? find(map, key, hash_of(map, key)) : NULL;

    return slot ? slot->value : NULL;
}

/* The first slot of the chain that holds no value. */
static struct map_slot *find_free(struct map_slot *slots, uint32_t cap, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (cap - 1);

    while (slots[i].hash >= HASH_FIRST)
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

/* Moves everything into a table that is at most half full with one value more. */
static int rebuild(struct map *map)
{
    uint32_t cap = CAP_MIN;
    struct map_slot *slots;

    while (cap < CAP_MAX && cap / 2 < map->count + 1)
        cap *= 2;
    if (cap / 2 < map->count + 1)
        return -ERR_MEMORY;
    slots = calloc(cap, sizeof *slots);
    if (!slots)
        return -ERR_MEMORY;
    for (uint32_t i = 0; i < map->cap; i++)
        if (map->slots[i].hash >= HASH_FIRST)
            *find_free(slots, cap, map->slots[i].hash) = map->slots[i];
    free(map->slots);
    map->slots = slots;
    map->cap = cap;
    map->removed = 0;
    return 0;
}

/* Room for one more. A table of which less than an eighth is used gets smaller; when there is no
 * memory for that the large one serves on. */
static int make_room(struct map *map)
{
    uint32_t used = map->count + map->removed;

    if (used + 1 > map->cap - map->cap / 4)
        return rebuild(map);
    else if (map->cap > CAP_MIN && map->count + 1 < map->cap / 8)
        (void)rebuild(map);
    return 0;
}

int map_put(struct map *map, struct str key, void *value)
{
    struct map_slot *slot;
    uint64_t hash;

    ASSERT(value);
    if (map->cap == 0)
        hash_random(&map->seed, sizeof map->seed);
    hash = hash_of(map, key);
    slot = map->count ? find(map, key, hash) : NULL;
    if (slot) {
        slot->key = key;
        slot->value = value;
        return 0;
    }
    if (make_room(map) < 0)
        return -ERR_MEMORY;
    slot = find_free(map->slots, map->cap, hash);
    if (slot->hash == HASH_REMOVED)
        map->removed--;
    *slot = (struct map_slot){hash, key, value};
    map->count++;
    return 0;
}

/* A removed slot in front of an empty one holds no chain together: it becomes empty as well. */
static void erase(struct map *map, struct map_slot *slot)
{
    uint32_t mask = map->cap - 1;
    uint32_t i = (uint32_t)(slot - map->slots);

    *slot = (struct map_slot){.hash = HASH_REMOVED};
    map->removed++;
    if (map->slots[(i + 1) & mask].hash != HASH_EMPTY)
        return;
    for (; map->slots[i].hash == HASH_REMOVED; i = (i - 1) & mask) {
        map->slots[i].hash = HASH_EMPTY;
        map->removed--;
    }
}

void *map_remove(struct map *map, struct str key)
{
    struct map_slot *slot = map->count ? find(map, key, hash_of(map, key)) : NULL;
    void *value;

    if (!slot)
        return NULL;
    value = slot->value;
    erase(map, slot);
    if (--map->count == 0 && map->cap > CAP_MIN)
        map_deinit(map);
    return value;
}

void *map_next(const struct map *map, uint32_t *cursor)
{
    while (*cursor < map->cap) {
        const struct map_slot *slot = &map->slots[(*cursor)++];

        if (slot->hash >= HASH_FIRST)
            return slot->value;
    }
    return NULL;
}

void map_deinit(struct map *map)
{
    free(map->slots);
    *map = MAP_INIT;
}
