/* Chains computed again before lines are removed: the last line and its note may be as they were
 * while lines before them are not, and the record of the removal would be the last word about
 * them. Writer's thread. */
#include "store/log_store.h"

struct chain_check {
    struct log_head at; /* the last line that was good */
    bool bad;
};

struct checking {
    struct store *store;
    struct map by_id;
    bool failed; /* out of memory */
};

static struct str id_key(const struct uuid *id)
{
    return str_span((const char *)id->bytes, sizeof id->bytes);
}

/* Where it was cut, if the key says so. A note of an earlier cut does not fit what is left. */
static void take_cut(void *ctx, const struct log_note *note)
{
    struct checking *checking = ctx;
    struct chain_check *check = map_get(&checking->by_id, id_key(&note->part.head.execution_id));

    if (check && note->part.head.seq > check->at.seq && logmac_good(checking->store->log_mac, note))
        check->at = note->part.head;
}

/* Lines of older versions have their hash without what is beside them. */
static bool step_fits(struct checking *checking, struct log_head *at, const struct log_line *line,
                      struct str chain_hash)
{
    struct log_line tried = *line;
    bool same = false;

    for (int i = 0; i < 2 && !same; i++) {
        struct log_head next = *at;
        char hex[HASH_HEX_BYTES + 1];
        int rc;

        tried.bound = line->bound && i == 0;
        rc = logchain_step(&next, &tried);
        checking->failed |= rc == -ERR_MEMORY;
        hash_hex(next.hash, sizeof next.hash, hex);
        same = rc == 0 && str_is(chain_hash, hex);
        if (same)
            *at = next;
    }
    return same;
}

/* What was there before the key was, is taken as that found it: lines without a hash, and chains
 * that began with a later line. */
static void take_line(void *ctx, const struct log_line *line, struct str chain_hash)
{
    struct checking *checking = ctx;
    struct chain_check *check = map_get(&checking->by_id, id_key(&line->execution_id));
    bool adopted = logmac_adopted(&line->execution_id, line->logged_at_us,
                                  checking->store->log_since_us);

    if (!check || check->bad)
        return;
    if (adopted && (!chain_hash.data || check->at.seq == 0) && line->seq > check->at.seq &&
        (!chain_hash.data || line->seq > 1)) {
        logchain_resume(&check->at, &line->execution_id, line->seq, chain_hash);
        return;
    }
    check->bad = line->seq != check->at.seq + 1 ||
                 !step_fits(checking, &check->at, line, chain_hash);
}

static int compute(struct checking *checking, struct chain_check *checks,
                   const struct log_range *ranges, uint32_t count, int64_t limit, struct err *err)
{
    struct log_walk walk = {.note = take_cut, .line = take_line, .ctx = checking};

    for (uint32_t i = 0; i < count; i++) {
        checks[i] = (struct chain_check){.at.execution_id = ranges[i].execution_id};
        if (map_put(&checking->by_id, id_key(&ranges[i].execution_id), &checks[i]) < 0)
            return err_set(err, ERR_MEMORY, "out of memory for the logs; try again");
    }
    TRY(checking->store->verbs->logs->chains_read(checking->store, ranges, count, limit, &walk,
                                                  err));
    if (checking->failed)
        return err_set(err, ERR_MEMORY, "out of memory for the logs; try again");
    return 0;
}

int log_chains_fit(struct store *store, const struct log_range *ranges, uint32_t count,
                   int64_t limit, const char *what, bool *fits, struct err *err)
{
    struct checking checking = {.store = store, .by_id = MAP_INIT};
    struct chain_check *checks;
    int rc;

    for (uint32_t i = 0; i < count; i++)
        fits[i] = true;
    if (!store->log_mac || count == 0)
        return 0;
    checks = calloc(count, sizeof *checks);
    if (!checks)
        return err_set(err, ERR_MEMORY, "out of memory for the logs; try again");
    rc = compute(&checking, checks, ranges, count, limit, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        fits[i] = !checks[i].bad;
        if (checks[i].bad)
            store->log_doubt = (struct log_doubt){what, ranges[i].execution_id};
    }
    map_deinit(&checking.by_id);
    free(checks);
    return rc;
}
