/* The tasks a worker holds, and the memory of its claims: made in blocks, used again and again, so
 * that a task costs no allocation. Everything here is called with the worker's lock held. */
#include <unistd.h>

#include "worker/worker_int.h"

#define RUNS_FIRST 64u

struct claim *worker_claim_new(struct worker *worker)
{
    struct claim *claim = worker->free_claims;

    if (claim)
        worker->free_claims = claim->next;
    else
        claim = calloc(1, sizeof *claim);
    if (claim)
        claim->users = 0;
    return claim;
}

void worker_claim_release(struct worker *worker, struct claim *claim)
{
    arena_reset(&claim->arena);
    claim->next = worker->free_claims;
    worker->free_claims = claim;
}

static bool grow(struct worker *worker)
{
    uint32_t count = RUNS_FIRST << worker->blocks_count;
    struct run **held;
    struct run *block;

    if (worker->blocks_count == sizeof worker->all_runs / sizeof *worker->all_runs ||
        worker->runs_count >= worker->runs_max)
        return false;
    held = realloc(worker->held, (worker->runs_count + count) * sizeof(struct run *));
    if (held)
        worker->held = held;
    block = held ? calloc(count, sizeof *block) : NULL;
    if (!block)
        return false;
    worker->all_runs[worker->blocks_count++] = block;
    worker->runs_count += count;
    for (uint32_t i = 0; i < count; i++) {
        block[i].next = worker->free_runs;
        worker->free_runs = &block[i];
    }
    return true;
}

struct run *worker_run_new(struct worker *worker)
{
    struct run *run;

    if (!worker->free_runs && !grow(worker))
        return NULL;
    run = worker->free_runs;
    worker->free_runs = run->next;
    run->next = NULL;
    run->serial = ++worker->next_serial;
    run->slot = NULL;
    run->replaced = false;
    run->start_stored = false;
    run->task.seq = 0;
    run->task.start_awaited = false;
    atomic_store(&run->task.lost, false);
    atomic_store(&run->stop, STOP_NONE);
    run->held_index = worker->held_count;
    worker->held[worker->held_count++] = run;
    return run;
}

void worker_run_end(struct worker *worker, struct run *run)
{
    struct run *last = worker->held[--worker->held_count];

    worker->held[run->held_index] = last;
    last->held_index = run->held_index;
    run->serial = 0;
    run->next = worker->free_runs;
    worker->free_runs = run;
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
    for (uint32_t i = 0; i < worker->blocks_count; i++)
        free(worker->all_runs[i]);
    free(worker->held);
    while (worker->free_claims) {
        struct claim *next = worker->free_claims->next;

        arena_deinit(&worker->free_claims->arena);
        free(worker->free_claims);
        worker->free_claims = next;
    }
}
