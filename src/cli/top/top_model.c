/* Replies to rows. Whatever a reply lacks or has in another form is left out: a newer or older
 * server is still shown as far as it goes. Pure. */
#include "cli/top/top_model.h"

#include "base/clock.h"
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define RATE_WINDOW_MS 60000
#define HISTORY_POINTS_MAX 20000

/* ---- JSON ---- */

static struct str member(struct str object, const char *key)
{
    return object.data && json_kind(object) == JSON_OBJECT ? json_get(object, str_of(key))
                                                           : STR_NONE;
}

static struct str text(struct str object, const char *key, struct arena *arena)
{
    struct str value = member(object, key);

    return value.data && json_kind(value) == JSON_STRING ? json_string(value, arena) : STR_NONE;
}

static int64_t number(struct str object, const char *key)
{
    struct str value = member(object, key);
    int64_t found = 0;

    if (value.data && json_kind(value) == JSON_NUMBER)
        json_int64(value, &found);
    return found;
}

static bool is_true(struct str object, const char *key)
{
    struct str value = member(object, key);

    return value.data && json_kind(value) == JSON_TRUE;
}

/* 0 = it has none. */
static int64_t instant(struct str object, const char *key, struct arena *arena)
{
    int64_t at_us = 0;
    struct str value = text(object, key, arena);

    return value.data && clock_parse(value, &at_us) ? at_us : 0;
}

static bool begin_items(struct str reply, const char *key, struct json_iter *iter)
{
    struct str items = member(reply, key);

    if (!items.data || json_kind(items) != JSON_ARRAY)
        return false;
    json_begin(items, iter);
    return true;
}

/* ---- texts ---- */

struct str top_rate_text(int64_t milli, struct arena *arena)
{
    if (milli < 0)
        return STR("-");
    if (milli == 0)
        return STR("0");
    if (milli < 1000)
        return arena_format(arena, "0.%02lld", (long long)(milli / 10 ? milli / 10 : 1));
    if (milli < 100000)
        return arena_format(arena, "%lld.%lld", (long long)(milli / 1000),
                            (long long)(milli / 100 % 10));
    if (milli < 10000000)
        return arena_format(arena, "%lld", (long long)(milli / 1000));
    return arena_format(arena, "%lldk", (long long)(milli / 1000000));
}

static struct str ms_text(int64_t ms, struct arena *arena)
{
    char shown[CLOCK_SPAN_BYTES];

    if (ms < 0)
        return STR("-");
    clock_format_ms(ms, shown);
    return arena_str(arena, str_of(shown));
}

static struct str int_text(int64_t value, struct arena *arena)
{
    return arena_format(arena, "%lld", (long long)value);
}

static struct str ago_text(int64_t at_us, int64_t now_us, struct arena *arena)
{
    return at_us ? ms_text(now_us > at_us ? (now_us - at_us) / CLOCK_MS_US : 0, arena)
                 : STR("-");
}

/* ---- tasks that are known ---- */

static const struct top_known *known_task(const struct top_memory *memory, struct str id)
{
    for (uint32_t i = 0; i < TOP_KNOWN_MAX; i++)
        if (str_is(id, memory->tasks[i].id))
            return &memory->tasks[i];
    return NULL;
}

void top_model_learn(struct top_memory *memory, struct str id, struct str task,
                     struct arena *arena)
{
    struct top_known *known = &memory->tasks[memory->next++ % TOP_KNOWN_MAX];
    struct str type = text(task, "type", arena);
    struct str queue = text(task, "queue", arena);

    snprintf(known->id, sizeof known->id, STR_FMT, STR_ARG(id));
    snprintf(known->type, sizeof known->type, STR_FMT, STR_ARG(type.data ? type : STR("?")));
    snprintf(known->queue, sizeof known->queue, STR_FMT, STR_ARG(queue.data ? queue : STR("?")));
}

static struct str type_of(const struct top_memory *memory, struct str id)
{
    const struct top_known *known = known_task(memory, id);

    return known ? str_of(known->type) : STR("…");
}

static struct str queue_of(const struct top_memory *memory, struct str id)
{
    const struct top_known *known = known_task(memory, id);

    return known ? str_of(known->queue) : STR("…");
}

static void want(const struct top_memory *memory, struct str id, struct str *ids, uint32_t *count,
                 uint32_t max)
{
    if (!id.data || id.len >= TOP_ID_BYTES || *count >= max || known_task(memory, id))
        return;
    for (uint32_t i = 0; i < *count; i++)
        if (str_eq(ids[i], id))
            return;
    ids[(*count)++] = id;
}

uint32_t top_model_unknown(const struct top_replies *replies, const struct top_memory *memory,
                           struct arena *arena, struct str *ids, uint32_t max)
{
    const struct str lists[] = {replies->failed, replies->timeout};
    struct json_iter workers, tasks, items;
    struct str item, task;
    uint32_t count = 0;

    if (begin_items(replies->workers, "items", &workers))
        while (json_next_element(&workers, &item))
            if (begin_items(item, "current_tasks", &tasks))
                while (count < max && json_next_element(&tasks, &task))
                    want(memory, text(task, "task_id", arena), ids, &count, max);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (begin_items(lists[i], "items", &items))
            while (count < max && json_next_element(&items, &item))
                want(memory, text(item, "task_id", arena), ids, &count, max);
    return count;
}

/* ---- rows ---- */

struct filling {
    const struct top_replies *replies;
    struct top_memory *memory;
    struct arena *arena;
    struct top_snapshot *snapshot;
    int64_t now_us;
};

/* NULL: the pane is full, or memory is out. */
static struct top_row *new_row(struct filling *fill, enum top_pane pane)
{
    struct top_snapshot *snapshot = fill->snapshot;

    if (!snapshot->rows[pane])
        snapshot->rows[pane] = arena_alloc_array(fill->arena, TOP_ROWS_MAX,
                                                 sizeof *snapshot->rows[pane]);
    if (!snapshot->rows[pane] || snapshot->counts[pane] >= TOP_ROWS_MAX)
        return NULL;
    return &snapshot->rows[pane][snapshot->counts[pane]++];
}

static int by_order(const void *a, const void *b)
{
    const struct top_row *left = a;
    const struct top_row *right = b;

    if (left->order != right->order)
        return left->order < right->order ? -1 : 1;
    return str_compare(left->key, right->key);
}

static void sort(struct filling *fill, enum top_pane pane)
{
    if (fill->snapshot->counts[pane] > 1)
        qsort(fill->snapshot->rows[pane], fill->snapshot->counts[pane],
              sizeof(struct top_row), by_order);
}

/* ---- history ---- */

/* Sum of the last points that lie in the window, per second, in thousandths; -1 = there is none. */
static int64_t rate_of(struct str series, const char *key, int64_t step_ms)
{
    struct str points = member(series, key);
    int64_t window = step_ms > 0 && step_ms < RATE_WINDOW_MS ? RATE_WINDOW_MS / step_ms : 1;
    int64_t sum = 0, seen = 0, at = 0, value;
    struct json_iter iter;
    struct str point;
    int64_t count;

    if (!points.data || json_kind(points) != JSON_ARRAY || step_ms <= 0)
        return -1;
    count = (int64_t)json_count(points);
    json_begin(points, &iter);
    while (json_next_element(&iter, &point) && at < HISTORY_POINTS_MAX)
        if (at++ >= count - window && json_kind(point) == JSON_NUMBER &&
            json_int64(point, &value)) {
            sum += value;
            seen++;
        }
    return seen ? sum * 1000 * 1000 / (seen * step_ms) : -1;
}

/* The newest point of the window that is there; -1 = none. */
static int64_t latest_of(struct str series, const char *key, int64_t step_ms)
{
    struct str points = member(series, key);
    int64_t window = step_ms > 0 && step_ms < RATE_WINDOW_MS ? RATE_WINDOW_MS / step_ms : 1;
    int64_t found = -1, at = 0;
    struct json_iter iter;
    struct str point;
    int64_t count;

    if (!points.data || json_kind(points) != JSON_ARRAY)
        return -1;
    count = (int64_t)json_count(points);
    json_begin(points, &iter);
    while (json_next_element(&iter, &point) && at < HISTORY_POINTS_MAX) {
        double value;

        if (at++ >= count - window && json_kind(point) == JSON_NUMBER &&
            json_double(point, &value) && value >= 0 && value < 1e15)
            found = (int64_t)(value + 0.5);
    }
    return found;
}

static struct str series_of_queue(struct str history, struct str name, struct arena *arena)
{
    struct json_iter iter;
    struct str queue;

    if (begin_items(history, "queues", &iter))
        while (json_next_element(&iter, &queue))
            if (str_eq(text(queue, "queue", arena), name))
                return queue;
    return STR_NONE;
}

/* ---- panes ---- */

static int64_t waiting_of(struct str counts)
{
    return number(counts, "pending") + number(counts, "delayed") + number(counts, "blocked");
}

static int64_t running_of(struct str counts)
{
    return number(counts, "running") + number(counts, "claimed");
}

static void fill_queue(struct filling *fill, struct str queue)
{
    struct arena *arena = fill->arena;
    struct str counts = member(queue, "counts");
    struct str name = text(queue, "name", arena);
    struct str series = series_of_queue(fill->replies->history, name, arena);
    int64_t step_ms = number(fill->replies->history, "step_ms");
    int64_t failed = rate_of(series, "failed", step_ms);
    struct top_row *row = name.data ? new_row(fill, TOP_QUEUES) : NULL;

    if (!row)
        return;
    row->key = name;
    row->paused = is_true(queue, "paused");
    row->order = -(waiting_of(counts) + running_of(counts));
    row->colour = row->paused ? COLOUR_YELLOW : failed > 0 ? COLOUR_RED : COLOUR_NONE;
    row->cells[0] = name;
    row->cells[1] = row->paused ? STR("paused") : STR("");
    row->cells[2] = int_text(waiting_of(counts), arena);
    row->cells[3] = int_text(running_of(counts), arena);
    row->cells[4] = top_rate_text(rate_of(series, "completed", step_ms), arena);
    row->cells[5] = top_rate_text(failed, arena);
    row->cells[6] = ms_text(latest_of(series, "wait_p50_ms", step_ms), arena);
    row->cells[7] = ms_text(latest_of(series, "wait_p99_ms", step_ms), arena);
}

static void fill_running(struct filling *fill, struct str task, struct str worker)
{
    struct arena *arena = fill->arena;
    struct str id = text(task, "task_id", arena);
    int64_t started_us = instant(task, "started_at", arena);
    struct top_row *row = id.data ? new_row(fill, TOP_RUNNING) : NULL;

    if (!row)
        return;
    row->key = id;
    row->order = started_us ? started_us : INT64_MAX; /* only claimed: last */
    row->cells[0] = id;
    row->cells[1] = type_of(fill->memory, id);
    row->cells[2] = queue_of(fill->memory, id);
    row->cells[3] = started_us ? ago_text(started_us, fill->now_us, arena) : STR("claimed");
    row->cells[4] = worker;
}

static struct str what_it_runs(struct filling *fill, struct str tasks)
{
    BUF_AUTO struct buf line = BUF_INIT(1024);
    struct json_iter iter;
    struct str task, copy;
    uint32_t count = 0;

    if (!tasks.data || json_kind(tasks) != JSON_ARRAY)
        return STR("");
    json_begin(tasks, &iter);
    while (json_next_element(&iter, &task) && count++ < 4) {
        struct str type = type_of(fill->memory, text(task, "task_id", fill->arena));

        buf_format(&line, "%s" STR_FMT, line.len ? ", " : "", STR_ARG(type));
    }
    if (json_count(tasks) > 4)
        buf_format(&line, " and %zu more", json_count(tasks) - 4);
    copy = line.failed ? STR("") : arena_str(fill->arena, buf_view(&line));
    return copy;
}

static void fill_worker(struct filling *fill, struct str worker)
{
    struct arena *arena = fill->arena;
    struct str id = text(worker, "id", arena);
    struct str status = text(worker, "status", arena);
    struct str tasks = member(worker, "current_tasks");
    size_t held = tasks.data && json_kind(tasks) == JSON_ARRAY ? json_count(tasks) : 0;
    struct top_row *row = id.data ? new_row(fill, TOP_WORKERS) : NULL;
    struct json_iter iter;
    struct str task;

    if (is_true(worker, "is_leader"))
        fill->snapshot->leader = id;
    if (row) {
        row->key = id;
        row->order = -(int64_t)held;
        row->colour = str_is(status, "offline") || str_is(status, "error") ? COLOUR_RED
                                                                             : COLOUR_NONE;
        row->cells[0] = id;
        row->cells[1] = is_true(worker, "is_leader") ? STR("leader") : status;
        row->cells[2] = arena_format(arena, "%zu/%lld", held,
                                     (long long)number(worker, "pool_size"));
        row->cells[3] = ago_text(instant(worker, "last_heartbeat", arena), fill->now_us, arena);
        row->cells[4] = what_it_runs(fill, tasks);
    }
    if (begin_items(worker, "current_tasks", &iter))
        while (json_next_element(&iter, &task))
            fill_running(fill, task, id);
}

static void fill_failure(struct filling *fill, struct str execution)
{
    struct arena *arena = fill->arena;
    struct str id = text(execution, "task_id", arena);
    int64_t at_us = instant(execution, "failed_at", arena);
    struct str error = member(execution, "error_data");
    struct str message = text(error, "message", arena);
    struct top_row *row = id.data ? new_row(fill, TOP_FAILURES) : NULL;

    if (!row)
        return;
    row->key = id;
    row->order = -at_us;
    row->colour = COLOUR_RED;
    row->cells[0] = ago_text(at_us, fill->now_us, arena);
    row->cells[1] = id;
    row->cells[2] = type_of(fill->memory, id);
    row->cells[3] = int_text(number(execution, "attempt_number"), arena);
    row->cells[4] = message.data ? message : text(error, "reason", arena);
    if (!row->cells[4].data)
        row->cells[4] = text(execution, "status", arena);
}

static void fill_next(struct filling *fill, struct str item)
{
    struct arena *arena = fill->arena;
    int64_t at_us = instant(item, "at", arena);
    struct str job = text(item, "job", arena);
    struct str name = text(item, "name", arena);
    struct str schedule = text(item, "schedule_id", arena);
    struct top_row *row = at_us ? new_row(fill, TOP_NEXT) : NULL;

    if (!row)
        return;
    row->recurring = !schedule.data;
    row->key = schedule.data ? schedule : text(item, "recurring_job_id", arena);
    row->order = at_us;
    row->cells[0] = at_us > fill->now_us
                        ? ms_text((at_us - fill->now_us) / CLOCK_MS_US, arena) : STR("now");
    row->cells[1] = text(item, "local", arena);
    row->cells[2] = job.data ? job : name;
    row->cells[3] = text(item, "timezone", arena);
    row->cells[4] = number(item, "count") > 1
                        ? arena_format(arena, "%lld times", (long long)number(item, "count"))
                        : STR("");
}

static void fill_alert(struct filling *fill, struct str alert)
{
    struct arena *arena = fill->arena;
    struct str severity = text(alert, "severity", arena);
    bool critical = str_is(severity, "critical");
    struct top_row *row = new_row(fill, TOP_ALERTS);

    if (!row)
        return;
    fill->snapshot->critical |= critical;
    row->key = text(alert, "queue", arena);
    row->order = critical ? 0 : 1;
    row->colour = critical ? COLOUR_RED : COLOUR_YELLOW;
    row->cells[0] = severity;
    row->cells[1] = text(alert, "text", arena);
    row->cells[2] = row->key.data ? row->key : STR("");
}

static void fill_list(struct filling *fill, struct str reply, const char *key, enum top_pane pane,
                      void (*fill_one)(struct filling *fill, struct str item))
{
    struct json_iter iter;
    struct str item;

    if (begin_items(reply, key, &iter))
        while (json_next_element(&iter, &item))
            fill_one(fill, item);
    sort(fill, pane);
}

/* ---- the whole ---- */

static int64_t rate_since(int64_t now, int64_t before, int64_t us)
{
    return us > 0 && now >= before ? (now - before) * 1000 * CLOCK_SECOND_US / us : -1;
}

static void fill_head(struct filling *fill)
{
    struct top_snapshot *snapshot = fill->snapshot;
    struct top_memory *memory = fill->memory;
    struct str stats = fill->replies->stats;
    struct str totals = member(stats, "totals");
    struct str total = member(fill->replies->history, "total");
    int64_t step_ms = number(fill->replies->history, "step_ms");
    int64_t us = memory->at_us ? fill->now_us - memory->at_us : 0;

    snapshot->version = text(stats, "version", fill->arena);
    snapshot->store = text(stats, "store", fill->arena);
    snapshot->uptime_ms = number(stats, "uptime_ms");
    snapshot->workers = number(stats, "workers");
    snapshot->claims = number(stats, "waiting_claims");
    snapshot->waiting = waiting_of(member(stats, "counts"));
    snapshot->running = running_of(member(stats, "counts"));
    snapshot->done_milli = rate_of(total, "completed", step_ms);
    snapshot->failed_milli = rate_of(total, "failed", step_ms);
    snapshot->enqueued_milli = rate_of(total, "enqueued", step_ms);
    if (snapshot->done_milli < 0) { /* no history: the difference to the frame before */
        snapshot->done_milli = rate_since(number(totals, "completed"), memory->completed, us);
        snapshot->failed_milli = rate_since(number(totals, "failed"), memory->failed, us);
        snapshot->enqueued_milli = rate_since(number(totals, "enqueued"), memory->enqueued, us);
    }
    if (!stats.data)
        return;
    memory->at_us = fill->now_us;
    memory->completed = number(totals, "completed");
    memory->failed = number(totals, "failed");
    memory->enqueued = number(totals, "enqueued");
}

int top_model_fill(const struct top_replies *replies, struct top_memory *memory, int64_t now_us,
                   struct arena *arena, struct top_snapshot *snapshot)
{
    struct filling fill = {.replies = replies, .memory = memory, .arena = arena,
                           .snapshot = snapshot, .now_us = now_us};

    *snapshot = (struct top_snapshot){.known = true};
    fill_head(&fill);
    fill_list(&fill, replies->stats, "queues", TOP_QUEUES, fill_queue);
    fill_list(&fill, replies->workers, "items", TOP_WORKERS, fill_worker);
    sort(&fill, TOP_RUNNING);
    fill_list(&fill, replies->failed, "items", TOP_FAILURES, fill_failure);
    fill_list(&fill, replies->timeout, "items", TOP_FAILURES, fill_failure);
    fill_list(&fill, replies->forecast, "items", TOP_NEXT, fill_next);
    fill_list(&fill, replies->stats, "alerts", TOP_ALERTS, fill_alert);
    return arena->failed ? -1 : 0;
}
