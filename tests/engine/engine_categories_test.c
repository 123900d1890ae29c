/* Workers by category (D12): one that names categories gets only tasks of these, one that names none
 * gets any; a task without a category is in `general`. The names are looked up at each claim, so a
 * category may be made, renamed or removed while workers live. What leads back into the line (retry,
 * release, recovery, continue) leads to the same claims. */
#include "plan_fixture.h"

#define NAMES_MAX 8

/* type and categories may be NULL; categories end with NULL. */
static struct register_request *register_with(struct fixture *fx, const char *id,
                                              const char *type, const char *const *categories)
{
    struct str *names = arena_alloc_array(&fx->arena, NAMES_MAX, sizeof *names);
    struct register_request *request = arena_alloc(&fx->arena, sizeof *request);

    *request = (struct register_request){.base = {.kind = REQUEST_REGISTER, .arena = &fx->arena},
                                         .worker = {.id = str_of(id), .pool_size = 4},
                                         .queues = &names[0],
                                         .queues_count = 1,
                                         .types = type ? &names[1] : NULL,
                                         .types_count = type ? 1 : 0,
                                         .categories = &names[2]};
    names[0] = STR("default");
    names[1] = str_of(type ? type : "");
    for (; categories && categories[request->categories_count]; request->categories_count++)
        names[2 + request->categories_count] = str_of(categories[request->categories_count]);
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    return request;
}

#define CATEGORIES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *worker_for(struct fixture *fx, const char *id, const char *category)
{
    register_with(fx, id, NULL, category ? CATEGORIES(category) : NULL);
    return id;
}

static struct why *ask(struct fixture *fx, struct uuid id)
{
    struct why_request request = {.base = {.kind = REQUEST_WHY, .arena = &fx->arena},
                                  .task_id = id};
    struct why *why = arena_alloc(&fx->arena, sizeof *why);

    assert_int_equal(engine_call(fx->engine, &request.base), 0);
    assert_int_equal(why_decide(&request.facts, &fx->arena, why, &fx->err), 0);
    return why;
}

#define enqueue_in(fx, category) \
    enqueue((fx), "{\"type\":\"t\",\"queue\":\"default\",\"category\":\"" category "\"}")

static void make_media(struct fixture *fx) /* beside `reports` and the others of a new store */
{
    make_category(fx, "{\"name\":\"media\"}");
}

/* D12 */
static void a_worker_gets_tasks_of_its_categories_only(void **state)
{
    struct fixture *fx = *state;
    struct uuid reports, media, none;

    make_media(fx);
    reports = enqueue_in(fx, "reports");
    media = enqueue_in(fx, "media");
    none = enqueue(fx, "{\"type\":\"t\"}");
    worker_for(fx, "r", "reports");
    worker_for(fx, "m", "media");
    worker_for(fx, "g", "general");
    assert_true(uuid_eq(&claim_one(fx, "m")->task->id, &media));
    claim_none(fx, "m");
    assert_true(uuid_eq(&claim_one(fx, "g")->task->id, &none));
    claim_none(fx, "g");
    assert_true(uuid_eq(&claim_one(fx, "r")->task->id, &reports));
    claim_none(fx, "r");
    fx_verify(fx);
}

/* D12, E2: in the order of the line, whatever the category. */
static void a_worker_without_categories_gets_any(void **state)
{
    struct fixture *fx = *state;
    struct uuid ids[4];

    make_media(fx);
    ids[0] = enqueue_in(fx, "reports");
    ids[1] = enqueue(fx, "{\"type\":\"t\"}");
    ids[2] = enqueue_in(fx, "media");
    ids[3] = enqueue_in(fx, "reports");
    worker(fx, "any", "default");
    register_with(fx, "two", NULL, CATEGORIES("reports", "media"));
    for (int i = 0; i < 3; i++)
        assert_true(uuid_eq(&claim_one(fx, i == 2 ? "two" : "any")->task->id, &ids[i]));
    assert_true(uuid_eq(&claim_one(fx, "two")->task->id, &ids[3]));
    fx_verify(fx);
}

/* D12: the tasks of `general` itself, and those without a category, are the same. */
static void general_takes_what_has_no_category(void **state)
{
    struct fixture *fx = *state;
    struct uuid named = enqueue_in(fx, "general");
    struct uuid plain = enqueue(fx, "{\"type\":\"t\"}");

    worker_for(fx, "g", "general");
    assert_true(uuid_eq(&claim_one(fx, "g")->task->id, &named));
    assert_true(uuid_eq(&claim_one(fx, "g")->task->id, &plain));
}

/* D12, H3: the worker may be deployed before the category is made. */
static void a_category_may_be_made_while_its_worker_waits(void **state)
{
    struct fixture *fx = *state;
    struct register_request *request = register_with(fx, "r", NULL, CATEGORIES("later", "general"));
    struct workers_request list = {.base = {.kind = REQUEST_WORKERS, .arena = &fx->arena},
                                   .id = STR("r")};
    struct uuid id;

    assert_true(str_is(request->unknown_categories, "[\"later\"]"));
    assert_int_equal(engine_call(fx->engine, &list.base), 0);
    assert_true(str_is(list.workers[0].unknown_categories, "[\"later\"]"));
    make_category(fx, "{\"name\":\"later\"}");
    id = enqueue_in(fx, "later");
    assert_true(uuid_eq(&claim_one(fx, "r")->task->id, &id));
    assert_int_equal(engine_call(fx->engine, &list.base), 0);
    assert_null(list.workers[0].unknown_categories.data);
}

/* Claims that wait are served by what a category becomes. */
static void a_waiting_claim_follows_the_names_of_categories(void **state)
{
    struct fixture *fx = *state;
    struct uuid old = make_category(fx, "{\"name\":\"old\"}");
    struct uuid id = enqueue_in(fx, "old");
    struct claim_request *request;
    struct engine_call call;

    worker_for(fx, "n", "new");
    request = claim_prepare(&fx->arena, "n", 1, DEADLINE_MS);
    engine_call_start(fx->engine, &request->base, &call);
    for (int i = 0; i < 1000 && stats_of(fx).waiting_claims == 0; i++)
        ; /* a batch each; it waits from the end of its own on */
    change(fx, CATALOG_CATEGORY, old, "{\"name\":\"new\"}");
    assert_int_equal(engine_call_finish(&request->base, &call), 0);
    assert_int_equal(request->claimed_count, 1);
    assert_true(uuid_eq(&request->claimed[0].task->id, &id));
}

/* A task keeps the category it was made with, under whatever name that has. */
static void waiting_tasks_go_with_their_category_when_it_is_renamed(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = make_category(fx, "{\"name\":\"old\"}");
    struct uuid id = enqueue_in(fx, "old");

    worker_for(fx, "o", "old");
    worker_for(fx, "n", "new");
    change(fx, CATALOG_CATEGORY, category, "{\"name\":\"new\"}");
    claim_none(fx, "o");
    make_category(fx, "{\"name\":\"old\"}"); /* the same name, another category */
    claim_none(fx, "o");
    assert_true(uuid_eq(&claim_one(fx, "n")->task->id, &id));
}

static void tasks_of_a_deleted_category_wait_for_a_worker_of_all(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = make_category(fx, "{\"name\":\"old\"}");
    struct uuid id = enqueue_in(fx, "old");

    worker_for(fx, "o", "old");
    worker_for(fx, "g", "general");
    assert_int_equal(removed(fx, CATALOG_CATEGORY, category), ERR_NONE);
    claim_none(fx, "o");
    claim_none(fx, "g");
    assert_int_equal(ask(fx, id)->reason, WHY_NO_WORKER);
    assert_true(has_text(ask(fx, id)->text, "The category of the task was deleted"));
    worker(fx, "any", "default");
    assert_true(uuid_eq(&claim_one(fx, "any")->task->id, &id));
    fx_verify(fx);
}

/* D5, D12: a run has the category its job had when it was made. */
static void runs_keep_the_category_their_job_had(void **state)
{
    struct fixture *fx = *state;
    struct uuid job, first, second;

    make_media(fx);
    job = make_job(fx, "{\"name\":\"j\",\"task_type\":\"t\",\"queue\":\"default\","
                       "\"category\":\"reports\"}");
    first = run_now(fx, job);
    change(fx, CATALOG_JOB, job, "{\"category\":\"media\"}");
    second = run_now(fx, job);
    worker_for(fx, "r", "reports");
    worker_for(fx, "m", "media");
    assert_true(uuid_eq(&claim_one(fx, "m")->task->id, &second));
    claim_none(fx, "m");
    assert_true(uuid_eq(&claim_one(fx, "r")->task->id, &first));
}

static void why_names_the_category_no_live_worker_takes(void **state)
{
    struct fixture *fx = *state;
    struct uuid reports, none;

    make_media(fx);
    reports = enqueue_in(fx, "reports");
    none = enqueue(fx, "{\"type\":\"t\"}");
    worker_for(fx, "m", "media");
    assert_int_equal(ask(fx, reports)->reason, WHY_NO_WORKER);
    assert_true(has_text(ask(fx, reports)->text,
                         "No live worker takes category \"reports\" in queue \"default\""));
    assert_true(has_text(ask(fx, none)->text, "takes category \"general\" in queue"));
    worker_for(fx, "r", "reports");
    assert_int_equal(ask(fx, reports)->reason, WHY_READY);
    assert_int_equal(ask(fx, none)->reason, WHY_NO_WORKER);
    leave(fx, "r");
    assert_int_equal(ask(fx, reports)->reason, WHY_NO_WORKER);
}

/* Released, failed and retried, continued: back in the same lane. */
static void what_comes_back_goes_to_the_same_workers(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    struct uuid id;

    make_media(fx);
    id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"default\",\"category\":\"reports\","
                     "\"retry_delay_ms\":0,\"max_retries\":5}");
    worker_for(fx, "r", "reports");
    worker_for(fx, "m", "media");
    held = claim_one(fx, "r")->task;
    report_ok(fx, "r", held, .op = REPORT_RELEASE);
    claim_none(fx, "m");
    held = claim_one(fx, "r")->task;
    report_ok(fx, "r", held, .op = REPORT_FAIL, .error = STR("x"));
    claim_none(fx, "m");
    held = claim_one(fx, "r")->task;
    report_ok(fx, "r", held, .op = REPORT_CONTINUE);
    claim_none(fx, "m");
    claim_one(fx, "r");
    leave(fx, "r"); /* its task comes back, too */
    claim_none(fx, "m");
    worker_for(fx, "r2", "reports");
    assert_true(uuid_eq(&claim_one(fx, "r2")->task->id, &id));
    fx_verify(fx);
}

/* What `unclaimed` alerts and figures look at. */
static void the_figures_know_what_a_queue_takes(void **state)
{
    struct fixture *fx = *state;
    struct stats_request stats = {.base = {.kind = REQUEST_STATS, .arena = &fx->arena}};
    const struct queue_offer *offer;

    make_media(fx);
    enqueue_in(fx, "reports");
    register_with(fx, "r", "t", CATEGORIES("reports", "general", "unknown"));
    assert_int_equal(engine_call(fx->engine, &stats.base), 0);
    for (uint32_t i = 0; i < stats.queues_count; i++) {
        if (!str_is(stats.queues[i].row.rule.name, "default"))
            continue;
        assert_true(stats.queues[i].served);
        assert_false(stats.queues[i].takes_any);
        offer = stats.queues[i].offers;
        assert_int_equal(stats.queues[i].offers_count, 1);
        assert_int_equal(offer->types_count, 1);
        assert_int_equal(offer->categories_count, 3); /* reports, general and what has none */
        return;
    }
    fail_msg("the queue is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_worker_gets_tasks_of_its_categories_only),
        QUEUE_TEST(a_worker_without_categories_gets_any),
        QUEUE_TEST(general_takes_what_has_no_category),
        QUEUE_TEST(a_category_may_be_made_while_its_worker_waits),
        QUEUE_TEST(a_waiting_claim_follows_the_names_of_categories),
        QUEUE_TEST(waiting_tasks_go_with_their_category_when_it_is_renamed),
        QUEUE_TEST(tasks_of_a_deleted_category_wait_for_a_worker_of_all),
        QUEUE_TEST(runs_keep_the_category_their_job_had),
        QUEUE_TEST(why_names_the_category_no_live_worker_takes),
        QUEUE_TEST(what_comes_back_goes_to_the_same_workers),
        QUEUE_TEST(the_figures_know_what_a_queue_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
