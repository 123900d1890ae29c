/* Chains computed again before lines are removed: the last line and its note may be as they were
 * while lines before them are not, and the record of the removal would be the last word about
 * them. Writer's thread. */
#include "store/log_memory.h"
#include "store/log_store.h"

/* What a note of a chain says, by line. */
struct mark {
    int64_t seq;
    uint8_t hash[HASH_BYTES];
    bool recorded; /* a record says so, too */
};

struct chain_check {
    struct log_head at; /* the last line that was good */
    size_t marks_at;    /* the next of its marks, */
    size_t marks_end;   /* and where they end */
    int64_t base;       /* the last line that a record names */
    struct log_head known; /* where this process left it; seq 0 = that is not known */
    bool noted;
    bool bad;
};

struct checking {
    struct store *store;
    struct map by_id;
    struct mark *marks;
    size_t marks_count, marks_cap;
    bool failed; /* out of memory */
};

static struct str id_key(const struct uuid *id)
{
    return str_span((const char *)id->bytes, sizeof id->bytes);
}

static void add_mark(struct checking *checking, const struct mark *mark)
{
    if (checking->marks_count == checking->marks_cap) {
        size_t cap = checking->marks_cap ? 2 * checking->marks_cap : 64;
        struct mark *marks = realloc(checking->marks, cap * sizeof *marks);

        if (!marks) {
            checking->failed = true;
            return;
        }
        checking->marks = marks;
        checking->marks_cap = cap;
    }
    checking->marks[checking->marks_count++] = *mark;
}

/* Only what the key says counts. A chain begins where it was cut: a note of an earlier cut does not
 * fit what is left. */
static void take_note(void *ctx, const struct log_note *note)
{
    struct checking *checking = ctx;
    const struct log_head *head = &note->part.head;
    struct chain_check *check = map_get(&checking->by_id, id_key(&head->execution_id));
    struct mark mark = {.seq = head->seq, .recorded = note->part.lines == 0};

    if (!check || !logmac_good(checking->store->log_mac, note))
        return;
    if (str_is(note->closed, LOG_NOTE_CUT)) {
        if (head->seq > check->at.seq)
            check->at = *head;
        return;
    }
    if (!check->noted)
        check->marks_at = checking->marks_count;
    check->noted = true;
    memcpy(mark.hash, head->hash, sizeof mark.hash);
    add_mark(checking, &mark);
    check->marks_end = checking->marks_count;
}

/* The chain has to pass through all that its notes say, and through what this process wrote: an old
 * note beside lines that took the place of others does not fit. */
static void pass_marks(struct checking *checking, struct chain_check *check)
{
    static const uint8_t zeros[HASH_BYTES];
    const uint8_t *hash = check->at.hashed ? check->at.hash : zeros;

    if (check->known.seq == check->at.seq)
        check->bad |= memcmp(check->known.hash, hash, HASH_BYTES) != 0;
    for (; check->marks_at < check->marks_end; check->marks_at++) {
        const struct mark *mark = &checking->marks[check->marks_at];

        if (mark->seq > check->at.seq)
            return;
        if (mark->seq < check->at.seq)
            continue; /* cut before */
        check->bad |= memcmp(mark->hash, hash, HASH_BYTES) != 0;
        if (mark->recorded)
            check->base = mark->seq;
    }
}

/* Notes of lines behind those that go are compared when these go. */
static int64_t base_of(const struct checking *checking, const struct chain_check *check)
{
    int64_t base = check->base;

    for (size_t i = check->marks_at; i < check->marks_end; i++)
        if (checking->marks[i].recorded)
            base = checking->marks[i].seq;
    return base < check->at.seq ? base : check->at.seq;
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
    } else if (line->seq != check->at.seq + 1 ||
               !step_fits(checking, &check->at, line, chain_hash)) {
        check->bad = true;
        return;
    }
    pass_marks(checking, check);
}

static int compute(struct checking *checking, struct chain_check *checks,
                   const struct log_range *ranges, uint32_t count, int64_t limit, struct err *err)
{
    struct log_walk walk = {.note = take_note, .line = take_line, .ctx = checking};

    for (uint32_t i = 0; i < count; i++) {
        checks[i] = (struct chain_check){.at.execution_id = ranges[i].execution_id};
        if (checking->store->log_memory)
            log_memory_known(checking->store->log_memory, checking->store->log_seen,
                             &ranges[i].execution_id, &checks[i].known);
        if (map_put(&checking->by_id, id_key(&ranges[i].execution_id), &checks[i]) < 0)
            return err_no_memory(err);
    }
    TRY(checking->store->verbs->logs->chains_read(checking->store, ranges, count, limit, &walk,
                                                  err));
    if (checking->failed)
        return err_no_memory(err);
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
        return err_no_memory(err);
    rc = compute(&checking, checks, ranges, count, limit, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        fits[i] = !checks[i].bad;
        if (checks[i].bad)
            store->log_doubt = (struct log_doubt){what, ranges[i].execution_id};
        else if (checks[i].at.seq > 0 &&
                 log_checked_base(store, &checks[i].at, base_of(&checking, &checks[i])) < 0)
            rc = err_no_memory(err);
    }
    map_deinit(&checking.by_id);
    free(checking.marks);
    free(checks);
    return rc;
}

/* ---- was a line removed in order? ---- */

struct cut_look {
    struct log_mac *mac;
    int64_t seq;
    bool cut;
};

static void look_at_note(void *ctx, const struct log_note *note)
{
    struct cut_look *look = ctx;

    look->cut |= str_is(note->closed, LOG_NOTE_CUT) && note->part.head.seq >= look->seq &&
                 logmac_good(look->mac, note);
}

static void pass_line(void *ctx, const struct log_line *line, struct str chain_hash)
{
    (void)ctx;
    (void)line;
    (void)chain_hash;
}

int log_find_cut(struct store *store, const struct log_head *head, bool *cut, struct err *err)
{
    const struct log_range range = {.execution_id = head->execution_id};
    struct cut_look look = {.mac = store->log_mac, .seq = head->seq};
    const struct log_walk walk = {.note = look_at_note, .line = pass_line, .ctx = &look};

    *cut = !store->log_mac;
    if (*cut)
        return 0;
    TRY(store->verbs->logs->chains_read(store, &range, 1, 1, &walk, err));
    *cut = look.cut;
    return 0;
}
