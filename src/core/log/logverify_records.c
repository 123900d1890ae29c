/* Records of the anchor file and of the store: each by itself (hash, signature), each list by its
 * order, and both with each other. What a good record says of chains is kept for the lines. */
#include "core/log/logverify_int.h"

#include "base/clock.h"

#include <stdio.h>

#define SUBJECT_BYTES 64

static struct str record_name(int64_t serial, char out[SUBJECT_BYTES])
{
    return str_span(out, (size_t)snprintf(out, SUBJECT_BYTES, "record %lld", (long long)serial));
}

/* Without a key from outside there is one all the same: that of the store, or else of the first
 * record (the anchor file's, where there is one). What an attacker signed with a key of his own is
 * not believed. */
static bool key_is_trusted(struct logverify *verify, const struct anchor *anchor)
{
    struct logverify_options *options = &verify->options;

    for (uint32_t i = 0; i < options->keys_count; i++)
        if (memcmp(options->keys[i], anchor->key, sizeof anchor->key) == 0)
            return true;
    if (options->keys_count > 0)
        return false;
    if (!verify->key_known)
        memcpy(verify->key, options->has_key ? options->key : anchor->key, sizeof verify->key);
    verify->key_known = true;
    return memcmp(verify->key, anchor->key, sizeof anchor->key) == 0;
}

/* The first finding says what to do where the key was replaced; those after it only that they are
 * of the same key. */
static void tell_foreign_key(struct logverify *verify, const struct anchor *anchor,
                             struct str subject, const char *place)
{
    char theirs[2 * SIGN_PUBLIC_BYTES + 1], ours[2 * SIGN_PUBLIC_BYTES + 1];
    bool again = verify->foreign_told &&
                 memcmp(verify->foreign_key, anchor->key, sizeof anchor->key) == 0;

    hash_hex(anchor->key, sizeof anchor->key, theirs);
    hash_hex(verify->key, sizeof verify->key, ours);
    if (verify->options.keys_count > 0)
        logverify_tell(verify, "anchor", subject, "%s: signed by another key (%s)", place,
                       theirs);
    else if (again)
        logverify_tell(verify, "anchor", subject, "%s: signed by another key, not the "
                       "store's, the one named above", place);
    else
        logverify_tell(verify, "anchor", subject, "%s: signed by another key, not the "
                       "store's (%s); if you used that key before, give both: --public-key %s,%s",
                       place, theirs, theirs, ours);
    verify->foreign_told = true;
    memcpy(verify->foreign_key, anchor->key, sizeof verify->foreign_key);
}

/* Whether it is believed. Unsigned ones are only of the time before there was a key. */
static bool check_signature(struct logverify *verify, const struct anchor *anchor,
                            struct str record, struct str signature, bool in_store)
{
    const char *place = in_store ? "the store" : "the anchor file";
    char name[SUBJECT_BYTES];
    struct str subject = record_name(anchor->serial, name);

    if (anchor->is_signed && !anchor_signature_good(anchor, record, signature)) {
        logverify_tell(verify, "anchor", subject, "%s: changed after it was signed", place);
        return false;
    }
    if (!anchor->is_signed && (verify->options.keys_count > 0 || verify->store_signed)) {
        logverify_tell(verify, "anchor", subject, "%s: not signed", place);
        return false;
    }
    if (anchor->is_signed && !key_is_trusted(verify, anchor)) {
        tell_foreign_key(verify, anchor, subject, place);
        return false;
    }
    return true;
}

static void add_known(struct logverify *verify, struct known_list *list,
                      const struct anchor *anchor)
{
    struct known known = {.serial = anchor->serial, .at_us = anchor->at_us,
                          .seam = anchor->kind == ANCHOR_SEAM};

    memcpy(known.hash, anchor->hash, sizeof known.hash);
    if (list->count == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 1024;
        void *items = cap <= LOGVERIFY_HEADS_MAX ? realloc(list->items, cap * sizeof known) : NULL;

        if (!items) {
            verify->failed = ERR_MEMORY;
            return;
        }
        list->items = items;
        list->cap = cap;
    }
    list->items[list->count++] = known;
}

static const struct known *find_known(const struct known_list *list, int64_t serial)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list->items[middle].serial < serial)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->count && list->items[low].serial == serial ? &list->items[low] : NULL;
}

static struct told_list *list_of(struct logverify *verify, const struct anchor *anchor,
                                 const struct log_part *item)
{
    if (item->emptied)
        return &verify->blanks;
    return anchor->kind == ANCHOR_CUTS ? &verify->cuts : &verify->heads;
}

/* What retention removed had to be old enough by then. */
static void check_window(struct logverify *verify, const struct anchor *anchor,
                         const struct log_part *item)
{
    char name[SUBJECT_BYTES];

    if (item->at_us > 0 && item->window_ms > 0 &&
        item->at_us + item->window_ms * CLOCK_MS_US > anchor->at_us)
        logverify_tell(verify, "anchor", record_name(anchor->serial, name), "retention removed or "
                       "emptied lines before they were %lld ms old", (long long)item->window_ms);
}

static void add_item(struct logverify *verify, const struct anchor *anchor,
                     const struct log_part *item)
{
    struct told told = {.head = item->head, .serial = anchor->serial, .lines = item->lines,
                        .follows = item->follows, .written = item->written,
                        .based = item->based, .base = item->base,
                        .level = item->level, .closed = item->closed,
                        .kept = anchor->kind == ANCHOR_TRIM};

    memcpy(told.from, item->from, sizeof told.from);
    logverify_add_told(verify, list_of(verify, anchor, item), &told);
}

static void take_items(struct logverify *verify, const struct anchor *anchor)
{
    char name[SUBJECT_BYTES];
    struct json_iter iter;
    struct log_part item;
    uint32_t count = 0;

    json_begin(anchor->items, &iter);
    while (count++ < ANCHOR_ITEMS_MAX && anchor_next_item(&iter, &item)) {
        if (item.unread) {
            logverify_tell(verify, "anchor", record_name(anchor->serial, name), "what it says of "
                           "an execution cannot be read: it was made of a forged note");
            continue;
        }
        if (anchor->kind == ANCHOR_REFUSED || item.refused) {
            logverify_refused(verify, &item.head, anchor->serial, anchor->reason);
            continue;
        }
        check_window(verify, anchor, &item);
        add_item(verify, anchor, &item);
    }
}

/* Lines from before may lack hashes and records: only a record says since when, and it says the
 * same for ever. Another key begins for itself, and names all it finds then. */
static void take_since(struct logverify *verify, const struct anchor *anchor)
{
    char name[SUBJECT_BYTES];

    if (!anchor->has_since)
        return;
    if (!verify->start.since_told)
        verify->options.since_us = anchor->since_us;
    else if (memcmp(verify->start.since_key, anchor->key, sizeof anchor->key) == 0 &&
             verify->start.since_us != anchor->since_us)
        logverify_tell(verify, "anchor", record_name(anchor->serial, name), "states another "
                       "start of log signing than the records before it");
    verify->start.begun |= anchor->begin > 0;
    if (anchor->begin > verify->start.begin)
        verify->start.begin = anchor->begin;
    verify->start.since_told = true;
    verify->start.since_us = anchor->since_us;
    memcpy(verify->start.since_key, anchor->key, sizeof anchor->key);
}

/* Does it follow the one before it in its list? */
static void check_order(struct logverify *verify, const struct known_list *list,
                        const struct anchor *anchor, const char *place)
{
    const struct known *before = list->count ? &list->items[list->count - 1] : NULL;
    char name[SUBJECT_BYTES];

    if (!before)
        return;
    if (anchor->serial > before->serial + 1 && anchor->kind != ANCHOR_SEAM) {
        logverify_tell(verify, "anchor", record_name(before->serial + 1, name),
                       "%s: records up to %lld are missing", place,
                       (long long)anchor->serial - 1);
        return;
    }
    if (anchor->kind == ANCHOR_SEAM && anchor->through == before->serial &&
        memcmp(anchor->through_hash, before->hash, HASH_BYTES) == 0)
        return; /* the file continues where it was, the store behind what it has */
    if (memcmp(anchor->previous, before->hash, HASH_BYTES) != 0)
        logverify_tell(verify, "anchor", record_name(anchor->serial, name),
                       "%s: does not follow record %lld, which was changed or replaced",
                       place, (long long)before->serial);
}

/* A line that is no record. What a crash left of one in a file that can only be appended to is
 * followed by the whole of it. */
static void end_piece(struct logverify *verify, struct str next)
{
    struct buf *piece = &verify->piece;
    char name[SUBJECT_BYTES];

    if (piece->len > 0 &&
        (next.len < piece->len || memcmp(next.data, piece->data, piece->len) != 0)) {
        snprintf(name, sizeof name, "line %lld", (long long)verify->piece_at);
        logverify_tell(verify, "anchor", str_of(name), "the anchor file: not a record");
    }
    buf_reset(piece);
}

static void begin_piece(struct logverify *verify, struct str line)
{
    verify->piece_at = verify->file_lines;
    buf_str(&verify->piece, line);
    if (verify->piece.failed)
        verify->failed = ERR_MEMORY;
}

void logverify_anchor_line(struct logverify *verify, struct str line)
{
    const struct known_list *file = &verify->file;
    const struct known *last = file->count ? &file->items[file->count - 1] : NULL;
    char name[SUBJECT_BYTES];
    struct str record, signature;
    struct anchor anchor;

    verify->file_lines++;
    if (line.len == 0)
        return;
    end_piece(verify, line);
    if (!anchor_line_parse(line, &record, &signature) || !anchor_parse(record, &anchor)) {
        begin_piece(verify, line);
        return;
    }
    verify->counts.anchor_records++;
    if (last && anchor.serial <= last->serial) { /* two nodes may write one file */
        const struct known *same = find_known(file, anchor.serial);

        if (!same || memcmp(same->hash, anchor.hash, HASH_BYTES) != 0)
            logverify_tell(verify, "anchor", record_name(anchor.serial, name),
                           "the anchor file: present twice, with different contents");
        return;
    }
    check_order(verify, file, &anchor, "the anchor file");
    if (check_signature(verify, &anchor, record, signature, false)) {
        add_known(verify, &verify->file, &anchor);
        take_since(verify, &anchor);
        take_items(verify, &anchor);
    }
}

static void note_first(struct logverify *verify, const struct anchor *anchor)
{
    static const uint8_t zeros[HASH_BYTES];
    char name[SUBJECT_BYTES];

    verify->start.previous_serial = anchor->serial - 1;
    memcpy(verify->start.previous, anchor->previous, HASH_BYTES);
    verify->start.begins = anchor->serial == 1 || anchor->kind == ANCHOR_SEAM;
    if (anchor->serial == 1 && memcmp(anchor->previous, zeros, HASH_BYTES) != 0)
        logverify_tell(verify, "anchor", record_name(1, name),
                       "the store: not the first record that was made");
}

/* The record before it is there, bytes and all, whichever key signed it: none is missing. */
static bool follows_seen(const struct logverify *verify, const struct anchor *anchor)
{
    return verify->seen.serial > 0 && anchor->serial == verify->seen.serial + 1 &&
           memcmp(anchor->previous, verify->seen.hash, HASH_BYTES) == 0;
}

void logverify_record(struct logverify *verify, const struct anchor_row *row)
{
    char name[SUBJECT_BYTES];
    char hex[HASH_HEX_BYTES + 1];
    const struct known *same;
    struct anchor anchor;

    verify->counts.records++;
    if (!anchor_parse(row->record, &anchor) || anchor.serial != row->serial) {
        logverify_tell(verify, "anchor", record_name(row->serial, name),
                       "the store: changed after it was written");
        return;
    }
    hash_hex(anchor.hash, sizeof anchor.hash, hex);
    if (strcmp(hex, row->hash) != 0 || anchor.at_us != row->created_at_us)
        logverify_tell(verify, "anchor", record_name(row->serial, name),
                       "the store: the hash or time stored beside it does not match");
    if (!follows_seen(verify, &anchor)) {
        if (verify->store.count == 0)
            note_first(verify, &anchor);
        check_order(verify, &verify->store, &anchor, "the store");
    }
    verify->seen.serial = anchor.serial;
    memcpy(verify->seen.hash, anchor.hash, sizeof verify->seen.hash);
    if (anchor.kind == ANCHOR_TRIM && anchor.through == verify->start.previous_serial &&
        memcmp(anchor.through_hash, verify->start.previous, HASH_BYTES) == 0)
        verify->start.trimmed = true;
    verify->counts.unsigned_records += !anchor.is_signed;
    if (!check_signature(verify, &anchor, row->record, str_of(row->signature), true))
        return;
    verify->store_signed |= anchor.is_signed;
    if (anchor.kind == ANCHOR_SEAM && anchor.through == 0 && !verify->foreign_seam)
        verify->foreign_seam = anchor.serial;
    add_known(verify, &verify->store, &anchor);
    same = find_known(&verify->file, anchor.serial);
    take_since(verify, &anchor);
    verify->store_told |= anchor.has_since;
    if (!same || memcmp(same->hash, anchor.hash, HASH_BYTES) != 0)
        take_items(verify, &anchor); /* otherwise the file has told it */
}

/* The run of file records from *at on that the store does not have. */
static void tell_missing(struct logverify *verify, size_t from, size_t to)
{
    const struct known *first = &verify->file.items[from], *last = &verify->file.items[to];
    int64_t newest = verify->store.count ? verify->store.items[verify->store.count - 1].serial : 0;
    char name[SUBJECT_BYTES];
    char at[CLOCK_TEXT_BYTES];

    clock_format(last->at_us, at);
    if (last->serial > newest)
        logverify_tell(verify, "regression", record_name(first->serial, name),
                       "the store was set back or its newest records were removed: the anchor file "
                       "ends at record %lld of %s, the store at %lld", (long long)last->serial, at,
                       (long long)newest);
    else
        logverify_tell(verify, "regression", record_name(first->serial, name),
                       "records up to %lld of %s are in the anchor file but not in the store: "
                       "the store was set back, or they were removed", (long long)last->serial, at);
}

void logverify_compare_anchor(struct logverify *verify)
{
    const struct known_list *file = &verify->file;
    char name[SUBJECT_BYTES];
    size_t missing = SIZE_MAX;

    end_piece(verify, STR_NONE);
    if (verify->store.count && !verify->start.begins && !verify->start.trimmed)
        logverify_tell(verify, "anchor", record_name(1, name),
                       "the store: records up to %lld are missing",
                       (long long)verify->start.previous_serial);
    for (size_t i = 0; i < file->count; i++) {
        const struct known *in_store = find_known(&verify->store, file->items[i].serial);
        bool here = in_store || (verify->store.count && verify->start.trimmed &&
                                 file->items[i].serial <= verify->start.previous_serial);

        if (!here && missing == SIZE_MAX)
            missing = i;
        if (here && missing != SIZE_MAX) {
            tell_missing(verify, missing, i - 1);
            missing = SIZE_MAX;
        }
        if (in_store && memcmp(in_store->hash, file->items[i].hash, HASH_BYTES) != 0)
            logverify_tell(verify, "regression", record_name(in_store->serial, name),
                           "differs from the record in the anchor file: the store was set back and "
                           "then used again, or it replaced the original store");
    }
    if (missing != SIZE_MAX)
        tell_missing(verify, missing, file->count - 1);
    if (verify->foreign_seam)
        logverify_tell(verify, "anchor", record_name(verify->foreign_seam, name),
                       "when it was made, the newest record of the store was missing or not signed "
                       "by its key: records were removed, or made without the key");
}
