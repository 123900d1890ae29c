/* Conformance: keys, hashes and outside ids that only one task may have (A2, A3). */
#include "conformance.h"

struct case_row {
    enum unique_kind kind;
    const char *namespace_name;
    const char *type;
    const char *value;
    bool taken; /* after the first row was reserved */
};

static void a_unique_is_held_per_kind_namespace_type_and_value(void **state)
{
    static const struct case_row rows[] = {
        {UNIQUE_KEY, "default", "t", "v", true},    {UNIQUE_KEY, "default", "t", "w", false},
        {UNIQUE_KEY, "default", "u", "v", false},   {UNIQUE_KEY, "other", "t", "v", false},
        {UNIQUE_HASH, "default", "t", "v", false},  {UNIQUE_EXTERNAL, "default", "", "v", false},
        {UNIQUE_EXTERNAL, "other", "", "v", false}, {UNIQUE_KEY, "default", "t", "V", false},
        {UNIQUE_KEY, "default", "t", "v ", false},  {UNIQUE_KEY, "default", "t", "", false}};
    struct conformance *c = *state;
    struct unique first = {UNIQUE_KEY, STR("default"), STR("t"), STR("v"), 0, {{0}}};
    struct task *owner, *other;

    store_begin(c);
    owner = given_ready(c, "q", "t", 1);
    other = given_ready(c, "q", "t", 2);
    first.task_key = owner->key;
    OK(c, c->verbs->uniques_reserve(c->store, &first, 1, &c->err));
    assert_true(uuid_is_nil(&first.owner));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct unique wish = {rows[i].kind, str_of(rows[i].namespace_name), str_of(rows[i].type),
                              str_of(rows[i].value), other->key, {{0}}};

        OK(c, c->verbs->uniques_look(c->store, &wish, &c->err)); /* which reserves nothing */
        assert_int_equal(wish.task_key, rows[i].taken ? owner->key : 0);
        wish.task_key = other->key;
        OK(c, c->verbs->uniques_reserve(c->store, &wish, 1, &c->err));
        assert_int_equal(!uuid_is_nil(&wish.owner), rows[i].taken);
        if (rows[i].taken) {
            then_id(wish.owner, owner->id);
            assert_int_equal(wish.task_key, owner->key);
        }
    }
    store_commit(c);
}

static struct task *given_unique_task(struct conformance *c)
{
    struct task *task = given_task(c, "q", "t");
    struct unique uniques[] = {
        {UNIQUE_KEY, STR("default"), STR("t"), STR("k"), task->key, {{0}}},
        {UNIQUE_HASH, STR("default"), STR("t"), STR("h"), task->key, {{0}}},
        {UNIQUE_EXTERNAL, STR("default"), STR(""), STR("x"), task->key, {{0}}}};

    task->spec.idempotency_key = STR("k");
    task->spec.input_hash = STR("h");
    task->spec.external_id = STR("x");
    insert_task(c, task);
    OK(c, c->verbs->uniques_reserve(c->store, uniques, 3, &c->err));
    for (int i = 0; i < 3; i++)
        assert_true(uuid_is_nil(&uniques[i].owner));
    return task;
}

static void then_owned(struct conformance *c, bool key, bool hash, bool external)
{
    struct unique uniques[] = {{UNIQUE_KEY, STR("default"), STR("t"), STR("k"), 999, {{0}}},
                               {UNIQUE_HASH, STR("default"), STR("t"), STR("h"), 999, {{0}}},
                               {UNIQUE_EXTERNAL, STR("default"), STR(""), STR("x"), 999, {{0}}}};
    bool wanted[] = {key, hash, external};

    store_begin(c);
    OK(c, c->verbs->uniques_reserve(c->store, uniques, 3, &c->err));
    for (int i = 0; i < 3; i++)
        assert_int_equal(!uuid_is_nil(&uniques[i].owner), wanted[i]);
    store_rollback(c);
}

static void dropping_frees_key_and_hash_and_the_outside_id_on_request(void **state)
{
    struct conformance *c = *state;
    struct task *task;

    store_begin(c);
    task = given_unique_task(c);
    store_commit(c);
    then_owned(c, true, true, true);
    store_begin(c);
    OK(c, c->verbs->uniques_drop(c->store, task, false, &c->err));
    store_commit(c);
    then_owned(c, false, false, true);
    store_begin(c);
    OK(c, c->verbs->uniques_drop(c->store, task, true, &c->err));
    store_commit(c);
    then_owned(c, false, false, false);
}

static void dropping_leaves_what_another_task_owns(void **state)
{
    struct conformance *c = *state;
    struct task *task, *stranger;

    store_begin(c);
    task = given_unique_task(c);
    stranger = given_task(c, "q", "t");
    stranger->spec.idempotency_key = STR("k"); /* the same value, but it never got it */
    stranger->spec.external_id = STR("x");
    insert_task(c, stranger);
    OK(c, c->verbs->uniques_drop(c->store, stranger, true, &c->err));
    store_commit(c);
    then_owned(c, true, true, true);
    assert_non_null(read_task(c, &task->id));
}

/* Two wishes of one batch: the first one gets it. */
static void a_batch_of_wishes_is_decided_in_order(void **state)
{
    struct conformance *c = *state;
    struct task *first, *second;
    struct unique wishes[2];

    store_begin(c);
    first = given_ready(c, "q", "t", 1);
    second = given_ready(c, "q", "t", 2);
    for (int i = 0; i < 2; i++)
        wishes[i] = (struct unique){UNIQUE_HASH, STR("default"), STR("t"), STR("same"),
                                    i ? second->key : first->key, {{0}}};
    OK(c, c->verbs->uniques_reserve(c->store, wishes, 2, &c->err));
    assert_true(uuid_is_nil(&wishes[0].owner));
    then_id(wishes[1].owner, first->id);
    store_commit(c);
}

const struct conformance_test conformance_uniques_tests[] = {
    CONFORMANCE_TEST(a_unique_is_held_per_kind_namespace_type_and_value),
    CONFORMANCE_TEST(dropping_frees_key_and_hash_and_the_outside_id_on_request),
    CONFORMANCE_TEST(dropping_leaves_what_another_task_owns),
    CONFORMANCE_TEST(a_batch_of_wishes_is_decided_in_order), CONFORMANCE_END};
