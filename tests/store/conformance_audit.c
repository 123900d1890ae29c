/* Conformance: the audit trail (D18). Entries come back as they were written, in their order, by
 * every filter, and go from the oldest on. */
#include "conformance.h"

#include "store/audit_store.h"

#define AUDIT(c) ((c)->verbs->audit)

static struct audit_entry entry_of(struct conformance *c, int64_t seq, const char *action,
                                   const char *object)
{
    return (struct audit_entry){.seq = seq,
                                .id = uuid7_new(&c->ids, T0_US + seq),
                                .at_us = T0_US + seq,
                                .namespace_name = STR("default"),
                                .principal = STR("token:deploy"),
                                .token_id = STR("0123456789abcdef"),
                                .action = str_of(action),
                                .object_kind = STR("queue"),
                                .object_id = str_of(object),
                                .change = STR("{ \"after\": {\"b\": 1,  \"a\": 2} }"),
                                .outcome = STR(AUDIT_DONE),
                                .chain_hash = STR("00ff"),
                                .mac = STR("ff00")};
}

static void given_entries(struct conformance *c)
{
    struct audit_entry entries[] = {entry_of(c, 1, "queue.pause", "a"),
                                    entry_of(c, 2, "queue.resume", "a"),
                                    entry_of(c, 3, "queues.other", "b")};

    entries[2].namespace_name = STR("team");
    entries[2].token_id = entries[2].change = STR_NONE;
    entries[2].outcome = STR(AUDIT_REFUSED);
    store_begin(c);
    OK(c, AUDIT(c)->insert(c->store, entries, 3, &c->err));
    store_commit(c);
}

static uint32_t found(struct conformance *c, struct audit_filter filter,
                      struct audit_entry **entries)
{
    uint32_t count = 0;

    filter.limit = filter.limit ? filter.limit : 100;
    OK(c, AUDIT(c)->read(c->reader, &filter, &c->arena, entries, &count, &c->err));
    return count;
}

static void entries_come_back_as_they_were_written(void **state)
{
    struct conformance *c = *state;
    struct audit_entry *entries, *last;
    struct audit_entry wanted;

    given_entries(c);
    store_reopen(c);
    assert_int_equal(found(c, (struct audit_filter){.limit = 0}, &entries), 3);
    assert_int_equal(entries[0].seq, 3);
    assert_null(entries[0].token_id.data);
    assert_null(entries[0].change.data);
    wanted = entry_of(c, 1, "queue.pause", "a");
    assert_true(str_eq(entries[2].change, wanted.change));
    assert_true(str_eq(entries[2].principal, wanted.principal));
    assert_true(str_eq(entries[2].token_id, wanted.token_id));
    assert_true(str_eq(entries[2].chain_hash, wanted.chain_hash));
    assert_true(str_eq(entries[2].mac, wanted.mac));
    assert_int_equal(entries[2].at_us, wanted.at_us);
    assert_null(entries[2].address.data);
    store_begin(c);
    OK(c, AUDIT(c)->last(c->store, true, &c->arena, &last, &c->err));
    store_commit(c);
    assert_int_equal(last->seq, 3);
}

static void lists_are_filtered_and_paged(void **state)
{
    struct conformance *c = *state;
    struct audit_entry *entries;

    given_entries(c);
    assert_int_equal(found(c, (struct audit_filter){.action = STR("queue")}, &entries), 2);
    assert_int_equal(found(c, (struct audit_filter){.action = STR("queue.pause")}, &entries), 1);
    assert_int_equal(found(c, (struct audit_filter){.action = STR("%")}, &entries), 0);
    assert_int_equal(found(c, (struct audit_filter){.namespace_name = STR("team")}, &entries), 1);
    assert_int_equal(found(c, (struct audit_filter){.object_id = STR("a")}, &entries), 2);
    assert_int_equal(found(c, (struct audit_filter){.object_kind = STR("job")}, &entries), 0);
    assert_int_equal(found(c, (struct audit_filter){.principal = STR("token:deploy")}, &entries),
                     3);
    assert_int_equal(found(c, (struct audit_filter){.outcome = STR("refused")}, &entries), 1);
    assert_int_equal(found(c, (struct audit_filter){.after_us = T0_US + 2}, &entries), 2);
    assert_int_equal(found(c, (struct audit_filter){.before_us = T0_US + 2}, &entries), 1);
    assert_int_equal(found(c, (struct audit_filter){.limit = 2}, &entries), 2);
    assert_int_equal(found(c, (struct audit_filter){.before_id = entries[1].id}, &entries), 1);
    assert_int_equal(entries[0].seq, 1);
}

static void the_oldest_go_first(void **state)
{
    struct conformance *c = *state;
    struct audit_entry *entries;
    int64_t removed = 0;
    uint32_t count;

    given_entries(c);
    store_begin(c);
    OK(c, AUDIT(c)->behind(c->store, INT64_MIN, 2, &c->arena, &entries, &count, &c->err));
    assert_int_equal(count, 2);
    assert_int_equal(entries[0].seq, 1);
    OK(c, AUDIT(c)->remove(c->store, entries[1].seq, &removed, &c->err));
    store_commit(c);
    assert_int_equal(removed, 2);
    assert_int_equal(found(c, (struct audit_filter){.limit = 0}, &entries), 1);
    assert_int_equal(entries[0].seq, 3);
}

const struct conformance_test conformance_audit_tests[] = {
    CONFORMANCE_TEST(entries_come_back_as_they_were_written),
    CONFORMANCE_TEST(lists_are_filtered_and_paged),
    CONFORMANCE_TEST(the_oldest_go_first), CONFORMANCE_END};
