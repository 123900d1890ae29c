/* The usual array layout: the children of i are 2i + 1 and 2i + 2. Every node knows its place, so
 * that removing or moving one takes logarithmic time. The array doubles and, once three quarters
 * of it are free, halves again. */
#include "base/heap.h"

#include "base/err.h"

#define CAP_MIN 16u
#define CAP_MAX (1u << 30)

static void place(struct heap *heap, uint32_t index, struct heap_node *node)
{
    heap->nodes[index] = node;
    node->index = index;
}

static void sift_up(struct heap *heap, uint32_t index, struct heap_node *node)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / 2;

        if (heap->nodes[parent]->key <= node->key)
            break;
        place(heap, index, heap->nodes[parent]);
        index = parent;
    }
    place(heap, index, node);
}

static void sift_down(struct heap *heap, uint32_t index, struct heap_node *node)
{
    for (;;) {
        uint32_t child = 2 * index + 1;

        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && heap->nodes[child + 1]->key < heap->nodes[child]->key)
            child++;
        if (node->key <= heap->nodes[child]->key)
            break;
        place(heap, index, heap->nodes[child]);
        index = child;
    }
    place(heap, index, node);
}

/* Puts node at index, whose own node is gone or is the node itself, and restores the order. */
static void settle(struct heap *heap, uint32_t index, struct heap_node *node)
{
    if (index > 0 && node->key < heap->nodes[(index - 1) / 2]->key)
        sift_up(heap, index, node);
    else
        sift_down(heap, index, node);
}

static int resize(struct heap *heap, uint32_t cap)
{
    struct heap_node **nodes = realloc(heap->nodes, cap * sizeof *nodes);

    if (!nodes)
        return -ERR_MEMORY;
    heap->nodes = nodes;
    heap->cap = cap;
    return 0;
}

int heap_push(struct heap *heap, struct heap_node *node)
{
    ASSERT(node->index == HEAP_NONE);
    if (heap->count == heap->cap) {
        if (heap->cap == CAP_MAX || resize(heap, heap->cap ? heap->cap * 2 : CAP_MIN) < 0)
            return -ERR_MEMORY;
    }
    sift_up(heap, heap->count++, node);
    return 0;
}

struct heap_node *heap_peek(const struct heap *heap)
{
    return heap->count ? heap->nodes[0] : NULL;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    uint32_t index = node->index;
    struct heap_node *last;

    if (index == HEAP_NONE)
        return;
    ASSERT(index < heap->count && heap->nodes[index] == node);
    last = heap->nodes[--heap->count];
    if (last != node)
        settle(heap, index, last);
    node->index = HEAP_NONE;
    if (heap->cap > CAP_MIN && heap->count < heap->cap / 4)
        (void)resize(heap, heap->cap / 2); /* without memory the larger array serves on */
}

void heap_update(struct heap *heap, struct heap_node *node, int64_t new_key)
{
    ASSERT(node->index < heap->count && heap->nodes[node->index] == node);
    node->key = new_key;
    settle(heap, node->index, node);
}

void heap_deinit(struct heap *heap)
{
    free(heap->nodes);
    *heap = HEAP_INIT;
}
