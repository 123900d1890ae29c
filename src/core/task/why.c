/* Decides which reasons hold a task back; why_text.c puts them into words. Pure. */
#include "core/task/why.h"

struct found {
    enum why_reason *reasons;
    uint32_t count;
};

const char *why_word(enum why_reason reason)
{
    static const char *const words[] = {
#define X(name, word) [name] = word,
        WHY_TABLE(X)
#undef X
    };

    return reason < WHY_COUNT ? words[reason] : "";
}

static void add_if(struct found *found, bool holds, enum why_reason reason)
{
    if (holds && found->count < WHY_ALSO_MAX)
        found->reasons[found->count++] = reason;
}

static bool is_full(const struct why_limit *limit)
{
    return limit->concurrency > 0 && limit->running >= limit->concurrency;
}

static bool is_rated(const struct why_limit *limit, int64_t now_us)
{
    return limit->rate.count > 0 && limit->open_at_us > now_us;
}

static void find_limits(struct found *found, const struct why_facts *facts)
{
    add_if(found, is_full(&facts->queue), WHY_QUEUE_CONCURRENCY);
    add_if(found, is_rated(&facts->queue, facts->now_us), WHY_QUEUE_RATE);
    add_if(found, is_full(&facts->type), WHY_TYPE_CONCURRENCY);
    add_if(found, is_rated(&facts->type, facts->now_us), WHY_TYPE_RATE);
    add_if(found, is_full(&facts->key), WHY_KEY_CONCURRENCY);
    add_if(found, is_rated(&facts->key, facts->now_us), WHY_KEY_RATE);
}

static bool has_no_worker(const struct why_facts *facts)
{
    return facts->workers.of_category == 0 && !facts->workers.claim_waits;
}

static void find_pending(struct found *found, const struct why_facts *facts)
{
    add_if(found, facts->queue_paused_at_us != 0, WHY_QUEUE_PAUSED);
    add_if(found, facts->window_opens_us != 0, WHY_WINDOW);
    add_if(found, facts->service.down_since_us != 0, WHY_SERVICE_DOWN);
    add_if(found, facts->service.wait_until_us > facts->wall_us, WHY_SERVICE_WAIT);
    add_if(found, has_no_worker(facts), WHY_NO_WORKER);
    find_limits(found, facts);
    add_if(found,
           facts->workers.slots > 0 && facts->workers.slots_taken >= facts->workers.slots &&
               !facts->workers.claim_waits,
           WHY_WORKERS_BUSY);
    add_if(found, found->count == 0, WHY_READY);
}

/* What would keep it from running even if its time had come. */
static void find_later(struct found *found, const struct why_facts *facts)
{
    add_if(found, facts->queue_paused_at_us != 0, WHY_QUEUE_PAUSED);
    add_if(found, has_no_worker(facts), WHY_NO_WORKER);
}

static void find_blocked(struct found *found, const struct why_facts *facts)
{
    const struct task *task = facts->task;
    bool children = task->waits.for_children && task->waits.open_children > 0;

    add_if(found, children, WHY_CHILDREN);
    add_if(found, !children && facts->waits_for_total > 0, WHY_DEPENDENCY);
    add_if(found, facts->gates_count > 0, WHY_JOB);
    add_if(found, facts->waits_slot, WHY_JOB_SLOT);
    add_if(found, found->count == 0, WHY_DEPENDENCY);
    find_later(found, facts);
}

static void find_delayed(struct found *found, const struct why_facts *facts)
{
    if (facts->window_state)
        add_if(found, true, WHY_WINDOW);
    else
        add_if(found, true, facts->task->counts.next_retry_at_us ? WHY_RETRY : WHY_DELAYED);
    find_later(found, facts);
}

uint32_t why_find(const struct why_facts *facts, enum why_reason reasons[WHY_ALSO_MAX])
{
    static const enum why_reason plain[STATUS_COUNT] = {
        [STATUS_CLAIMED] = WHY_CLAIMED,         [STATUS_RUNNING] = WHY_RUNNING,
        [STATUS_PAUSED] = WHY_PAUSED,           [STATUS_ORPHANED] = WHY_ORPHANED,
        [STATUS_RECOVERING] = WHY_RECOVERING,   [STATUS_PARTIAL] = WHY_PARTIAL,
        [STATUS_COMPLETED] = WHY_COMPLETED,     [STATUS_FAILED] = WHY_FAILED,
        [STATUS_DEAD_LETTER] = WHY_DEAD_LETTER, [STATUS_CANCELLED] = WHY_CANCELLED};
    struct found found = {.reasons = reasons};

    switch (facts->task->status) {
    case STATUS_PENDING:
        find_pending(&found, facts);
        break;
    case STATUS_BLOCKED:
        find_blocked(&found, facts);
        break;
    case STATUS_DELAYED:
        find_delayed(&found, facts);
        break;
    default:
        add_if(&found, true, plain[facts->task->status]);
    }
    return found.count;
}

int why_decide(const struct why_facts *facts, struct arena *arena, struct why *why,
               struct err *err)
{
    enum why_reason reasons[WHY_ALSO_MAX];
    uint32_t count = why_find(facts, reasons);

    *why = (struct why){.reason = reasons[0], .also_count = count - 1};
    for (uint32_t i = 1; i < count; i++)
        why->also[i - 1] = reasons[i];
    return why_tell(facts, arena, why, err);
}
