/* When schedules and recurring patterns fire, and what is due of them. Calendars count in seconds,
 * intervals and single times in microseconds; everything here is in microseconds. What was missed
 * is searched from its end, so that three days or three centuries of it cost the same (F-H10).
 * Pure but for the zones it borrows; any thread. */
#include "core/plan/plan.h"

#include "base/clock.h"
#include "base/hash.h"
#include "calendar/civil.h"

#define JITTER_SEED UINT64_C(0x6a09e667f3bcc908) /* any; all nodes must have the same */

static int64_t seconds_of(int64_t time_us)
{
    return civil_floor_div(time_us, CLOCK_SECOND_US);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- making it ready ---- */

static int check_time(int64_t time_us, const char *field, struct err *err)
{
    if (time_us < 0 || time_us > CLOCK_MAX_US)
        return err_set_field(err, ERR_INVALID, field,
                             "\"%s\" must lie between 1970 and the end of year 9999", field);
    return 0;
}

static int check_times(const struct schedule *schedule, struct err *err)
{
    TRY(check_time(schedule->starts_at_us, "starts_at", err));
    TRY(check_time(schedule->ends_at_us, "ends_at", err));
    TRY(check_time(schedule->scheduled_at_us, "scheduled_at", err));
    return check_time(schedule->created_at_us, "created_at", err);
}

static int plan_interval(const struct schedule *schedule, int64_t made_us, struct plan *plan,
                         struct err *err)
{
    if (schedule->interval_s < 1 || schedule->interval_s > PLAN_INTERVAL_MAX_S)
        return err_set_field(err, ERR_INVALID, "interval_seconds",
                             "\"interval_seconds\" must be a whole number from 1 to %lld",
                             (long long)PLAN_INTERVAL_MAX_S);
    plan->kind = PLAN_INTERVAL;
    plan->every_us = schedule->interval_s * CLOCK_SECOND_US;
    plan->anchor_us = plan->starts_at_us;
    if (!plan->anchor_us) { /* the first one is a whole interval away */
        plan->anchor_us = made_us;
        plan->starts_at_us = made_us + 1;
    }
    return 0;
}

static int plan_once(const struct schedule *schedule, int64_t made_us, struct plan *plan,
                     struct err *err)
{
    plan->kind = PLAN_ONCE;
    plan->anchor_us = schedule->scheduled_at_us;
    if (schedule->type == SCHEDULE_IMMEDIATE)
        plan->anchor_us = plan->starts_at_us ? plan->starts_at_us : made_us;
    else if (!plan->anchor_us)
        return err_set_field(err, ERR_INVALID, "scheduled_at",
                             "\"scheduled_at\" is missing; a schedule of type once needs it");
    return 0;
}

int plan_schedule(const struct schedule *schedule, struct zones *zones, int64_t now_us,
                  struct plan *plan, struct err *err)
{
    int64_t made_us = schedule->created_at_us ? schedule->created_at_us : now_us;
    int rc;

    memset(plan, 0, sizeof *plan);
    plan->dst = schedule->dst;
    plan->starts_at_us = schedule->starts_at_us;
    plan->ends_at_us = schedule->ends_at_us;
    rc = check_times(schedule, err);
    if (rc < 0)
        return rc;
    switch (schedule->type) {
    case SCHEDULE_CRON:
        plan->kind = PLAN_CRON;
        rc = cron_parse(schedule->cron_expression, &plan->cron, err);
        break;
    case SCHEDULE_INTERVAL:
        rc = plan_interval(schedule, made_us, plan, err);
        break;
    case SCHEDULE_ONCE:
    case SCHEDULE_IMMEDIATE:
    case SCHEDULE_TYPE_COUNT:
        rc = plan_once(schedule, made_us, plan, err);
        break;
    }
    if (rc == 0)
        rc = zones_get(zones, schedule->timezone.data ? schedule->timezone : STR("UTC"), now_us,
                       &plan->zone, err);
    return rc;
}

/* Names the member with the object it is in. */
static int inside_config(int rc, const struct err *why, struct err *err)
{
    char field[sizeof why->field + sizeof "pattern_config."];
    bool named = strncmp(why->field, "pattern_config", strlen("pattern_config")) == 0;

    if (rc == 0)
        return 0;
    snprintf(field, sizeof field, "%s%s", named || !why->field[0] ? "" : "pattern_config.",
             why->field);
    return err_set_field(err, why->code, field, "%s", why->text);
}

int plan_recurring(const struct recurring *recurring, struct zones *zones, int64_t now_us,
                   struct arena *arena, struct plan *plan, struct err *err)
{
    int64_t made_us = recurring->created_at_us ? recurring->created_at_us : now_us;
    struct err why = {0};
    struct str name;
    int rc;

    memset(plan, 0, sizeof *plan);
    plan->kind = PLAN_RECURRENCE;
    if (!recurring->pattern_config.data)
        return err_set_field(err, ERR_INVALID, "pattern_config",
                             "\"pattern_config\" is missing; it must be an object");
    rc = recurrence_zone_name(recurring->type, recurring->pattern_config, arena, &name, err);
    if (rc < 0)
        return rc;
    rc = zones_get(zones, name, now_us, &plan->zone, &why);
    if (rc == 0) {
        rc = recurrence_parse(recurring->type, recurring->pattern_config, plan->zone,
                              seconds_of(made_us + CLOCK_SECOND_US - 1), arena,
                              &plan->recurrence, &why);
        if (rc < 0)
            plan_release(plan, zones);
    }
    return inside_config(rc, &why, err);
}

void plan_release(struct plan *plan, struct zones *zones)
{
    if (plan->zone)
        zones_put(zones, plan->zone);
    plan->zone = NULL;
}

/* ---- instants ---- */

static bool interval_next(const struct plan *plan, int64_t after_us, int64_t *next_us)
{
    int64_t steps = civil_floor_div(after_us - plan->anchor_us, plan->every_us) + 1;

    *next_us = plan->anchor_us + later(steps, 0) * plan->every_us;
    return true;
}

static bool interval_last(const struct plan *plan, int64_t until_us, int64_t *last_us)
{
    int64_t steps = civil_floor_div(until_us - plan->anchor_us, plan->every_us);

    *last_us = plan->anchor_us + steps * plan->every_us;
    return steps >= 0;
}

bool plan_next(const struct plan *plan, int64_t after_us, int64_t *next_us)
{
    int64_t next_s;
    bool found = false;

    after_us = later(after_us, CLOCK_MIN_US);
    if (after_us >= CLOCK_MAX_US)
        return false;
    if (plan->starts_at_us)
        after_us = later(after_us, plan->starts_at_us - 1);
    switch (plan->kind) {
    case PLAN_CRON:
        found = cron_next(&plan->cron, plan->zone, plan->dst, seconds_of(after_us), &next_s);
        break;
    case PLAN_RECURRENCE:
        found = recurrence_next(&plan->recurrence, seconds_of(after_us), &next_s);
        break;
    case PLAN_INTERVAL:
        found = interval_next(plan, after_us, next_us);
        break;
    case PLAN_ONCE:
        *next_us = plan->anchor_us;
        found = plan->anchor_us > after_us;
        break;
    }
    if (found && (plan->kind == PLAN_CRON || plan->kind == PLAN_RECURRENCE))
        *next_us = next_s * CLOCK_SECOND_US;
    return found && *next_us <= (plan->ends_at_us ? plan->ends_at_us : CLOCK_MAX_US);
}

bool plan_last(const struct plan *plan, int64_t after_us, int64_t until_us, int64_t *last_us)
{
    int64_t last_s;
    bool found = false;

    after_us = later(after_us, CLOCK_MIN_US);
    if (plan->starts_at_us)
        after_us = later(after_us, plan->starts_at_us - 1);
    if (until_us > CLOCK_MAX_US)
        until_us = CLOCK_MAX_US;
    if (plan->ends_at_us && until_us > plan->ends_at_us)
        until_us = plan->ends_at_us;
    if (until_us <= after_us)
        return false;
    switch (plan->kind) {
    case PLAN_CRON:
        found = cron_last(&plan->cron, plan->zone, plan->dst, seconds_of(after_us),
                          seconds_of(until_us), &last_s);
        break;
    case PLAN_RECURRENCE:
        found = recurrence_last(&plan->recurrence, seconds_of(after_us), seconds_of(until_us),
                                &last_s);
        break;
    case PLAN_INTERVAL:
        return interval_last(plan, until_us, last_us) && *last_us > after_us;
    case PLAN_ONCE:
        *last_us = plan->anchor_us;
        return plan->anchor_us > after_us && plan->anchor_us <= until_us;
    }
    if (found)
        *last_us = last_s * CLOCK_SECOND_US;
    return found;
}

/* ---- what is due ---- */

/* How many of the late ones may fire. */
static uint32_t late_max(const struct misfire_rule *rule)
{
    switch (rule->misfire) {
    case MISFIRE_FIRE_ONCE:
        return 1;
    case MISFIRE_FIRE_ALL:
        if (rule->cap < 0)
            return 0;
        return rule->cap < PLAN_INSTANTS_MAX ? (uint32_t)rule->cap : PLAN_INSTANTS_MAX;
    case MISFIRE_SKIP:
    case MISFIRE_COUNT:
        break;
    }
    return 0;
}

/* Late ones are those from first_us on and before limit_us. The newest are found from the end and
 * put into the front of due->instants. */
static void take_late(const struct plan *plan, uint32_t max, int64_t first_us, int64_t limit_us,
                      struct due *due)
{
    int64_t at_us = limit_us;
    uint32_t count = 0;

    while (count < max && at_us > first_us) {
        if (!plan_last(plan, first_us, at_us - 1, &at_us))
            at_us = first_us;
        due->instants[max - ++count] = at_us;
    }
    memmove(due->instants, due->instants + (max - count), count * sizeof *due->instants);
    due->count = count;
    due->passed_over = at_us > first_us;
}

/* Those from at_us to now_us, one by one. */
static void take_on_time(const struct plan *plan, int64_t at_us, int64_t now_us, struct due *due)
{
    due->next_us = at_us;
    while (due->next_us && due->next_us <= now_us && due->count < PLAN_INSTANTS_MAX) {
        at_us = due->next_us;
        due->instants[due->count++] = at_us;
        if (!plan_next(plan, at_us, &due->next_us))
            due->next_us = 0;
    }
}

int plan_due(const struct plan *plan, const struct misfire_rule *rule, int64_t first_us,
             int64_t now_us, struct arena *arena, struct due *due, struct err *err)
{
    int64_t limit_us = now_us - rule->grace_ms * CLOCK_MS_US;
    int64_t next_us = first_us;
    int64_t instants[PLAN_INSTANTS_MAX];

    *due = (struct due){.next_us = first_us};
    if (first_us > now_us)
        return 0;
    due->instants = instants;
    if (first_us < limit_us) {
        take_late(plan, late_max(rule), first_us, limit_us, due);
        if (!plan_next(plan, limit_us - 1, &next_us))
            next_us = 0;
    }
    take_on_time(plan, next_us, now_us, due);
    due->instants = arena_copy(arena, instants, due->count * sizeof *instants);
    if (!due->instants && due->count)
        return err_set(err, ERR_MEMORY, "not enough memory for what is due; it is tried again");
    return 0;
}

int64_t plan_jitter_us(const struct uuid *owner_id, int64_t instant_us, int64_t jitter_ms)
{
    uint8_t bytes[sizeof owner_id->bytes + 8];

    if (jitter_ms <= 0)
        return 0;
    memcpy(bytes, owner_id->bytes, sizeof owner_id->bytes);
    for (int i = 0; i < 8; i++) /* the same on every machine */
        bytes[sizeof owner_id->bytes + (size_t)i] = (uint8_t)((uint64_t)instant_us >> (8 * i));
    return (int64_t)(hash_bytes64(bytes, sizeof bytes, JITTER_SEED) %
                     ((uint64_t)jitter_ms * CLOCK_MS_US + 1));
}
