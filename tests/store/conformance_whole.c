/* Conformance: the store as a whole: verify, backup, migrations (A11, F-A15). */
#include "conformance.h"

static void an_empty_store_is_healthy(void **state)
{
    assert_int_equal(verify_findings(*state), 0);
}

static void verify_finds_damage(void **state)
{
    struct conformance *c = *state;

    store_begin(c);
    given_ready(c, "q", "t", 1);
    given_ready(c, "q", "t", 2);
    store_commit(c);
    assert_int_equal(verify_findings(c), 0);
    store_close(c);
    c->kind->harm(c->where);
    store_open_again(c);
    assert_true(verify_findings(c) > 0);
}

/* Looking without owning the store, beside its owner. */
static void a_store_is_verified_while_it_is_in_use(void **state)
{
    struct conformance *c = *state;
    struct store_options options = {.allow_network_fs = true, .no_lock = true};
    struct conformance look = {.kind = c->kind};

    store_begin(c);
    given_ready(c, "q", "t", 1);
    store_commit(c);
    OK(c, store_open(&look.store, str_of(c->where), &options, &c->err));
    look.verbs = look.store->verbs;
    assert_int_equal(verify_findings(&look), 0);
    look.verbs->close(look.store);
    store_begin(c);
    given_ready(c, "q", "t", 2);
    store_commit(c);
    assert_int_equal(ready_in(c, "q"), 2);
}

static struct str epoch_of(struct conformance *c)
{
    struct str epoch;

    OK(c, c->verbs->info_get(c->store, "store_epoch", &c->arena, &epoch, &c->err));
    return epoch;
}

static void note_progress(void *ctx, int64_t done, int64_t total)
{
    int64_t *last = ctx;

    assert_true(done >= *last && done <= total);
    *last = done;
}

/* F-D14: the copy is a store of its own; leases of the original mean nothing to it. */
static void a_backup_opens_with_all_tasks_and_a_new_epoch(void **state)
{
    struct conformance *c = *state;
    struct conformance copy = {.kind = c->kind};
    struct task *task;
    struct str epoch;
    int64_t progress = 0;

    if (!c->kind->backup_is_store)
        skip();
    copy.kind->make(copy.where, sizeof copy.where);
    store_begin(c);
    for (int i = 0; i < 500; i++)
        task = given_ready(c, "q", "t", i);
    OK(c, c->verbs->info_put(c->store, "store_epoch", STR("1"), &c->err));
    store_commit(c);
    epoch = epoch_of(c);
    store_begin(c);
    given_ready(c, "q", "t", 999); /* not committed: not in the copy */
    OK(c, c->verbs->backup(c->reader, copy.where, note_progress, &progress, &c->err));
    store_commit(c);
    assert_true(progress > 0);
    assert_true(c->verbs->backup(c->reader, copy.where, NULL, NULL, &c->err) < 0);
    assert_int_equal(c->err.code, ERR_CONFLICT); /* never over a file that is there */
    store_open_again(&copy);
    assert_int_equal(ready_in(&copy, "q"), 500);
    assert_non_null(read_task(&copy, &task->id));
    assert_int_equal(verify_findings(&copy), 0);
    assert_false(str_same(epoch_of(&copy), epoch));
    then_str(epoch_of(c), epoch);
    store_close(&copy);
    copy.kind->drop(copy.where);
    arena_deinit(&copy.arena);
}

static uint32_t migrations(struct conformance *c, uint32_t *applied)
{
    struct migration_row *rows;
    uint32_t count;

    OK(c, store_migrations(str_of(c->where), &c->arena, &rows, &count, &c->err));
    *applied = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_false(rows[i].differs);
        assert_true(rows[i].id.len > 0 && rows[i].checksum.len > 0);
        *applied += rows[i].executed_at_us != 0;
    }
    return count;
}

/* A11: opening migrates up and notes it; opening again changes nothing. */
static void opening_applies_all_migrations_once(void **state)
{
    struct conformance *c = *state;
    uint32_t applied, done;
    uint32_t known = migrations(c, &applied);

    assert_true(known > 0);
    assert_int_equal(applied, known);
    store_reopen(c);
    assert_int_equal(migrations(c, &applied), known);
    store_close(c);
    for (int i = 0; i < 2; i++) {
        OK(c, store_migrate_up(str_of(c->where), 0, &done, &c->err));
        assert_int_equal(done, 0);
    }
    store_open_again(c);
}

/* A11, F-A15: down to nothing and up again, step by step; between, the store refuses to be used. */
static void migrations_go_down_and_up_again(void **state)
{
    struct conformance *c = *state;
    struct store_options options = {.allow_network_fs = true, .no_migrate = true};
    uint32_t applied, done, known = migrations(c, &applied);
    struct task *task;

    store_close(c);
    for (uint32_t left = known; left > 0; left--) {
        OK(c, store_migrate_down(str_of(c->where), 1, &done, &c->err));
        assert_int_equal(done, 1);
        migrations(c, &applied);
        assert_int_equal(applied, left - 1);
        assert_true(store_open(&c->store, str_of(c->where), &options, &c->err) < 0);
        c->store = NULL;
        assert_true(strlen(c->err.text) > 0);
    }
    OK(c, store_migrate_down(str_of(c->where), 1, &done, &c->err));
    assert_int_equal(done, 0);
    for (uint32_t i = 0; i < known; i++) {
        OK(c, store_migrate_up(str_of(c->where), 1, &done, &c->err));
        assert_int_equal(done, 1);
    }
    OK(c, store_open(&c->store, str_of(c->where), &options, &c->err));
    c->store->verbs->close(c->store);
    store_open_again(c);
    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    store_commit(c);
    assert_non_null(read_task(c, &task->id));
    assert_int_equal(verify_findings(c), 0);
}

static void a_store_that_is_open_is_not_migrated_by_others(void **state)
{
    struct conformance *c = *state;
    uint32_t done;

    assert_int_equal(store_migrate_down(str_of(c->where), 1, &done, &c->err), -ERR_UNAVAILABLE);
    assert_int_equal(done, 0);
    assert_int_equal(verify_findings(c), 0);
}

/* A11: the same by hand, as text. */
static void the_migrations_are_given_as_text(void **state)
{
    struct conformance *c = *state;
    struct buf text = BUF_INIT(1024 * 1024);

    OK(c, store_migration_sql(str_of(c->where), &text, &c->err));
    assert_true(text.len > 1000);
    assert_non_null(memmem(text.data, text.len, "schema_migrations", 17));
    buf_deinit(&text);
}

const struct conformance_test conformance_whole_tests[] = {
    CONFORMANCE_TEST(an_empty_store_is_healthy),
    CONFORMANCE_TEST(verify_finds_damage),
    CONFORMANCE_TEST(a_store_is_verified_while_it_is_in_use),
    CONFORMANCE_TEST(a_backup_opens_with_all_tasks_and_a_new_epoch),
    CONFORMANCE_TEST(opening_applies_all_migrations_once),
    CONFORMANCE_TEST(migrations_go_down_and_up_again),
    CONFORMANCE_TEST(a_store_that_is_open_is_not_migrated_by_others),
    CONFORMANCE_TEST(the_migrations_are_given_as_text), CONFORMANCE_END};
