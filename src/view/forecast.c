/* The earliest instants of many owners: a heap whose top is the latest line kept, so that a better
 * one takes its place. An owner that fires often is walked only until that is known, and gets one
 * line. Lines point to their owner, which lives as long as one of its lines. One thread at a
 * time. */
#include "view/forecast_int.h"

#include "base/clock.h"
#include "calendar/civil.h"

#define MINUTE_US (CIVIL_MINUTE_S * CLOCK_SECOND_US)
#define COUNT_STEPS_MAX 1000000 /* walked to count instants, of all owners; about 0.2 s */

struct category_state {
    struct uuid id;
    bool is_active;
    bool is_general;
    struct window_set windows;
    const struct zone *zone; /* its own or UTC; NULL = it has no windows */
};

struct forecast {
    struct forecast_wish wish;
    struct zones *zones;
    int64_t now_us;
    struct category_state *categories;
    uint32_t categories_count;
    struct forecast_owner *owners; /* limit + 1: one is being added */
    struct forecast_owner **free_owners;
    uint32_t free_count;
    struct forecast_item *items;   /* a heap until forecast_finish */
    uint32_t count;
    bool cut;             /* there were more than fit ... */
    int64_t cut_minute;   /* ... the minute of the latest line kept ... */
    int64_t cut_count;    /* ... and how many of it were left out */
    int64_t steps_left;   /* of COUNT_STEPS_MAX */
    uint32_t every_minute; /* folded ones that fire in every minute */
    uint32_t owners_count;
    uint32_t unplanned;
};

static int64_t minute_of(int64_t at_us)
{
    return civil_floor_div(at_us, MINUTE_US);
}

int forecast_new(const struct forecast_wish *wish, struct zones *zones, int64_t now_us,
                 struct forecast **forecast, struct err *err)
{
    struct forecast *made = calloc(1, sizeof *made);
    uint32_t limit;

    *forecast = made;
    if (!made)
        goto no_memory;
    made->wish = *wish;
    made->zones = zones;
    made->now_us = now_us;
    made->steps_left = COUNT_STEPS_MAX;
    made->cut_minute = INT64_MAX;
    if (!made->wish.limit)
        made->wish.limit = FORECAST_LIMIT;
    if (made->wish.limit > FORECAST_LIMIT_MAX)
        made->wish.limit = FORECAST_LIMIT_MAX;
    if (!made->wish.pile_up)
        made->wish.pile_up = FORECAST_PILE_UP;
    limit = made->wish.limit;
    made->items = calloc(limit, sizeof *made->items);
    made->owners = calloc(limit + 1, sizeof *made->owners);
    made->free_owners = calloc(limit + 1, sizeof *made->free_owners);
    if (!made->items || !made->owners || !made->free_owners)
        goto no_memory;
    for (uint32_t i = 0; i <= limit; i++)
        made->free_owners[made->free_count++] = &made->owners[limit - i];
    return 0;
no_memory:
    forecast_free(made);
    *forecast = NULL;
    return err_no_memory(err);
}

void forecast_free(struct forecast *forecast)
{
    if (!forecast)
        return;
    for (uint32_t i = 0; i < forecast->categories_count; i++)
        if (forecast->categories[i].zone)
            zones_put(forecast->zones, forecast->categories[i].zone);
    free(forecast->categories);
    free(forecast->owners);
    free(forecast->free_owners);
    free(forecast->items);
    free(forecast);
}

/* ---- categories ---- */

/* As for the queue: windows that cannot be read are off, and a zone that is gone is UTC. */
static void read_windows(struct forecast *forecast, const struct category_rules *rules,
                         struct category_state *state)
{
    struct str name = rules->timezone.data ? rules->timezone : STR("UTC");

    if (window_parse(rules->allowed_windows, &state->windows, NULL) < 0 ||
        (zones_get(forecast->zones, name, forecast->now_us, &state->zone, NULL) < 0 &&
         zones_get(forecast->zones, STR("UTC"), forecast->now_us, &state->zone, NULL) < 0))
        state->windows.count = 0;
}

static int read_category(struct forecast *forecast, const struct category *category,
                         struct category_state *state, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct category_rules rules;
    int rc = category_rules_read(category->configuration, &arena, &rules, err);

    state->id = category->id;
    state->is_active = category->is_active;
    state->is_general = str_is(category->name, CATEGORY_GENERAL);
    if (rc == 0 && rules.allowed_windows.data)
        read_windows(forecast, &rules, state);
    return rc;
}

int forecast_categories(struct forecast *forecast, const struct category *categories,
                        uint32_t count, struct err *err)
{
    ASSERT(!forecast->categories);
    forecast->categories = TRY_MEMORY(calloc(count ? count : 1, sizeof *forecast->categories));
    for (uint32_t i = 0; i < count; i++) {
        int rc = read_category(forecast, &categories[i], &forecast->categories[i], err);

        forecast->categories_count++;
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* NULL where the job's category is not among those given. */
static const struct category_state *category_of(const struct forecast *forecast,
                                                const struct job *job)
{
    bool general = uuid_is_nil(&job->category_id);

    for (uint32_t i = 0; i < forecast->categories_count; i++) {
        const struct category_state *state = &forecast->categories[i];

        if (general ? state->is_general : uuid_eq(&state->id, &job->category_id))
            return state;
    }
    return NULL;
}

/* ---- the lines that are kept ---- */

/* Time, then owner: the same lines whatever order owners come in. */
static bool is_later(const struct forecast_item *a, const struct forecast_item *b)
{
    if (a->at_us != b->at_us)
        return a->at_us > b->at_us;
    return memcmp(&a->owner->id, &b->owner->id, sizeof a->owner->id) > 0;
}

static void swap_items(struct forecast_item *a, struct forecast_item *b)
{
    struct forecast_item kept = *a;

    *a = *b;
    *b = kept;
}

static void sift_up(struct forecast_item *items, uint32_t at)
{
    while (at > 0 && is_later(&items[at], &items[(at - 1) / 2])) {
        swap_items(&items[at], &items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct forecast_item *items, uint32_t count, uint32_t at)
{
    for (;;) {
        uint32_t latest = at;

        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (is_later(&items[child], &items[latest]))
                latest = child;
        if (latest == at)
            return;
        swap_items(&items[at], &items[latest]);
        at = latest;
    }
}

static void release_owner(struct forecast *forecast, struct forecast_owner *owner)
{
    if (owner->lines == 0)
        forecast->free_owners[forecast->free_count++] = owner;
}

/* One that is left out; only those of the minute of the latest line kept are ever asked for, and
 * that minute only moves back. Lines for many are not counted by minutes. */
static void leave_out(struct forecast *forecast, const struct forecast_item *item)
{
    int64_t minute = minute_of(forecast->items[0].at_us);

    if (minute < forecast->cut_minute) {
        forecast->cut_minute = minute;
        forecast->cut_count = 0;
    }
    forecast->cut = true;
    if (item->count == 1 && minute_of(item->at_us) == minute)
        forecast->cut_count++;
}

static bool is_left_out(const struct forecast *forecast, const struct forecast_item *item)
{
    return forecast->count == forecast->wish.limit && !is_later(&forecast->items[0], item);
}

static void keep(struct forecast *forecast, const struct forecast_source *source,
                 struct forecast_owner *owner, struct forecast_item *item)
{
    struct forecast_item *items = forecast->items;
    struct forecast_owner *owner_gone;
    struct forecast_item gone;

    item->owner = owner;
    if (is_left_out(forecast, item)) {
        leave_out(forecast, item);
        return;
    }
    forecast_mark(source, item);
    owner->lines++;
    if (forecast->count < forecast->wish.limit) {
        items[forecast->count] = *item;
        sift_up(items, forecast->count++);
        return;
    }
    gone = items[0];
    items[0] = *item;
    sift_down(items, forecast->count, 0);
    leave_out(forecast, &gone);
    owner_gone = &forecast->owners[gone.owner - forecast->owners];
    owner_gone->lines--;
    if (owner_gone != owner)
        release_owner(forecast, owner_gone);
}

/* True when neither this one nor any after it is kept or counted. */
static bool is_beyond(struct forecast *forecast, int64_t at_us)
{
    if (at_us >= forecast->wish.to_us)
        return true;
    if (forecast->count < forecast->wish.limit ||
        minute_of(at_us) <= minute_of(forecast->items[0].at_us))
        return false;
    forecast->cut = true;
    return true;
}

/* ---- owners ---- */

/* Counts the instants after walked_us, as far as steps go; the rest is estimated. */
static void count_rest(struct forecast *forecast, const struct plan *plan,
                       struct forecast_item *item, int64_t walked_us)
{
    int64_t first_us = item->at_us;
    int64_t next_us = walked_us;

    if (plan->kind == PLAN_INTERVAL) {
        item->count = (item->last_us - first_us) / plan->every_us + 1;
        return;
    }
    while (next_us < item->last_us && forecast->steps_left > 0) {
        if (!plan_next(plan, next_us, &next_us))
            return;
        item->count++;
        forecast->steps_left--;
    }
    if (next_us >= item->last_us)
        return;
    item->about = true;
    item->count = (int64_t)((double)(item->count - 1) * (double)(item->last_us - first_us) /
                            (double)(next_us - first_us)) + 1;
}

/* A line for all of an owner's instants. */
static void fold(struct forecast *forecast, const struct forecast_source *source,
                 struct forecast_owner *owner, const int64_t *instants, uint32_t count)
{
    struct forecast_item item = {.owner = owner, .at_us = instants[0], .count = count,
                                 .every_us = INT64_MAX};
    int64_t longest_us = 0;

    for (uint32_t i = 1; i < count; i++) {
        int64_t pause_us = instants[i] - instants[i - 1];

        item.every_us = pause_us < item.every_us ? pause_us : item.every_us;
        longest_us = pause_us > longest_us ? pause_us : longest_us;
    }
    forecast->every_minute += longest_us <= MINUTE_US;
    item.last_us = instants[count - 1];
    if (!is_left_out(forecast, &item)) {
        plan_last(source->plan, item.last_us, forecast->wish.to_us - 1, &item.last_us);
        count_rest(forecast, source->plan, &item, instants[count - 1]);
    }
    keep(forecast, source, owner, &item);
}

/* first_us is the first instant that can fire. */
static void add_instants(struct forecast *forecast, const struct forecast_source *source,
                         struct forecast_owner *owner, int64_t first_us)
{
    int64_t instants[FORECAST_FOLD_OVER + 1];
    uint32_t count = 0;
    int64_t at_us;
    bool more = plan_next(source->plan, first_us - 1, &at_us) && !is_beyond(forecast, at_us);

    if (!more)
        return;
    if (forecast->wish.no_fold) {
        for (; more; more = plan_next(source->plan, at_us, &at_us) && !is_beyond(forecast, at_us))
            keep(forecast, source, owner, &(struct forecast_item){.at_us = at_us, .count = 1});
        return;
    }
    for (; more && count <= FORECAST_FOLD_OVER; more = plan_next(source->plan, at_us, &at_us) &&
                                                       at_us < forecast->wish.to_us)
        instants[count++] = at_us;
    if (count > FORECAST_FOLD_OVER) {
        fold(forecast, source, owner, instants, count);
        return;
    }
    for (uint32_t i = 0; i < count && !is_beyond(forecast, instants[i]); i++)
        keep(forecast, source, owner, &(struct forecast_item){.at_us = instants[i], .count = 1});
}

static void copy_name(char *to, size_t bytes, struct str name)
{
    snprintf(to, bytes, STR_FMT, STR_ARG(str_cut(name, bytes - 1)));
}

static struct forecast_owner *new_owner(struct forecast *forecast, const struct uuid *id,
                                        const struct job *job, const struct plan *plan)
{
    struct forecast_owner *owner = forecast->free_owners[--forecast->free_count];

    *owner = (struct forecast_owner){.id = *id, .job_id = job->id};
    copy_name(owner->job_name, sizeof owner->job_name, job->name);
    copy_name(owner->zone_name, sizeof owner->zone_name, str_of(zone_name(plan->zone)));
    return owner;
}

static int64_t begin_us(const struct forecast *forecast, int64_t next_us)
{
    return next_us > forecast->wish.from_us ? next_us : forecast->wish.from_us;
}

/* Whether anything of it can fire in the window; next_us of 0 = there is nothing any more. */
static bool can_fire(struct forecast *forecast, bool is_active, const struct job *job,
                     int64_t next_us, const struct category_state **category)
{
    *category = NULL;
    if (!is_active || !next_us || !job || !job->is_active || job->deleted_at_us)
        return false;
    *category = category_of(forecast, job);
    if (*category && !(*category)->is_active)
        return false;
    return !is_beyond(forecast, begin_us(forecast, next_us));
}

/* One owner with a fault does not hide all others. */
static int skip_unplanned(struct forecast *forecast, const struct err *why, struct err *err)
{
    if (why->code == ERR_MEMORY)
        return err_set(err, ERR_MEMORY, "%s", why->text);
    forecast->unplanned++;
    return 0;
}

/* One of the two. A schedule's windows are in its own zone, a pattern's in the category's. */
static int add(struct forecast *forecast, const struct schedule *schedule,
               const struct recurring *recurring, const struct job *job, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    int64_t next_us = schedule ? schedule->next_fire_at_us : recurring->next_generation_us;
    const struct category_state *category;
    struct forecast_owner *owner;
    struct forecast_source source;
    struct plan plan;
    struct err why = {0};

    forecast->owners_count++;
    if (!can_fire(forecast, schedule ? schedule->is_active : recurring->is_active, job, next_us,
                  &category))
        return 0;
    if ((schedule ? plan_schedule(schedule, forecast->zones, forecast->now_us, &plan, &why)
                  : plan_recurring(recurring, forecast->zones, forecast->now_us, &arena, &plan,
                                   &why)) < 0)
        return skip_unplanned(forecast, &why, err);
    owner = new_owner(forecast, schedule ? &schedule->id : &recurring->id, job, &plan);
    owner->is_recurring = !schedule;
    if (!schedule)
        copy_name(owner->name, sizeof owner->name, recurring->name);
    source = (struct forecast_source){&plan, category ? &category->windows : NULL,
                                      schedule ? plan.zone : category ? category->zone : NULL};
    add_instants(forecast, &source, owner, begin_us(forecast, next_us));
    release_owner(forecast, owner);
    plan_release(&plan, forecast->zones);
    return 0;
}

int forecast_add_schedule(struct forecast *forecast, const struct schedule *schedule,
                          const struct job *job, struct err *err)
{
    return add(forecast, schedule, NULL, job, err);
}

int forecast_add_recurring(struct forecast *forecast, const struct recurring *recurring,
                           const struct job *job, struct err *err)
{
    return add(forecast, NULL, recurring, job, err);
}

/* ---- the result ---- */

static void sort_items(struct forecast *forecast)
{
    for (uint32_t count = forecast->count; count > 1; count--) {
        swap_items(&forecast->items[0], &forecast->items[count - 1]);
        sift_down(forecast->items, count - 1, 0);
    }
}

/* Fires of each minute: lines of one instant, those left out of the last minute, and those that
 * fire in every minute. */
static void mark_pile_ups(struct forecast *forecast)
{
    struct forecast_item *items = forecast->items;
    uint32_t from = 0;

    while (from < forecast->count) {
        int64_t minute = minute_of(items[from].at_us);
        int64_t fires = forecast->every_minute;
        uint32_t until = from;

        for (; until < forecast->count && minute_of(items[until].at_us) == minute; until++)
            fires += items[until].count == 1;
        if (forecast->cut && minute == forecast->cut_minute)
            fires += forecast->cut_count;
        for (; from < until; from++)
            items[from].pile_up = fires >= forecast->wish.pile_up ? (uint32_t)fires : 0;
    }
}

void forecast_finish(struct forecast *forecast, struct forecast_result *result)
{
    sort_items(forecast);
    mark_pile_ups(forecast);
    for (uint32_t i = 0; i < forecast->count; i++)
        forecast->items[i].offset_s = zone_offset_at(
            forecast->wish.zone, civil_floor_div(forecast->items[i].at_us, CLOCK_SECOND_US));
    *result = (struct forecast_result){.items = forecast->items, .count = forecast->count,
                                       .cut = forecast->cut, .owners = forecast->owners_count,
                                       .unplanned = forecast->unplanned};
}
