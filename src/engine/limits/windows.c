/* Tasks of categories that may run only at certain times of the day, or only so many per claim
 * (D5). Code that makes a task ready asks here first, and so does every claim for what it got: a
 * window may close while a task waits in the line. Tasks without a category never come here. */
#include "engine/limits/windows.h"

#include "base/fault.h"
#include "calendar/zones.h"
#include "core/bounds.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/limits/limits.h"
#include "engine/plans/categories.h"
#include "store/catalog_store.h"

#define WALK_PAGE 2000 /* delayed tasks looked at in one commit */
#define LOCKED_DELAY_US (60 * CLOCK_SECOND_US)
#define CLOSED_FOR_US (24 * 3600 * CLOCK_SECOND_US) /* then one that never opens is looked at */

/* The clock its windows go by: that of its schedule, else of its category. */
static int find_zone(struct batch *batch, const struct task *task,
                     const struct category_state *category, const struct zone **zone,
                     struct err *err)
{
    struct zones *zones = batch->engine->config.zones;
    struct schedule_known *schedule = NULL;
    struct str name = category->rules.timezone;
    struct err why = {0};

    if (!uuid_is_nil(&task->spec.origin.schedule_id))
        TRY(schedules_know(batch, &task->spec.origin.schedule_id, &schedule, err));
    if (schedule && schedule->timezone.data)
        name = schedule->timezone;
    if (!name.data)
        name = STR("UTC");
    if (zones_get(zones, name, batch->wall_us, zone, &why) == 0)
        return 0;
    LOG(batch->engine->log, LOG_WARN, "category.zone_missing", KC("reason", why.text));
    return zones_get(zones, STR("UTC"), batch->wall_us, zone, err);
}

int windows_look(struct batch *batch, const struct task *task, int64_t *opens_us, struct err *err)
{
    struct category_state *category;
    const struct zone *zone;
    int64_t now_s = batch->wall_us / CLOCK_SECOND_US;
    int64_t open_s;

    *opens_us = 0;
    TRY(categories_get(batch, &task->spec.category_id, &category, err));
    if (!category || category->windows.count == 0)
        return 0;
    TRY(find_zone(batch, task, category, &zone, err));
    if (!window_is_open(&category->windows, zone, now_s))
        *opens_us = window_next_open(&category->windows, zone, now_s, &open_s)
                        ? open_s * CLOCK_SECOND_US : batch->wall_us + CLOSED_FOR_US;
    zones_put(batch->engine->config.zones, zone);
    return 0;
}

static void delay_until(struct task *task, int64_t opens_us)
{
    task->scheduled_at_us = opens_us;
    task->by_wall = true;
}

int windows_hold(struct batch *batch, struct task *task, enum status *to, const char **state,
                 struct err *err)
{
    int64_t opens_us;

    TRY(windows_look(batch, task, &opens_us, err));
    if (opens_us == 0)
        return 0;
    delay_until(task, opens_us);
    *to = STATUS_DELAYED;
    *state = WINDOWS_STATE;
    return 0;
}

static struct str opening(struct batch *batch, int64_t opens_us)
{
    char text[CLOCK_TEXT_BYTES];

    clock_format(opens_us, text);
    return batch_text(batch, "{\"reason\":\"window_closed\",\"opens_at\":\"%s\"}", text);
}

int windows_wait_on(struct batch *batch, struct task *task, bool *waits, struct err *err)
{
    int64_t opens_us;

    *waits = false;
    if (uuid_is_nil(&task->spec.category_id))
        return 0;
    TRY(windows_look(batch, task, &opens_us, err));
    *waits = opens_us != 0;
    if (!*waits)
        return 0;
    delay_until(task, opens_us);
    task->state = STR(WINDOWS_STATE);
    TRY(batch_touch(batch, task, err));
    return batch_event(batch, task, ACTOR_SCHEDULER, opening(batch, opens_us), err);
}

/* ---- windows that were changed ---- */

void windows_begin(struct engine *engine)
{
    engine->windows.known = engine->windows.walk = false;
}

static uint64_t add_text(uint64_t sum, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) /* FNV-1a: no more than another value for other windows */
        sum = (sum ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return sum;
}

/* Of all categories, in whatever order. */
static uint64_t sum_windows(const struct catalog_cache *cache)
{
    const struct category_state *state;
    uint32_t cursor = 0;
    uint64_t sum = 0;

    while ((state = map_next(&cache->ids, &cursor)) != NULL) {
        uint64_t one = UINT64_C(14695981039346656037);

        if (state->windows.count == 0)
            continue;
        one = add_text(one, (const char *)state->row.id.bytes, sizeof state->row.id.bytes);
        one = add_text(one, state->row.configuration.data, state->row.configuration.len);
        sum += one;
    }
    return sum;
}

/* It may run now, or sooner than planned; a later start is decided when it is due. */
static int look_again(struct batch *batch, const struct uuid *id, struct err *err)
{
    struct task *task;
    int64_t opens_us;

    TRY(batch_task(batch, id, &task, err));
    if (!task || task->status != STATUS_DELAYED)
        return 0;
    TRY(windows_look(batch, task, &opens_us, err));
    if (opens_us == 0)
        return batch_move(batch, task, STATUS_PENDING, MOVE_PROMOTE, "Queued", ACTOR_SCHEDULER,
                          STR("{\"reason\":\"window_changed\"}"), err);
    if (opens_us >= task->scheduled_at_us)
        return 0;
    delay_until(task, opens_us);
    batch->news.delayed = true; /* it may be the next one that is due */
    TRY(batch_touch(batch, task, err));
    return batch_event(batch, task, ACTOR_SCHEDULER, opening(batch, opens_us), err);
}

static int walk(struct batch *batch, struct arena *page, struct err *err)
{
    struct engine *engine = batch->engine;
    struct delayed *found;
    uint32_t count, acted = 0, i;
    struct uuid *ids;

    TRY(batch_flush(batch, err));
    TRY(batch->store->verbs->catalog->delayed_scan(
        batch->store, STR(WINDOWS_STATE), engine->windows.after.key ? &engine->windows.after : NULL,
        WALK_PAGE, page, &found, &count, err));
    ids = TRY_MEMORY(arena_alloc_array(page, BOUND_CHORE_ROWS, sizeof *ids));
    for (i = 0; i < count && acted < BOUND_CHORE_ROWS; i++) {
        if (found[i].has_state)
            ids[acted++] = found[i].id;
        engine->windows.after = found[i];
    }
    engine->windows.walk = i < count || count == WALK_PAGE;
    TRY(batch_prefetch(batch, ids, acted, err));
    for (i = 0; i < acted; i++)
        TRY(look_again(batch, &ids[i], err));
    return 0;
}

int windows_follow(struct batch *batch, bool *more, struct err *err)
{
    struct engine *engine = batch->engine;
    ARENA_AUTO struct arena page = ARENA_INIT(0);
    uint64_t sum;
    int rc;

    TRY(catalog_look(batch, err));
    sum = sum_windows(&engine->plans.catalog);
    if (!engine->windows.known || sum != engine->windows.seen) {
        engine->windows.known = engine->windows.walk = true;
        engine->windows.seen = sum;
        engine->windows.after = (struct delayed){.key = 0};
    }
    if (!engine->windows.walk)
        return 0;
    rc = walk(batch, &page, err);
    *more = engine->windows.walk;
    return rc;
}

/* ---- claims ---- */

static bool has_enough(const struct claim_request *request, const struct category_state *category)
{
    int64_t count = 0;

    if (category->rules.batch_size <= 0)
        return false;
    for (uint32_t i = 0; i < request->claimed_count; i++)
        count += uuid_eq(&request->claimed[i].task->spec.category_id, &category->row.id);
    return count >= category->rules.batch_size;
}

int windows_admit(struct batch *batch, const struct claim_request *request, struct task *task,
                  enum claim_move *move, struct err *err)
{
    struct category_state *category;
    int64_t opens_us;

    *move = CLAIM_TAKE;
    TRY(windows_look(batch, task, &opens_us, err));
    TRY(categories_get(batch, &task->spec.category_id, &category, err));
    if (opens_us == 0 && !(category && has_enough(request, category)))
        return 0;
    *move = opens_us ? CLAIM_PUT_OFF : CLAIM_GIVE_BACK;
    limits_take_back(batch, task);
    TRY(batch_adopt(batch, task, err));
    if (*move == CLAIM_GIVE_BACK)
        return batch_owe(batch, task, err); /* back into the line, where it was */
    delay_until(task, opens_us);
    FAULT_POINT("claim.put_off");
    return batch_move(batch, task, STATUS_DELAYED, MOVE_POSTPONE, WINDOWS_STATE, ACTOR_SCHEDULER,
                      opening(batch, opens_us), err);
}

int windows_lock(struct batch *batch, struct task *task, enum claim_move *move, struct err *err)
{
    *move = CLAIM_PUT_OFF;
    limits_take_back(batch, task);
    TRY(batch_adopt(batch, task, err));
    delay_until(task, batch->wall_us + LOCKED_DELAY_US);
    return batch_move(batch, task, STATUS_DELAYED, MOVE_POSTPONE, LOCKED_STATE, ACTOR_SCHEDULER,
                      STR_NONE, err);
}

bool windows_count(struct batch *batch, const struct task *task)
{
    struct category_state *category;
    struct err err = {0};

    return categories_get(batch, &task->spec.category_id, &category, &err) < 0 ||
           (category && category->rules.batch_size > 0);
}
