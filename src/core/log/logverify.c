/* The lines: every chain computed again, execution by execution, and compared with what records
 * say. One finding per execution, at the first line that is wrong: behind it nothing is certain. */
#include "core/log/logverify_int.h"

#include <stdarg.h>
#include <stdio.h>

#define SUBJECT_BYTES 96
#define DETAIL_BYTES 512

struct logverify *logverify_new(const struct logverify_options *options)
{
    struct logverify *verify = calloc(1, sizeof *verify);

    if (!verify)
        return NULL;
    verify->options = *options;
    verify->piece = BUF_INIT(ANCHOR_LINE_BYTES_MAX + 64 * 1024);
    return verify;
}

void logverify_free(struct logverify *verify)
{
    if (!verify)
        return;
    buf_deinit(&verify->piece);
    free(verify->file.items);
    free(verify->store.items);
    free(verify->heads.items);
    free(verify->cuts.items);
    free(verify->blanks.items);
    free(verify);
}

__attribute__((format(printf, 3, 0)))
static void tell(struct logverify *verify, struct logverify_finding *finding, const char *format,
                 va_list args)
{
    char detail[DETAIL_BYTES] = "";

    vsnprintf(detail, sizeof detail, format, args);
    finding->detail = str_of(detail);
    verify->counts.findings++;
    verify->options.tell(verify->options.ctx, finding);
}

void logverify_tell(struct logverify *verify, const char *kind, struct str subject,
                    const char *format, ...)
{
    struct logverify_finding finding = {.kind = kind, .subject = subject};
    va_list args;

    va_start(args, format);
    tell(verify, &finding, format, args);
    va_end(args);
}

/* A finding about a whole execution. */
static void tell_of(struct logverify *verify, const struct log_head *head, const char *detail)
{
    char subject[SUBJECT_BYTES], id[UUID_TEXT_BYTES];
    struct logverify_finding finding = {.kind = "log", .execution_id = &head->execution_id};

    uuid_format(&head->execution_id, id);
    snprintf(subject, sizeof subject, "execution %s line %lld", id, (long long)head->seq);
    finding.subject = str_of(subject);
    finding.detail = str_of(detail);
    verify->counts.findings++;
    verify->options.tell(verify->options.ctx, &finding);
}

void logverify_refused(struct logverify *verify, const struct log_head *head, int64_t serial,
                       struct str reason)
{
    char detail[DETAIL_BYTES];

    if (str_is(reason, ANCHOR_GONE))
        snprintf(detail, sizeof detail, "lines up to this one were removed before a record named "
                 "them: the server that wrote them missed them (record %lld)", (long long)serial);
    else
        snprintf(detail, sizeof detail, "written or changed without the log key: the server "
                 "refused to sign it (record %lld)", (long long)serial);
    tell_of(verify, head, detail);
}

void logverify_add_told(struct logverify *verify, struct told_list *list, const struct told *told)
{
    if (list->count == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 1024;
        void *items = cap <= LOGVERIFY_HEADS_MAX ? realloc(list->items, cap * sizeof *told) : NULL;

        if (!items) {
            verify->failed = cap <= LOGVERIFY_HEADS_MAX ? ERR_MEMORY : ERR_TOO_LARGE;
            return;
        }
        list->items = items;
        list->cap = cap;
    }
    list->items[list->count++] = *told;
}

static bool is_keyed(const struct logverify *verify)
{
    return verify->options.has_key || verify->options.keys_count > 0 || verify->store_signed;
}

/* From before the key, by the time it says? Of stores that no newer version has served since. */
static bool is_adopted(const struct logverify *verify, const struct uuid *id, int64_t logged_at_us)
{
    return !verify->start.begun && logmac_adopted(id, logged_at_us, verify->start.since_us);
}

/* Where a store has a key, a note without its code comes from an attacker, or from the time before
 * the key. Without the key only a record can tell: until there is one, the lines of such a note are
 * accepted for a moment. */
void logverify_note(struct logverify *verify, const struct log_note *note)
{
    struct log_mac *mac = verify->options.mac;
    const struct log_head *head = &note->part.head;
    bool older = note->mac[0] == '\0' && !verify->start.since_told; /* than all this */
    bool keyed = is_keyed(verify) && !older;
    struct told told = {.head = *head, .noted = true, .unproven = keyed && !mac,
                        .waits = note->part.lines > 0 && note->closed.len == 0,
                        .closed = note->closed.len > 0 && !(keyed && !mac)};

    if (keyed && mac && !logmac_good(mac, note)) {
        if (!is_adopted(verify, &head->execution_id, note->logged_at_us))
            tell_of(verify, head, "the stored end of its log was not made with the log key");
        return;
    }
    if (!str_is(note->closed, LOG_NOTE_CUT) &&
        !str_is(note->closed, LOG_NOTE_NAMED) && /* records of that say the same */
        !str_is(note->closed, LOG_NOTE_NAMESPACE))
        logverify_add_told(verify, &verify->heads, &told);
}

static int compare_told(const void *left, const void *right)
{
    const struct told *a = left, *b = right;
    int order = memcmp(a->head.execution_id.bytes, b->head.execution_id.bytes, 16);

    if (order != 0)
        return order;
    if (a->head.seq != b->head.seq)
        return a->head.seq < b->head.seq ? -1 : 1;
    return (a->serial > b->serial) - (a->serial < b->serial);
}

static void sort_told(struct told_list *list)
{
    if (list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, compare_told);
}

void logverify_bad_line(struct logverify *verify, int64_t seq, const char *format, ...)
{
    char subject[SUBJECT_BYTES], id[UUID_TEXT_BYTES];
    struct logverify_finding finding = {.kind = "log", .execution_id = &verify->run.id};
    va_list args;

    uuid_format(&verify->run.id, id);
    snprintf(subject, sizeof subject, "execution %s line %lld", id, (long long)seq);
    finding.subject = str_of(subject);
    verify->run.bad = true;
    va_start(args, format);
    tell(verify, &finding, format, args);
    va_end(args);
}

/* The last cut of the execution, which the lines begin behind. */
static void take_cut(struct logverify *verify, const struct uuid *id)
{
    const struct told_list *cuts = &verify->cuts;

    while (verify->run.cut_at < cuts->count &&
           memcmp(cuts->items[verify->run.cut_at].head.execution_id.bytes, id->bytes, 16) < 0)
        verify->run.cut_at++;
    for (size_t i = verify->run.cut_at;
         i < cuts->count && uuid_eq(&cuts->items[i].head.execution_id, id); i++) {
        bool counted = verify->run.cut_lines >= 0 && cuts->items[i].lines > 0;

        verify->run.at = cuts->items[i].head;
        verify->run.cut_serial = cuts->items[i].serial;
        verify->run.cut_lines = counted ? verify->run.cut_lines + cuts->items[i].lines : -1;
    }
    verify->run.cut_seq = verify->run.at.seq;
}

/* What was emptied of the execution in order. */
static void take_blanks(struct logverify *verify, const struct uuid *id)
{
    const struct told_list *blanks = &verify->blanks;

    memset(verify->run.blank_seqs, 0, sizeof verify->run.blank_seqs);
    for (; verify->run.blank_at < blanks->count; verify->run.blank_at++) {
        const struct told *blank = &blanks->items[verify->run.blank_at];
        int order = memcmp(blank->head.execution_id.bytes, id->bytes, 16);

        if (order > 0)
            break;
        if (order == 0 && blank->head.seq > verify->run.blank_seqs[blank->level])
            verify->run.blank_seqs[blank->level] = blank->head.seq;
    }
}

static void take_bounds(struct logverify *verify, const struct told *head)
{
    int64_t seq = head->head.seq;

    if (seq > verify->run.signed_seq && (!head->unproven || head->waits))
        verify->run.signed_seq = seq;
    if (!head->unproven && seq > verify->run.proven_seq)
        verify->run.proven_seq = seq;
    if (head->closed && seq < verify->run.closed_seq)
        verify->run.closed_seq = seq;
    if (head->noted && seq > verify->run.note_seq)
        verify->run.note_seq = seq;
}

static void begin_execution(struct logverify *verify, const struct uuid *id)
{
    const struct told_list *heads = &verify->heads;
    struct named named = {.counted = false};

    verify->run.any = true;
    verify->run.bad = false;
    verify->run.id = *id;
    verify->run.plain_seq = 0;
    verify->run.at = (struct log_head){.execution_id = *id};
    verify->run.cut_lines = 0;
    take_cut(verify, id);
    take_blanks(verify, id);
    verify->run.signed_seq = verify->run.proven_seq = verify->run.cut_seq;
    verify->run.closed_seq = INT64_MAX;
    verify->run.note_seq = verify->run.stale_seq = 0;
    verify->run.closings = verify->run.closing = verify->run.kept = 0;
    verify->run.conflict = (struct conflict){.why = NULL};
    named.cut_at = verify->run.cut_at;
    for (size_t i = verify->run.head_at;
         i < heads->count && uuid_eq(&heads->items[i].head.execution_id, id); i++) {
        take_bounds(verify, &heads->items[i]);
        logverify_take_named(verify, &heads->items[i], &named);
    }
    while (verify->run.head_at < heads->count &&
           uuid_eq(&heads->items[verify->run.head_at].head.execution_id, id) &&
           heads->items[verify->run.head_at].head.seq <= verify->run.cut_seq)
        verify->run.head_at++;
}

static const struct told *next_head(const struct logverify *verify)
{
    const struct told *head = verify->run.head_at < verify->heads.count
                                  ? &verify->heads.items[verify->run.head_at]
                                  : NULL;

    return head && uuid_eq(&head->head.execution_id, &verify->run.id) ? head : NULL;
}

static void tell_cut_off(struct logverify *verify, const struct told *head)
{
    int64_t first = verify->run.at.seq + 1;

    if (head->serial == 0)
        logverify_bad_line(verify, first, "lines up to %lld are missing",
                 (long long)verify->run.signed_seq);
    else
        logverify_bad_line(verify, first,
                 "lines up to %lld are missing, although record %lld covers them",
                 (long long)verify->run.signed_seq, (long long)head->serial);
}

/* The server needs it to continue or remove the lines. Lines from before the key have none. */
static bool needs_note(const struct logverify *verify)
{
    return is_keyed(verify) && verify->start.since_told && verify->store_told &&
           !is_adopted(verify, &verify->run.id, verify->run.last_at_us);
}

/* Were there fewer lines when they were removed than had been written? Earlier cuts may be among
 * the records that went, and are unknown of lines from before the key. */
static void check_count(struct logverify *verify)
{
    const struct verified_run *run = &verify->run;

    if (run->bad || run->cut_lines < 0 || run->cut_lines >= run->cut_seq ||
        verify->start.trimmed || logmac_adopted(&run->id, 0, verify->start.since_us))
        return;
    logverify_bad_line(verify, run->cut_seq, "%lld lines up to it were there when "
                       "it was removed: the others were gone before", (long long)run->cut_lines);
}

/* A node may sign what it remembers after another one has removed the lines. Then the record of
 * that is the older one, and is trimmed first. Other heads go before the record of the removal. */
static const struct told *next_missed(struct logverify *verify)
{
    bool trimmed = verify->run.at.seq == 0 && verify->start.trimmed && verify->file.count == 0;
    const struct told *head = next_head(verify);

    for (; trimmed && head && head->written; head = next_head(verify))
        verify->run.head_at++;
    return head;
}

/* Its last line was seen. */
static void end_execution(struct logverify *verify)
{
    const struct told *head;

    if (!verify->run.any)
        return;
    head = next_missed(verify);
    if (!verify->run.bad && head)
        tell_cut_off(verify, head);
    if (!verify->run.bad && verify->run.stale_seq)
        logverify_bad_line(verify, verify->run.stale_seq,
                 "no signed record covers this line, although one was due: no server has been "
                 "signing this store, or the line was added without the log key");
    if (!verify->run.bad && verify->run.at.seq > verify->run.proven_seq &&
        verify->run.signed_seq > verify->run.proven_seq)
        verify->counts.waiting += verify->run.at.seq - verify->run.proven_seq;
    if (!verify->run.bad && verify->run.at.seq > verify->run.signed_seq &&
        verify->run.at.seq > verify->run.plain_seq)
        logverify_bad_line(verify,
                 (verify->run.signed_seq > verify->run.plain_seq ? verify->run.signed_seq
                                                                 : verify->run.plain_seq) +
                     1,
                 "added without the log key: no signed record covers this line");
    if (!verify->run.bad && verify->run.at.seq > verify->run.cut_seq &&
        verify->run.note_seq < verify->run.at.seq && needs_note(verify))
        logverify_bad_line(verify, verify->run.at.seq, "the stored end of this log was removed");
    check_count(verify);
    logverify_check_named(verify);
    while (next_head(verify))
        verify->run.head_at++;
    verify->run.any = false;
}

/* Executions before this one (NULL = all that are left) that records name and that have no line. */
static void pass_removed(struct logverify *verify, const struct uuid *before)
{
    while (verify->run.head_at < verify->heads.count) {
        const struct uuid id = verify->heads.items[verify->run.head_at].head.execution_id;

        if (before && memcmp(id.bytes, before->bytes, 16) >= 0)
            return;
        begin_execution(verify, &id);
        end_execution(verify);
    }
}

/* Begun before there were chains, or before a migration was taken back and made again: what was
 * logged until then may lack hashes, and no record need name it. */
static bool is_old(const struct logverify *verify, const struct log_line *line)
{
    return !verify->start.begun &&
           logmac_adopted(&verify->run.id, line->logged_at_us, verify->options.since_us);
}

/* Where a record names it although it has none: it was adopted like that. */
static bool may_lack_hash(const struct logverify *verify, const struct log_line *line)
{
    return is_old(verify, line) ||
           (verify->start.begun && line->seq <= verify->run.proven_seq &&
            logmac_adopted(&verify->run.id, line->logged_at_us, verify->start.since_us));
}

static void check_plain(struct logverify *verify, const struct log_line *line)
{
    static const uint8_t zeros[HASH_BYTES];
    const struct told *head = next_head(verify);

    for (; head && head->head.seq == line->seq &&
           memcmp(head->head.hash, zeros, sizeof zeros) == 0; head = next_head(verify))
        verify->run.head_at++;
    if (head && head->head.seq <= line->seq)
        logverify_bad_line(verify, line->seq, "this line has lost its hash");
    verify->run.at.seq = verify->run.plain_seq = line->seq;
    verify->run.at.hashed = false; /* a chain begins behind it */
}

static void count_adopted(struct logverify *verify, const struct log_line *line, bool plain)
{
    if (verify->start.begun)
        verify->counts.adopted +=
            logmac_adopted(&verify->run.id, line->logged_at_us, verify->start.since_us);
    else if (is_old(verify, line))
        verify->counts.adopted += plain || line->seq > verify->run.proven_seq;
}

/* What records say of this line. */
static void compare_heads(struct logverify *verify)
{
    const struct told *head;

    while (!verify->run.bad && (head = next_head(verify)) != NULL &&
           head->head.seq <= verify->run.at.seq) {
        verify->run.head_at++;
        if (memcmp(head->head.hash, verify->run.at.hash, HASH_BYTES) == 0 && head->head.hashed)
            continue;
        if (head->serial == 0)
            logverify_bad_line(verify, verify->run.at.seq,
                               "this line differs from the one that was written");
        else
            logverify_bad_line(verify, verify->run.at.seq,
                     "this line or an earlier one differs from what record %lld covers",
                     (long long)head->serial);
    }
}

/* Without its text, and as retention leaves such a line? Its level and the hash of its text are in
 * the chain like those of any other. */
static bool emptied_in_order(struct logverify *verify, const struct log_line *line)
{
    verify->counts.emptied++;
    if (line->message.len > 0 || line->context.data)
        logverify_bad_line(verify, line->seq,
                           "this line has text although it is marked as emptied");
    else if (line->seq > verify->run.blank_seqs[line->level])
        logverify_bad_line(verify, line->seq,
                           "this line was emptied, but no signed record says so");
    return !verify->run.bad;
}

/* The hash a line should have. Lines of older versions have it without what is beside them: only
 * their hash shows that, which records and notes name. */
static int step_on(struct logverify *verify, const struct log_line *line, struct str chain_hash,
                   bool *same)
{
    struct log_head before = verify->run.at;
    struct log_line plain = *line;
    char hex[HASH_HEX_BYTES + 1];
    int rc = logchain_step(&verify->run.at, line);

    hash_hex(verify->run.at.hash, HASH_BYTES, hex);
    *same = rc == 0 && str_is(chain_hash, hex);
    if (rc < 0 || *same || !line->bound)
        return rc;
    plain.bound = false;
    verify->run.at = before;
    rc = logchain_step(&verify->run.at, &plain);
    hash_hex(verify->run.at.hash, HASH_BYTES, hex);
    *same = rc == 0 && str_is(chain_hash, hex);
    return rc;
}

/* Beyond what the clock here and that of the newest record allow. */
static bool is_ahead(const struct logverify *verify, int64_t at_us)
{
    const struct logverify_options *options = &verify->options;
    const struct known *newest =
        verify->store.count ? &verify->store.items[verify->store.count - 1] : NULL;
    int64_t slack_us = (options->ahead_us - options->fresh_us) / 2;

    return options->ahead_us > 0 && at_us > options->ahead_us &&
           (!newest || at_us > newest->at_us + slack_us);
}

/* No record names it although one should: it is old enough, or from a time that has not come. */
static bool is_stale(const struct logverify *verify, const struct log_line *line)
{
    return line->seq > verify->run.proven_seq && line->seq <= verify->run.signed_seq &&
           (line->logged_at_us < verify->options.fresh_us ||
            is_ahead(verify, line->logged_at_us)) && !is_old(verify, line);
}

static void check_line(struct logverify *verify, const struct log_line *line, struct str chain_hash)
{
    bool same;
    int rc;

    if (line->removed.data && !emptied_in_order(verify, line))
        return;
    if (line->seq <= verify->run.cut_seq) {
        logverify_bad_line(verify, line->seq,
                           "this line is present although lines up to %lld were removed",
                 (long long)verify->run.cut_seq);
        return;
    }
    if (line->seq > verify->run.closed_seq) {
        logverify_bad_line(verify, line->seq, "added after its execution ended");
        return;
    }
    if (!verify->run.stale_seq && is_stale(verify, line))
        verify->run.stale_seq = line->seq;
    count_adopted(verify, line, !chain_hash.data);
    if (!chain_hash.data && may_lack_hash(verify, line)) {
        check_plain(verify, line);
        return;
    }
    if (line->seq != verify->run.at.seq + 1) {
        logverify_bad_line(verify, verify->run.at.seq + 1, "lines up to %lld are missing",
                 (long long)line->seq - 1);
        return;
    }
    rc = step_on(verify, line, chain_hash, &same);
    if (rc < 0 && rc != -(int)ERR_INVALID) {
        verify->failed = ERR_MEMORY;
        return;
    }
    if (is_old(verify, line))
        verify->run.plain_seq = line->seq;
    if (!same)
        logverify_bad_line(verify, line->seq, "changed after it was written (its hash does not "
                           "match), or the line before it was replaced, or its execution was moved "
                           "to another task, attempt or worker");
    else
        compare_heads(verify);
}

void logverify_line(struct logverify *verify, const struct log_line *line, struct str chain_hash)
{
    if (!verify->sorted) {
        logverify_compare_anchor(verify);
        sort_told(&verify->heads);
        sort_told(&verify->cuts);
        sort_told(&verify->blanks);
        verify->sorted = true;
    }
    if (!line)
        return;
    if (!verify->run.any || !uuid_eq(&verify->run.id, &line->execution_id)) {
        end_execution(verify);
        pass_removed(verify, &line->execution_id);
        begin_execution(verify, &line->execution_id);
        verify->counts.executions++;
    }
    verify->counts.lines++;
    verify->run.last_at_us = line->logged_at_us;
    if (!verify->run.bad)
        check_line(verify, line, chain_hash);
}

int logverify_end(struct logverify *verify, struct logverify_counts *counts, struct err *err)
{
    logverify_line(verify, NULL, STR_NONE);
    end_execution(verify);
    pass_removed(verify, NULL);
    if (!verify->store_signed &&
        (verify->options.has_key || (verify->options.keys_count > 0 && verify->counts.lines > 0)))
        logverify_tell(verify, "anchor", STR("store"), "no record of the store is signed by %s: "
                       "records were removed, or none has been made yet",
                       verify->options.keys_count > 0 ? "a given key" : "its key");
    *counts = verify->counts;
    if (verify->failed != ERR_NONE)
        return err_set(err, verify->failed, "there is not enough memory to compare all records; "
                       "the findings so far are incomplete");
    return 0;
}
