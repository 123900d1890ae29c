/* A key that begins in a store with logs signs where each of their chains stands, and what of them
 * was emptied: from then on the times that lines and records carry prove nothing, because an
 * attacker can set them. Once per key, in one transaction. Runs on the thread that has the turn. */
#include "engine/batch.h"
#include "engine/logs/log_heads_int.h"

#define RUNS ANCHOR_ITEMS_MAX /* at a time */

struct page {
    struct arena arena;
    struct uuid after; /* the last one that was seen */
    struct log_range ranges[RUNS];
    struct log_run runs[RUNS];
    struct log_part parts[RUNS];
    struct log_note notes[RUNS];
    uint32_t count, kept;
};

/* Where an older version adopted by time alone, only what that took, or the key proves. */
static bool is_taken(const struct batch *batch, const struct pen *pen, const struct log_run *run)
{
    const struct log_last *last = &run->last;

    if (last->seq == 0 || uuid_is_nil(&run->task_id))
        return false; /* of no task: verify tells of it */
    return !pen->again || !batch->store->log_mac ||
           logmac_trusts(batch->store->log_mac, last) ||
           logmac_adopted(&last->execution_id, last->logged_at_us, pen->since_us);
}

static void take_run(struct page *page, const struct log_run *run)
{
    struct log_head head;

    logchain_resume(&head, &run->last.execution_id, run->last.seq, run->last.chain_hash);
    page->parts[page->kept] = (struct log_part){.head = head};
    head.hashed = true; /* zeros where there is none */
    page->notes[page->kept++] = (struct log_note){.part.head = head,
                                                  .task_id = run->task_id,
                                                  .task_type = run->type,
                                                  .logged_at_us = run->last.logged_at_us};
}

static int sign_page(struct batch *batch, struct pen *pen, struct page *page, struct err *err)
{
    const struct log_verbs *verbs = batch->store->verbs->logs;

    page->kept = 0;
    TRY(verbs->chains_next(batch->store, &page->after, RUNS, page->ranges, &page->count, err));
    if (page->count == 0)
        return 0;
    page->after = page->ranges[page->count - 1].execution_id;
    TRY(verbs->runs_find(batch->store, page->ranges, page->count, &page->arena, page->runs, err));
    for (uint32_t i = 0; i < page->count; i++)
        if (is_taken(batch, pen, &page->runs[i]))
            take_run(page, &page->runs[i]);
    if (page->kept == 0)
        return 0;
    TRY(pen_write_parts(batch, pen, ANCHOR_HEADS, STR("adopted"), page->parts, page->kept, err));
    TRY(verbs->heads_forget(batch->store, page->notes, page->kept, err));
    return verbs->heads_put(batch->store, page->notes, page->kept, err);
}

/* Records about lines that were emptied are of the time before as well. */
static int sign_emptied(struct batch *batch, struct pen *pen, struct arena *arena,
                        struct err *err)
{
    struct log_part *parts;
    uint32_t count;

    TRY(batch->store->verbs->logs->emptied_find(batch->store, arena, &parts, &count, err));
    return pen_write_parts(batch, pen, ANCHOR_BLANKS, STR("adopted"), parts, count, err);
}

int log_adopt(struct batch *batch, struct pen *pen, struct err *err)
{
    struct page *page = calloc(1, sizeof *page);
    int rc = 0;

    if (!page)
        return err_no_memory(err);
    page->arena = (struct arena)ARENA_INIT(0);
    do {
        arena_reset(&page->arena);
        rc = sign_page(batch, pen, page, err);
    } while (rc == 0 && page->count == RUNS);
    if (rc == 0 && !pen->again)
        rc = sign_emptied(batch, pen, &page->arena, err);
    arena_deinit(&page->arena);
    free(page);
    return rc;
}
