/* Conformance: two who change the catalog of one store at once (D4, F-F1, F-H11). Only for stores
 * that others write to, too; one that has a single owner has no rival. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>

#define TURNS 50
#define QUESTIONS 100 /* enough that a rival who does not wait is done meanwhile */

/* A second node, on a thread of its own. */
struct rival {
    struct store *store;
    struct fire fires[3];
    struct uuid ids[4];
    uint32_t dependencies; /* as many as it saw */
    atomic_bool began;
    atomic_bool ended;
    struct arena arena;
    struct err err;
    int rc;
    pthread_t thread;
};

static void rival_start(struct conformance *c, struct rival *rival, void *(*run)(void *ctx))
{
    struct store_options options = {.allow_network_fs = true};

    OK(c, store_open(&rival->store, str_of(c->where), &options, &c->err));
    assert_int_equal(pthread_create(&rival->thread, NULL, run, rival), 0);
}

static void rival_end(struct conformance *c, struct rival *rival)
{
    pthread_join(rival->thread, NULL);
    rival->store->verbs->close(rival->store);
    arena_deinit(&rival->arena);
    c->err = rival->err;
    OK(c, rival->rc);
}

static void *fire_too(void *ctx)
{
    struct rival *rival = ctx;
    const struct store_verbs *verbs = rival->store->verbs;

    rival->rc = verbs->begin(rival->store, &rival->err);
    if (rival->rc == 0)
        rival->rc = verbs->catalog->fires_insert(rival->store, false, rival->fires, 3,
                                                 &rival->err);
    if (rival->rc == 0)
        rival->rc = verbs->commit(rival->store, &rival->err);
    return NULL;
}

/* V4, D4, F-F1: two leaders that believe in themselves. */
static void d4_of_two_that_fire_at_once_one_takes_each_instant(void **state)
{
    struct conformance *c = *state;
    struct rival rival = {.rc = -1};
    struct fire fires[3];

    if (!c->store->shared)
        skip();
    for (int i = 0; i < 3; i++) {
        fires[i] = (struct fire){.owner_id = {{1}}, .instant_us = T0_US + i, .task_id = {{2}}};
        rival.fires[i] = fires[i];
        rival.fires[i].instant_us += 1;
    }
    store_begin(c);
    OK(c, CATALOG(c)->fires_insert(c->store, false, fires, 3, &c->err));
    rival_start(c, &rival, fire_too);
    store_commit(c);
    rival_end(c, &rival);
    assert_false(fires[0].taken || fires[1].taken || fires[2].taken);
    assert_true(rival.fires[0].taken && rival.fires[1].taken);
    assert_false(rival.fires[2].taken);
}

static void *look_too(void *ctx)
{
    struct rival *rival = ctx;
    const struct store_verbs *verbs = rival->store->verbs;
    struct job_dependency *dependencies;

    rival->rc = verbs->begin(rival->store, &rival->err);
    rival->began = true;
    if (rival->rc == 0)
        rival->rc = verbs->catalog->lock(rival->store, &rival->err);
    if (rival->rc == 0)
        rival->rc = verbs->catalog->dependencies_load(rival->store, &rival->arena, &dependencies,
                                                      &rival->dependencies, &rival->err);
    rival->ended = true;
    if (rival->rc == 0)
        rival->rc = verbs->commit(rival->store, &rival->err);
    return NULL;
}

/* F-H11: the second of two edits that would close a cycle together sees the first. */
static void f_h11_who_locks_the_catalog_sees_what_the_one_before_changed(void **state)
{
    struct conformance *c = *state;
    struct rival rival = {.rc = -1};
    struct job *a, *b;
    int64_t before = 0;
    int64_t after = 0;

    if (!c->store->shared)
        skip();
    OK(c, CATALOG(c)->version(c->store, &before, &c->err));
    store_begin(c);
    OK(c, CATALOG(c)->lock(c->store, &c->err));
    a = given_job(c, "a");
    b = given_job(c, "b");
    given_dependency(c, a, b, DEPENDENCY_SUCCESS);
    rival_start(c, &rival, look_too);
    while (!rival.began)
        load_job(c, &a->id);
    for (int i = 0; i < QUESTIONS; i++)
        assert_non_null(load_job(c, &a->id));
    assert_false(rival.ended);
    store_commit(c);
    rival_end(c, &rival);
    assert_int_equal(rival.dependencies, 1);
    OK(c, CATALOG(c)->version(c->store, &after, &c->err));
    assert_int_equal(after, before + 2);
}

/* Holds the jobs in the order given, and writes to each. */
static int hold_and_write(struct store *store, const struct uuid *ids, uint32_t count,
                          struct arena *arena, struct err *err)
{
    const struct store_verbs *verbs = store->verbs;
    struct job *jobs[4];
    int rc = verbs->begin(store, err);

    if (rc == 0)
        rc = verbs->catalog->jobs_load(store, ids, count, true, arena, jobs, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        jobs[i]->last_ended_at_us += 1 + (jobs[i]->last_ended_at_us == 0 ? T0_US : 0);
        rc = verbs->catalog->job_ended(store, jobs[i], err);
    }
    return rc == 0 ? verbs->commit(store, err) : rc;
}

static void *hold_too(void *ctx)
{
    struct rival *rival = ctx;

    rival->rc = 0;
    for (int i = 0; rival->rc == 0 && i < TURNS; i++)
        rival->rc = hold_and_write(rival->store, rival->ids, 4, &rival->arena, &rival->err);
    return NULL;
}

/* D4: jobs are taken in the order of their ids, whatever order they are asked for in: there is no
 * deadlock, and no end of a run is lost. */
static void d4_two_that_hold_the_same_jobs_neither_block_nor_lose_anything(void **state)
{
    struct conformance *c = *state;
    struct rival rival = {.rc = -1};
    struct uuid ids[4];

    if (!c->store->shared)
        skip();
    store_begin(c);
    for (int i = 0; i < 4; i++) {
        ids[i] = given_job(c, "a")->id;
        rival.ids[3 - i] = ids[i];
    }
    store_commit(c);
    rival_start(c, &rival, hold_too);
    for (int i = 0; i < TURNS; i++)
        OK(c, hold_and_write(c->store, ids, 4, &c->arena, &c->err));
    rival_end(c, &rival);
    for (int i = 0; i < 4; i++)
        assert_int_equal(load_job(c, &ids[i])->last_ended_at_us, T0_US + 2 * TURNS);
}

const struct conformance_test conformance_rivals_tests[] = {
    CONFORMANCE_TEST(d4_of_two_that_fire_at_once_one_takes_each_instant),
    CONFORMANCE_TEST(f_h11_who_locks_the_catalog_sees_what_the_one_before_changed),
    CONFORMANCE_TEST(d4_two_that_hold_the_same_jobs_neither_block_nor_lose_anything),
    CONFORMANCE_END,
};
