/* Retention of logs by level and by type. Each rule follows the records of where chains stood
 * (heads, see log_heads.c): one of them names the lines that were written by its time, so those
 * whose time is over are found without a look at any other. How far a rule has come is kept in the
 * store, in the transaction that did it. By level lines lose what they say and stay in their
 * chains; by type they go, oldest first. The queue's thread, the leader's with several nodes. */
#include "base/fault.h"
#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/logs/log_ages.h"
#include "engine/logs/log_heads_int.h"
#include "store/log_store.h"

#define LOOK_LINES 400  /* in one step: about 10 ms */
#define LOOK_RECORDS 10 /* 512 KiB each at most */
#define NAME_BYTES 64
#define PLACE_BYTES 128

/* How far a rule has come. */
struct place {
    uint64_t sum;    /* of the rules it was made for; by others all is looked at again */
    int64_t serial;  /* the last record that is done, */
    int64_t items;   /* so many items of the one behind it, */
    int64_t seq;     /* and of the item behind them the lines up to this one */
};

/* One step of one rule. */
struct step {
    struct batch *batch;
    char name[NAME_BYTES]; /* of its place in the store */
    struct place place;
    int64_t before_us;     /* records made until then */
    int64_t newest_us;     /* when the newest of those that were looked at was made */
    struct log_range *ranges;
    uint32_t count;
    int64_t left;          /* lines that may still be looked at */
    bool more;
};

/* ---- places ---- */

static int place_load(struct step *step, uint64_t sum, struct err *err)
{
    struct batch *batch = step->batch;
    unsigned long long stored_sum;
    long long serial, items, seq;
    char text[PLACE_BYTES];
    struct str value;

    step->place = (struct place){.sum = sum};
    TRY(batch->store->verbs->info_get(batch->store, step->name, &batch->arena, &value, err));
    snprintf(text, sizeof text, STR_FMT, STR_ARG(value));
    if (sscanf(text, "%llx %lld %lld %lld", &stored_sum, &serial, &items, &seq) == 4 &&
        stored_sum == sum)
        step->place = (struct place){sum, serial, items, seq};
    return 0;
}

static int place_save(struct step *step, struct err *err)
{
    const struct place *place = &step->place;
    char text[PLACE_BYTES];

    snprintf(text, sizeof text, "%llx %lld %lld %lld", (unsigned long long)place->sum,
             (long long)place->serial, (long long)place->items, (long long)place->seq);
    step->batch->wrote = true;
    return step->batch->store->verbs->info_put(step->batch->store, step->name, str_of(text), err);
}

/* ---- which lines ---- */

/* The lines of an item that are not done yet, as far as the step goes. */
static void add_range(struct step *step, const struct log_part *item)
{
    struct place *place = &step->place;
    int64_t from = item->lines > 0 ? item->head.seq - item->lines + 1 : 1;
    int64_t to = item->head.seq;

    if (place->seq >= from)
        from = place->seq + 1;
    if (to - from >= step->left)
        to = from + step->left - 1;
    if (to >= from) {
        step->ranges[step->count++] = (struct log_range){item->head.execution_id, from, to};
        step->left -= to - from + 1;
    }
    place->seq = to;
    if (to >= item->head.seq) {
        place->items++;
        place->seq = 0;
    }
}

/* Only a record by the key says how old lines are. False: it is not time for it yet. */
static bool take_record(struct step *step, const struct anchor_row *row)
{
    struct json_iter iter;
    struct log_part item;
    struct anchor anchor;
    int64_t at = 0;
    bool trusted = log_record_trusted(&step->batch->engine->heads, row, &anchor);

    if (trusted && anchor.at_us > step->before_us)
        return false;
    if (trusted && anchor.at_us > step->newest_us)
        step->newest_us = anchor.at_us;
    if (trusted && anchor.kind == ANCHOR_HEADS) {
        json_begin(anchor.items, &iter);
        while (step->left > 0 && at < ANCHOR_ITEMS_MAX && anchor_next_item(&iter, &item))
            if (at++ >= step->place.items)
                add_range(step, &item); /* of one that cannot be read there is no line */
        if (step->left <= 0)
            return true; /* once more, to see whether there is anything left of it */
    }
    step->place = (struct place){.sum = step->place.sum, .serial = row->serial};
    return true;
}

static int find_ranges(struct step *step, struct err *err)
{
    struct batch *batch = step->batch;
    struct anchor_row *rows;
    uint32_t count, at = 0;

    step->left = LOOK_LINES;
    step->ranges = arena_alloc_array(&batch->arena, LOOK_LINES, sizeof *step->ranges);
    if (!step->ranges)
        return err_no_memory(err);
    TRY(batch->store->verbs->logs->anchors_read(batch->store, step->place.serial, LOOK_RECORDS,
                                                &batch->arena, &rows, &count, err));
    while (at < count && step->left > 0 && take_record(step, &rows[at]))
        at++;
    step->more = step->left <= 0 || at == LOOK_RECORDS;
    return at > 0 ? place_save(step, err) : 0;
}

static int64_t before(const struct batch *batch, int64_t window_ms)
{
    return log_now_us(batch) - window_ms * CLOCK_MS_US;
}

/* ---- by level ---- */

static int run_level(struct batch *batch, enum log_severity level, int64_t window_ms, bool *more,
                     struct err *err)
{
    struct step step = {.batch = batch, .before_us = before(batch, window_ms)};
    int64_t emptied[LOOK_LINES];

    batch->logs.blanks.window_ms = window_ms;
    snprintf(step.name, sizeof step.name, "log_level_%s", severity_word(level));
    TRY(place_load(&step, 0, err));
    TRY(find_ranges(&step, err));
    if (step.count > 0 &&
        batch->store->verbs->logs->lines_empty(batch->store, level, step.ranges, step.count,
                                               emptied, err) < 0)
        return -(int)err->code;
    for (uint32_t i = 0; i < step.count; i++)
        if (emptied[i] > 0 &&
            log_blanks_add(&batch->logs.blanks, &step.ranges[i].execution_id, step.ranges[i].to_seq,
                           level, emptied[i], step.newest_us) < 0)
            return err_no_memory(err);
    *more |= step.more;
    return 0;
}

/* ---- by type ---- */

/* Of all rules: which one counts for a type depends on the others. */
static uint64_t sum_rules(const struct settings *settings)
{
    uint64_t sum = 1;

    for (uint32_t i = 0; i < settings->handlers_count; i++) {
        const struct handler_rule *rule = &settings->handlers[i];

        sum = hash_bytes64(rule->type.data, rule->type.len,
                           sum ^ (uint64_t)rule->retention_logs_ms);
    }
    return sum;
}

/* Where a note by the key says what type it is and whether it has ended, that counts. */
static void believe_note(const struct batch *batch, struct log_run *run)
{
    if (!batch->store->log_mac || !run->last.noted || run->last.note.mac[0] == '\0')
        return;
    run->type = run->last.note.task_type;
    run->under_way &= run->last.note.closed.len == 0;
}

/* Keeps the ranges whose lines go. The last line of a run under way stays: its chain continues
 * there. */
static int choose_ranges(struct step *step, int64_t window_ms, struct err *err)
{
    struct batch *batch = step->batch;
    struct log_run *runs = arena_alloc_array(&batch->arena, LOOK_LINES, sizeof *runs);
    uint32_t chosen = 0;

    if (!runs)
        return err_no_memory(err);
    TRY(batch->store->verbs->logs->runs_find(batch->store, step->ranges, step->count, &batch->arena,
                                             runs, err));
    for (uint32_t i = 0; i < step->count; i++) {
        struct log_range range = step->ranges[i];
        const struct handler_rule *rule;

        if (runs[i].last.seq == 0 || !log_may_go(batch->store, &runs[i].last, INT64_MAX))
            continue;
        believe_note(batch, &runs[i]);
        rule = runs[i].type.data ? settings_handler(batch->engine->settings,
                                                    queue_name_plain(runs[i].type))
                                 : NULL;
        if (!rule || rule->retention_logs_ms != window_ms)
            continue;
        if (runs[i].under_way && range.to_seq >= runs[i].last.seq)
            range.to_seq = runs[i].last.seq - 1;
        if (range.to_seq > 0)
            step->ranges[chosen++] = range;
    }
    step->count = chosen;
    return 0;
}

/* Those whose lines are not what was written stay. */
static int keep_changed(struct step *step, struct err *err)
{
    bool fits[LOOK_LINES];
    uint32_t chosen = 0;

    TRY(log_chains_fit(step->batch->store, step->ranges, step->count, INT64_MAX,
                       "retention leaves its lines", fits, err));
    for (uint32_t i = 0; i < step->count; i++)
        if (fits[i])
            step->ranges[chosen++] = step->ranges[i];
    step->count = chosen;
    return 0;
}

/* Lines of one execution that several records name are one range. */
static void merge_ranges(struct step *step)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < step->count; i++) {
        const struct log_range *range = &step->ranges[i];
        uint32_t at = 0;

        while (at < kept && !uuid_eq(&step->ranges[at].execution_id, &range->execution_id))
            at++;
        if (at == kept)
            step->ranges[kept++] = *range;
        else if (range->to_seq > step->ranges[at].to_seq)
            step->ranges[at].to_seq = range->to_seq;
    }
    step->count = kept;
}

static int run_types(struct batch *batch, uint64_t sum, int64_t window_ms, bool *more,
                     struct err *err)
{
    struct step step = {.batch = batch, .before_us = before(batch, window_ms)};
    int64_t removed;

    snprintf(step.name, sizeof step.name, "log_types_%lld", (long long)window_ms);
    TRY(place_load(&step, sum, err));
    TRY(find_ranges(&step, err));
    if (step.count > 0 && choose_ranges(&step, window_ms, err) < 0)
        return -(int)err->code;
    *more |= step.more;
    merge_ranges(&step);
    TRY(keep_changed(&step, err));
    if (step.count == 0)
        return 0;
    batch->store->cuts->window_ms = window_ms;
    return batch->store->verbs->logs->lines_cut(batch->store, step.ranges, step.count, &removed,
                                                err);
}

/* Is it the first rule with its window? All of one window are one walk. */
static bool is_first(const struct settings *settings, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (settings->handlers[i].retention_logs_ms == settings->handlers[at].retention_logs_ms)
            return false;
    return settings->handlers[at].retention_logs_ms > 0;
}

int log_retention_run(struct batch *batch, bool *more, struct err *err)
{
    const struct settings *settings = batch->engine->settings;
    uint64_t sum = sum_rules(settings);

    if (!batch->store->verbs->logs)
        return 0;
    for (uint32_t i = 0; i < settings->handlers_count; i++)
        if (is_first(settings, i) &&
            run_types(batch, sum, settings->handlers[i].retention_logs_ms, more, err) < 0)
            return -(int)err->code;
    for (int level = 0; level < SEVERITY_COUNT; level++) {
        int64_t window_ms = settings->retention.log_levels_ms[level];

        if (window_ms > 0 &&
            run_level(batch, (enum log_severity)level, window_ms, more, err) < 0)
            return -(int)err->code;
    }
    FAULT_POINT("retention.logs");
    return 0;
}
