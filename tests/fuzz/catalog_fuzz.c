/* libFuzzer: the first byte chooses what the rest is the object of (category, job, schedule,
 * preview, pattern, dependency), a zone and how long ago it was planned. What is refused has a field
 * and a sentence; what is accepted keeps its bounds, is shown as JSON, and, if it can be planned,
 * fires in order, says so in words, and has a bounded number of instants due. No zone is read from
 * a file: plans are made in UTC and then moved to a zone of ours. */
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "calendar_zones.h"
#include "core/bounds.h"
#include "core/plan/catalog_parse.h"
#include "core/plan/catalog_render.h"
#include "core/plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_BYTES_MAX 4096
#define NOW_US INT64_C(1800000000000000)
#define STEPS 20

struct subject {
    unsigned int choice;
    struct str object;
    struct arena arena;
    struct buf out;
    struct err err;
};

static void check_refusal(const struct err *err)
{
    ASSERT(err->code == ERR_INVALID || err->code == ERR_TOO_LARGE);
    ASSERT(err->text[0] && str_is_utf8(str_of(err->text)) && str_is_utf8(str_of(err->field)));
}

static void check_shown(struct subject *subject)
{
    ASSERT(!subject->out.failed && json_check(buf_view(&subject->out), NULL, NULL) == 0);
}

/* ---- plans ---- */

static void check_due(const struct plan *plan, const struct misfire_rule *rule, int64_t first_us,
                      int64_t now_us, struct subject *subject)
{
    struct due due;
    int64_t late_count = 0;

    ASSERT(plan_due(plan, rule, first_us, now_us, &subject->arena, &due, NULL) == 0);
    ASSERT(due.count <= PLAN_INSTANTS_MAX);
    for (uint32_t i = 0; i < due.count; i++) {
        ASSERT(due.instants[i] >= first_us && due.instants[i] <= now_us);
        ASSERT(i == 0 || due.instants[i] > due.instants[i - 1]);
        late_count += due.instants[i] < now_us - rule->grace_ms * CLOCK_MS_US;
    }
    ASSERT(late_count <= (rule->misfire == MISFIRE_SKIP        ? 0
                          : rule->misfire == MISFIRE_FIRE_ONCE ? 1
                                                               : rule->cap));
    ASSERT(!due.next_us || !due.count || due.next_us > due.instants[due.count - 1]);
    ASSERT(!due.next_us || due.count == PLAN_INSTANTS_MAX || due.next_us > now_us);
}

static void check_plan(const struct plan *plan, const struct misfire_rule *rule,
                       struct subject *subject)
{
    int64_t at_us = subject->choice & 64 ? INT64_MIN : NOW_US;
    int64_t first_us = 0, next_us, last_us;

    for (int i = 0; i < STEPS && plan_next(plan, at_us, &next_us); i++) {
        ASSERT(next_us > at_us && next_us <= CLOCK_MAX_US);
        ASSERT(!plan->ends_at_us || next_us <= plan->ends_at_us);
        ASSERT(!plan->starts_at_us || next_us >= plan->starts_at_us);
        ASSERT(plan_last(plan, at_us, next_us, &last_us) && last_us == next_us);
        first_us = first_us ? first_us : next_us;
        at_us = next_us;
    }
    if (first_us)
        check_due(plan, rule, first_us, subject->choice & 128 ? at_us : NOW_US, subject);
    buf_reset(&subject->out);
    plan_explain(plan, &subject->out);
    ASSERT(!subject->out.failed && subject->out.len > 0);
}

static void try_schedule(const struct schedule *schedule, struct zones *zones,
                         struct subject *subject)
{
    struct misfire_rule rule = {schedule->misfire, schedule->misfire_grace_ms,
                                schedule->misfire_cap};
    const struct zone *utc;
    struct zone *zone;
    struct plan plan;

    if (plan_schedule(schedule, zones, NOW_US, &plan, &subject->err) < 0) {
        check_refusal(&subject->err);
        return;
    }
    zone = calendar_zone(subject->choice / 8);
    utc = plan.zone;
    plan.zone = zone;
    check_plan(&plan, &rule, subject);
    plan.zone = utc;
    plan_release(&plan, zones);
    zone_free(zone);
}

/* ---- what there is ---- */

static int run_category(struct subject *subject)
{
    struct category category;
    struct category_rules rules;
    uint64_t set;

    category_init(&category);
    if (category_read(subject->object, &subject->arena, &category, &set, &subject->err) < 0 ||
        category_check(&category, &subject->err) < 0)
        return -1;
    ASSERT(category.name.len > 0 && category.name.len <= BOUND_NAME_BYTES);
    ASSERT(category.default_timeout_s >= 1);
    ASSERT(category_rules_read(category.configuration, &subject->arena, &rules, NULL) == 0);
    ASSERT(rules.batch_size >= 0 && rules.batch_size <= BOUND_CLAIM_MAX);
    render_category(&subject->out, &category);
    return 0;
}

static int run_job(struct subject *subject)
{
    struct job job, copy;
    struct str category;
    uint64_t set;

    job_init(&job);
    job_init(&copy);
    if (job_read(subject->object, &subject->arena, &job, &category, &set, &subject->err) < 0 ||
        job_check(&job, &subject->err) < 0)
        return -1;
    ASSERT(!category.data || set & JOB_FIELD_CATEGORY);
    job_take(&copy, &job, set);
    ASSERT(str_eq(copy.name, job.name) && copy.has_priority == job.has_priority);
    render_job(&subject->out, &copy, NULL);
    return 0;
}

static int run_schedule(struct subject *subject, struct zones *zones, bool is_preview)
{
    struct preview_wish wish = {0};
    struct schedule schedule, copy;
    uint64_t set;

    schedule_init(&schedule);
    schedule_init(&copy);
    if (schedule_read(subject->object, &subject->arena, &schedule, &set,
                      is_preview ? &wish : NULL, &subject->err) < 0 ||
        schedule_check(&schedule, &subject->err) < 0)
        return -1;
    ASSERT(!is_preview || (wish.count >= 1 && wish.count <= BOUND_PREVIEW && wish.from_us >= 0));
    schedule_take(&copy, &schedule, set);
    ASSERT(schedule_check(&copy, NULL) == 0);
    render_schedule(&subject->out, &copy);
    check_shown(subject);
    copy.timezone = STR("UTC");
    try_schedule(&copy, zones, subject);
    buf_reset(&subject->out);
    buf_text(&subject->out, "null");
    return 0;
}

static int run_recurring(struct subject *subject, struct zones *zones)
{
    struct misfire_rule rule = {MISFIRE_FIRE_ALL, 60000, 50};
    struct recurring recurring;
    struct plan plan;
    uint64_t set;

    recurring_init(&recurring);
    if (recurring_read(subject->object, &subject->arena, &recurring, &set, &subject->err) < 0 ||
        recurring_check(&recurring, &subject->err) < 0)
        return -1;
    render_recurring(&subject->out, &recurring);
    check_shown(subject);
    if (plan_recurring(&recurring, zones, NOW_US, &subject->arena, &plan, &subject->err) < 0)
        return -1;
    check_plan(&plan, &rule, subject);
    plan_release(&plan, zones);
    buf_reset(&subject->out);
    buf_text(&subject->out, "null");
    return 0;
}

static int run_dependency(struct subject *subject)
{
    struct job_dependency dependency;
    uint64_t set;

    job_dependency_init(&dependency);
    if (job_dependency_parse(subject->object, &subject->arena, &dependency, &set,
                             &subject->err) < 0 ||
        job_dependency_check(&dependency, &subject->err) < 0)
        return -1;
    ASSERT(dependency.within_ms >= 0 && dependency.within_ms <= BOUND_DELAY_MS);
    render_job_dependency(&subject->out, &dependency);
    return 0;
}

static int run(struct subject *subject, struct zones *zones)
{
    switch (subject->choice % 8) {
    case 0:
        return run_category(subject);
    case 1:
        return run_job(subject);
    case 2:
        return run_schedule(subject, zones, true);
    case 3:
        return run_dependency(subject);
    case 4:
    case 5:
        return run_recurring(subject, zones);
    default:
        return run_schedule(subject, zones, false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct subject subject = {.arena = ARENA_INIT(16u << 20), .out = BUF_INIT(1u << 20)};
    struct zones *zones;

    if (size < 1 || size > TEXT_BYTES_MAX ||
        json_check(str_span((const char *)data + 1, size - 1), &subject.object, NULL) < 0)
        return 0;
    subject.choice = data[0];
    ASSERT(zones_new("/nonexistent", &zones, NULL) == 0);
    if (run(&subject, zones) < 0)
        check_refusal(&subject.err);
    else
        check_shown(&subject);
    zones_free(zones);
    buf_deinit(&subject.out);
    arena_deinit(&subject.arena);
    return 0;
}
