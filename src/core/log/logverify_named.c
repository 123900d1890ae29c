/* What records of one execution say beside each other. Every line is named once, as it came, and
 * each record says which line its own follow: where two do not fit, lines were removed that one of
 * them names, and others took their numbers. That shows also when all of them are gone. */
#include "core/log/logverify_int.h"

static const char twice[] = "two records name the same lines (one is record %lld): lines were "
                            "removed, others took their numbers, and an older note of the run was "
                            "put back";
static const char forked[] = "record %lld names lines that follow another line than the records "
                             "before it name: lines were removed, and others took their numbers";
static const char cut_other[] = "record %lld removed other lines than an earlier record names: "
                                "those were gone before, and others had taken their numbers";

static const char behind[] = "record %lld names lines behind the end of its execution: they were "
                             "added after it was closed";

static void take_closing(struct logverify *verify, const struct told *head)
{
    struct verified_run *run = &verify->run;

    if (!head->closed)
        return;
    if (head->kept) {
        run->kept = run->kept && run->kept < head->serial ? run->kept : head->serial;
        return;
    }
    run->closings++;
    run->closing = head->serial > run->closing ? head->serial : run->closing;
}

static void take_conflict(struct logverify *verify, const char *why, int64_t seq, int64_t serial)
{
    if (!verify->run.conflict.why)
        verify->run.conflict = (struct conflict){why, seq, serial};
}

static bool same_hash(const struct log_head *a, const struct log_head *b)
{
    return !a->hashed || !b->hashed || memcmp(a->hash, b->hash, HASH_BYTES) == 0;
}

/* The cut that the line went with. The server computed the chain again then, and found no record of
 * a line behind its base. */
static void compare_cut(struct logverify *verify, const struct told *head, struct named *named)
{
    const struct told_list *cuts = &verify->cuts;
    const struct told *cut;

    while (named->cut_at < cuts->count &&
           uuid_eq(&cuts->items[named->cut_at].head.execution_id, &head->head.execution_id) &&
           cuts->items[named->cut_at].head.seq < head->head.seq)
        named->cut_at++;
    cut = named->cut_at < cuts->count ? &cuts->items[named->cut_at] : NULL;
    if (!cut || !uuid_eq(&cut->head.execution_id, &head->head.execution_id))
        return;
    if ((cut->based && !head->written && head->serial < cut->serial &&
         cut->base < head->head.seq) ||
        (cut->head.seq == head->head.seq && !same_hash(&cut->head, &head->head)))
        take_conflict(verify, cut_other, head->head.seq, cut->serial);
}

/* The lines that a record names, beside those that records before it name. */
static void compare_lines(struct logverify *verify, const struct told *head,
                          const struct named *named)
{
    static const uint8_t zeros[HASH_BYTES];
    const struct log_head *before = &named->before;
    int64_t seq = head->head.seq - head->lines;

    if (seq < before->seq || (!head->kept && named->counted))
        take_conflict(verify, twice, head->head.seq, head->serial);
    else if (head->follows && seq == before->seq &&
             memcmp(head->from, before->hashed ? before->hash : zeros, HASH_BYTES) != 0)
        take_conflict(verify, forked, seq, head->serial);
    else if (head->follows && seq > before->seq && (before->seq > 0 || !verify->start.trimmed))
        take_conflict(verify, forked, seq, head->serial);
}

void logverify_take_named(struct logverify *verify, const struct told *head, struct named *named)
{
    if (head->noted || head->serial < verify->start.begin)
        return;
    take_closing(verify, head);
    compare_cut(verify, head, named);
    if (head->head.seq > verify->run.closed_seq)
        take_conflict(verify, behind, head->head.seq, head->serial);
    if (head->written && head->head.seq != named->at.seq)
        return;
    if (head->head.seq != named->at.seq)
        *named = (struct named){.before = named->at, .at = head->head, .cut_at = named->cut_at};
    if (!same_hash(&head->head, &named->at))
        take_conflict(verify, twice, head->head.seq, head->serial);
    if (head->lines > 0)
        compare_lines(verify, head, named);
    named->counted |= head->lines > 0 && !head->kept;
}

/* A cut names lines, too. */
static void check_last_cut(struct logverify *verify)
{
    const struct verified_run *run = &verify->run;

    if (run->cut_seq > run->closed_seq)
        take_conflict(verify, behind, run->cut_seq, run->cut_serial);
}

static void tell_conflict(struct logverify *verify)
{
    const struct conflict *conflict = &verify->run.conflict;
    long long serial = conflict->serial;

    if (conflict->why == twice)
        logverify_bad_line(verify, conflict->seq, twice, serial);
    else if (conflict->why == forked)
        logverify_bad_line(verify, conflict->seq, forked, serial);
    else if (conflict->why == behind)
        logverify_bad_line(verify, conflict->seq, behind, serial);
    else
        logverify_bad_line(verify, conflict->seq, cut_other, serial);
}

/* A run is closed once. A note from before that is the server's own, and opens it again when an
 * attacker puts it back: how the run ended is then whatever he made its rows say. */
void logverify_check_named(struct logverify *verify)
{
    const struct verified_run *run = &verify->run;

    if (!run->bad && (run->closings > 1 || (run->kept && run->closing > run->kept)))
        logverify_bad_line(verify, run->closed_seq, "its execution was closed once more (record "
                           "%lld): an older note of it was put back", (long long)run->closing);
    check_last_cut(verify);
    if (!run->bad && run->conflict.why)
        tell_conflict(verify);
}
