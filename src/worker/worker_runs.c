/* The tasks a worker holds, and the memory of its claims: made in blocks, used again and again, so
 * that a task costs no allocation. Everything here is called with the worker's lock held. */
#include <unistd.h>

#include "worker/worker_int.h"

#define RUNS_FIRST 64u

struct claim *worker_claim_new(struct worker *worker)
{
    struct claim *claim = worker->runs.free_claims;

    if (claim)
        worker->runs.free_claims = claim->next;
    else
        claim = calloc(1, sizeof *claim);
    if (claim)
        claim->users = 0;
    return claim;
}

void worker_claim_release(struct worker *worker, struct claim *claim)
{
    arena_reset(&claim->arena);
    claim->next = worker->runs.free_claims;
    worker->runs.free_claims = claim;
}

static bool grow(struct worker *worker)
{
    uint32_t count = RUNS_FIRST << worker->runs.blocks_count;
    struct run **held;
    struct run *block;

    if (worker->runs.blocks_count == sizeof worker->runs.blocks / sizeof *worker->runs.blocks ||
        worker->runs.count >= worker->runs.max)
        return false;
    held = realloc(worker->runs.held, (worker->runs.count + count) * sizeof(struct run *));
    if (held)
        worker->runs.held = held;
    block = held ? calloc(count, sizeof *block) : NULL;
    if (!block)
        return false;
    worker->runs.blocks[worker->runs.blocks_count++] = block;
    worker->runs.count += count;
    for (uint32_t i = 0; i < count; i++) {
        block[i].next = worker->runs.free_first;
        worker->runs.free_first = &block[i];
    }
    return true;
}

struct run *worker_run_new(struct worker *worker)
{
    struct run *run;

    if (!worker->runs.free_first && !grow(worker))
        return NULL;
    run = worker->runs.free_first;
    worker->runs.free_first = run->next;
    run->next = NULL;
    run->serial = ++worker->runs.next_serial;
    run->slot = NULL;
    run->replaced = false;
    run->start_stored = false;
    run->answered_seq = 0;
    run->refused = false;
    run->task.seq = 0;
    run->task.start_awaited = false;
    atomic_store(&run->task.lost, false);
    atomic_store(&run->stop, STOP_NONE);
    run->held_index = worker->runs.held_count;
    worker->runs.held[worker->runs.held_count++] = run;
    return run;
}

void worker_run_end(struct worker *worker, struct run *run)
{
    struct run *last = worker->runs.held[--worker->runs.held_count];

    worker->runs.held[run->held_index] = last;
    last->held_index = run->held_index;
    run->serial = 0;
    run->next = worker->runs.free_first;
    worker->runs.free_first = run;
}

void worker_run_stop(struct run *run, enum stop_reason reason)
{
    uint64_t one = 1;
    ssize_t wrote = 0;

    if (reason >= STOP_CANCEL)
        atomic_store(&run->task.lost, true);
    if (atomic_load(&run->stop) >= (int)reason)
        return;
    atomic_store(&run->stop, (int)reason);
    if (run->slot)
        wrote = write(run->slot->wake_fd, &one, sizeof one);
    (void)wrote; /* a full counter has woken it already */
}

void worker_runs_deinit(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->runs.blocks_count; i++)
        free(worker->runs.blocks[i]);
    free(worker->runs.held);
    while (worker->runs.free_claims) {
        struct claim *next = worker->runs.free_claims->next;

        arena_deinit(&worker->runs.free_claims->arena);
        free(worker->runs.free_claims);
        worker->runs.free_claims = next;
    }
}
