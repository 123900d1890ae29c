/* A binary min-heap of nodes inside the caller's structs, for finding what is due next. Nodes are
 * borrowed and must not move while they are in the heap; equal keys come in any order. Not
 * thread-safe. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_NONE UINT32_MAX /* index of a node that is not in a heap */

struct heap_node {
    int64_t key;
    uint32_t index;
};

struct heap {
    struct heap_node **nodes;
    uint32_t count;
    uint32_t cap;
};

#define HEAP_INIT ((struct heap){NULL, 0, 0})
#define HEAP_NODE_INIT ((struct heap_node){0, HEAP_NONE})

/* The struct around a node: HEAP_ENTRY(node, struct timer, heap_node). */
#define HEAP_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* Puts the node in under node->key. It must not be in a heap. 0 or -ERR_MEMORY. */
int heap_push(struct heap *heap, struct heap_node *node);

struct heap_node *heap_peek(const struct heap *heap); /* the smallest key, or NULL when empty */

void heap_remove(struct heap *heap, struct heap_node *node); /* nothing when it is not in a heap */

void heap_update(struct heap *heap, struct heap_node *node, int64_t new_key); /* must be in it */

static inline bool heap_contains(const struct heap_node *node)
{
    return node->index != HEAP_NONE;
}

/* Empty and usable again. The nodes are not touched: they may be gone already. */
void heap_deinit(struct heap *heap);

#endif
