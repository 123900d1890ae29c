/* The age of logs comes from their chains, not from the rows of their tasks, which an attacker who
 * writes to the store can set. Retention asks here before it removes tasks together with their
 * logs. Runs on the thread that has the turn. */
#include "engine/logs/log_ages.h"

#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/logs/log_heads.h"
#include "engine/logs/log_heads_int.h"
#include "engine/logs/log_namespaces.h"

#define GOES_UNSIGNED "its lines went with their task, and that is not signed"

struct ages {
    struct log_last *lasts;
    uint32_t *at; /* whose */
    uint32_t count;
};

int log_ages_ready(struct batch *batch, struct err *err)
{
    bool any = false;

    if (batch->engine->heads.ready || !batch->store->verbs->logs)
        return 0;
    TRY(batch->store->verbs->logs->any_line(batch->store, &any, err));
    return any ? log_heads_ready(batch, err) : 0;
}

int64_t log_now_us(const struct batch *batch)
{
    int64_t wall_us = clock_wall_us();

    return wall_us < batch->now_us ? wall_us : batch->now_us;
}

static int find_ages(struct batch *batch, struct task *const *tasks, uint32_t count,
                     struct ages *ages, struct err *err)
{
    *ages = (struct ages){.count = 0};
    if (!batch->store->verbs->logs)
        return 0;
    TRY(batch->store->verbs->logs->lasts_find(batch->store, tasks, count, &batch->arena,
                                              &ages->lasts, &ages->at, &ages->count, err));
    return ages->count > 0 ? log_heads_ready(batch, err) : 0;
}

static bool has_code(const struct log_last *last)
{
    return last->noted && last->note.mac[0] != '\0';
}

/* Does its row say the same of the task? Retention goes by the type and the namespace. */
static bool is_of(struct batch *batch, const struct task *task, const struct log_note *note)
{
    struct str type = queue_name_full(task->spec.namespace_name, task->spec.type, &batch->arena);

    return uuid_eq(&note->task_id, &task->id) && str_eq(note->task_type, type);
}

/* Are they by the key, and of this task? */
static bool is_proven(struct batch *batch, const struct task *task, const struct log_last *last)
{
    const struct store *store = batch->store;

    if (!store->log_mac)
        return true;
    return logmac_trusts(store->log_mac, last) && log_is_newest(store, last) &&
           (!has_code(last) || is_of(batch, task, &last->note));
}

static void doubt(struct batch *batch, const struct log_last *last, const char *what)
{
    batch->store->log_doubt = (struct log_doubt){what, last->execution_id};
}

static int64_t longer(int64_t a, int64_t b)
{
    return a <= 0 || b <= 0 ? 0 : a > b ? a : b; /* 0 = for ever */
}

/* So long the task has to stay, by what the note of its newest lines says: its namespace and type,
 * and how that run ended. Where the task says otherwise the longer window counts. */
static int proven_ms(struct batch *batch, const struct task *task, const struct log_last *last,
                     int64_t keep_ms, int64_t *window_ms, struct err *err)
{
    const struct handler_rule *rule;
    int64_t completed_ms, failed_ms;
    bool completed;

    *window_ms = keep_ms;
    if (!batch->store->log_mac || !has_code(last))
        return 0;
    rule = settings_handler(batch->engine->settings, queue_name_plain(last->note.task_type));
    if (rule && rule->retention_ms >= 0) {
        *window_ms = rule->retention_ms;
        return 0;
    }
    TRY(log_namespace_windows(batch, queue_name_namespace(last->note.task_type), &completed_ms,
                              &failed_ms, err));
    completed = str_is(last->note.closed, "completed");
    if (last->note.closed.len == 0 || /* or an older one was put back */
        completed != (task->status == STATUS_COMPLETED))
        *window_ms = longer(completed_ms, failed_ms);
    else
        *window_ms = completed ? completed_ms : failed_ms;
    return 0;
}

static bool is_over(int64_t now_us, const struct log_last *last, int64_t window_ms)
{
    return window_ms > 0 && last->logged_at_us + window_ms * CLOCK_MS_US <= now_us;
}

/* Whether a task may go as far as these lines are concerned. newest: they are its last ones. */
static int may_go(struct batch *batch, const struct task *task, const struct log_last *last,
                  bool newest, int64_t keep_ms, bool *may, struct err *err)
{
    int64_t window_ms = keep_ms;

    *may = is_proven(batch, task, last);
    if (!*may) {
        doubt(batch, last, "retention leaves its task");
        return 0;
    }
    if (!batch->store->log_mac)
        return 0;
    *may = is_over(batch->now_us, last, keep_ms);
    if (!*may) {
        doubt(batch, last, "retention leaves its task, which is younger than its row says");
        return 0;
    }
    if (newest)
        TRY(proven_ms(batch, task, last, keep_ms, &window_ms, err));
    *may = is_over(log_now_us(batch), last, window_ms);
    return 0;
}

static bool is_newest(const struct ages *ages, uint32_t which)
{
    for (uint32_t i = 0; i < ages->count; i++)
        if (ages->at[i] == ages->at[which] &&
            memcmp(ages->lasts[i].execution_id.bytes, ages->lasts[which].execution_id.bytes,
                   16) > 0)
            return false;
    return true;
}

/* Computes the chains of the executions that are wanted again. */
static int check_chains(struct batch *batch, const struct ages *ages, const bool *wanted,
                        const char *what, bool *fits, struct err *err)
{
    struct log_range *ranges = arena_alloc_array(&batch->arena, ages->count + 1, sizeof *ranges);
    bool *fit = arena_alloc_array(&batch->arena, ages->count + 1, sizeof *fit);
    uint32_t count = 0;

    if (!ranges || !fit)
        return err_no_memory(err);
    for (uint32_t i = 0; i < ages->count; i++)
        if (wanted[i])
            ranges[count++] = (struct log_range){ages->lasts[i].execution_id, 1,
                                                 ages->lasts[i].seq};
    TRY(log_chains_fit(batch->store, ranges, count, INT64_MAX, what, fit, err));
    count = 0;
    for (uint32_t i = 0; i < ages->count; i++)
        fits[i] = !wanted[i] || fit[count++];
    return 0;
}

/* Of tasks that may go otherwise: those whose lines are not what was written stay, too. */
static int keep_changed(struct batch *batch, const struct ages *ages, bool *stays, struct err *err)
{
    bool *wanted = arena_alloc_array(&batch->arena, ages->count + 1, sizeof *wanted);
    bool *fits = arena_alloc_array(&batch->arena, ages->count + 1, sizeof *fits);

    if (!wanted || !fits)
        return err_no_memory(err);
    for (uint32_t i = 0; i < ages->count; i++)
        wanted[i] = !stays[ages->at[i]];
    TRY(check_chains(batch, ages, wanted, "retention leaves its task", fits, err));
    for (uint32_t i = 0; i < ages->count; i++)
        stays[ages->at[i]] |= !fits[i];
    for (uint32_t i = 0; i < ages->count; i++)
        if (!stays[ages->at[i]] &&
            log_checked_add(batch->store, &ages->lasts[i].execution_id) < 0)
            return err_no_memory(err);
    return 0;
}

int log_ages_keep(struct batch *batch, struct task **tasks, int64_t *keep_ms, uint32_t *count,
                  struct err *err)
{
    bool *stays = arena_alloc_array(&batch->arena, *count, sizeof *stays);
    struct ages ages;
    uint32_t kept = 0;

    if (!stays)
        return err_no_memory(err);
    memset(stays, 0, *count * sizeof *stays);
    TRY(find_ages(batch, tasks, *count, &ages, err));
    for (uint32_t i = 0; i < ages.count; i++) {
        bool may;

        TRY(may_go(batch, tasks[ages.at[i]], &ages.lasts[i], is_newest(&ages, i),
                   keep_ms[ages.at[i]], &may, err));
        stays[ages.at[i]] |= !may;
    }
    TRY(keep_changed(batch, &ages, stays, err));
    batch->store->cuts->window_ms = *count > 0 ? keep_ms[0] : 0;
    for (uint32_t i = 0; i < *count; i++) {
        if (stays[i])
            continue;
        if (keep_ms[i] < batch->store->cuts->window_ms)
            batch->store->cuts->window_ms = keep_ms[i];
        keep_ms[kept] = keep_ms[i];
        tasks[kept++] = tasks[i];
    }
    *count = kept;
    return 0;
}

static int refuse(struct batch *batch, const struct log_last *last, struct err *err)
{
    doubt(batch, last, GOES_UNSIGNED);
    return log_cuts_add(&batch->logs.refused, &last->execution_id, last->seq, last->chain_hash, 0,
                        0) < 0
               ? err_no_memory(err)
               : 0;
}

/* What retention has checked already in this transaction is not computed again. */
int log_ages_refuse(struct batch *batch, struct task *const *tasks, uint32_t count,
                    struct err *err)
{
    struct ages ages;
    bool *proven, *fits;

    TRY(find_ages(batch, tasks, count, &ages, err));
    proven = arena_alloc_array(&batch->arena, ages.count + 1, sizeof *proven);
    fits = arena_alloc_array(&batch->arena, ages.count + 1, sizeof *fits);
    if (!proven || !fits)
        return err_no_memory(err);
    for (uint32_t i = 0; i < ages.count; i++) {
        const struct log_last *last = &ages.lasts[i];
        bool checked = log_is_checked(batch->store, &last->execution_id);

        proven[i] = is_proven(batch, tasks[ages.at[i]], last) &&
                    (!batch->store->log_mac || batch->logs.purge_before_us == 0 ||
                     last->logged_at_us < batch->logs.purge_before_us);
        if (log_checked_add(batch->store, &last->execution_id) < 0)
            return err_no_memory(err);
        if (!proven[i] && refuse(batch, last, err) < 0)
            return -(int)err->code;
        proven[i] &= !checked;
    }
    TRY(check_chains(batch, &ages, proven, GOES_UNSIGNED, fits, err));
    for (uint32_t i = 0; i < ages.count; i++)
        if (!fits[i] && refuse(batch, &ages.lasts[i], err) < 0)
            return -(int)err->code;
    return 0;
}
