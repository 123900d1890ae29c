/* Records about the logs of a store, each signed and bound to the one before (D9, F-J6 to F-J8):
 * where the chains of executions stand, what retention removed of them or emptied, and whether the
 * store was set back. They are kept in the store and, as JSON lines, in the anchor file. Pure.
 * engine/logs/log_heads.c writes them, logverify.c checks them. */
#ifndef CORE_LOG_LOGANCHOR_H
#define CORE_LOG_LOGANCHOR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/sign.h"
#include "core/log/logchain.h"

#define ANCHOR_ITEMS_MAX 1000             /* heads, cuts or blanks in one record */
#define ANCHOR_BYTES_MAX (512 * 1024)     /* a thousand of them, with room */
#define ANCHOR_LINE_BYTES_MAX (ANCHOR_BYTES_MAX + 512)
#define ANCHOR_REASON_BYTES_MAX 64

/* REFUSED for this reason: by the key, but gone before a record named them. */
#define ANCHOR_GONE "gone"

enum anchor_kind {
    ANCHOR_HEADS, /* chains that continued */
    ANCHOR_CUTS,  /* lines that were removed */
    ANCHOR_SEAM,  /* the anchor file was ahead of the store: serials in between are left out; or
                     (through 0) the newest record of the store was gone or not by its key */
    ANCHOR_TRIM,  /* older records were removed; heads and blanks they told of that still count */
    ANCHOR_BLANKS, /* lines of a level that lost what they said, and stay in their chains */
    ANCHOR_BEGIN, /* from here on all lines are proven, but for those from before `since` */
    ANCHOR_REFUSED, /* what was written without the key, and not signed */
    ANCHOR_KIND_COUNT
};

/* A record as it is stored: its text, the hash of the text, the signature of the text. */
struct anchor_row {
    int64_t serial;
    struct str record;
    char hash[HASH_HEX_BYTES + 1];
    char signature[2 * SIGN_BYTES + 1]; /* "" = not signed */
    int64_t created_at_us;
};

/* What a record says. */
struct anchor {
    int64_t serial;
    uint8_t previous[HASH_BYTES]; /* hash of the record before; zeros of the first */
    int64_t at_us;
    enum anchor_kind kind;
    bool has_since;      /* older versions did not say */
    int64_t since_us;    /* lines from before are taken as they were found then; 0 = none are */
    int64_t begin;       /* the record behind which all of those are named; 0 = none does, and only
                            the time tells them (older versions) */
    int64_t lines;       /* written in all, as far as its writer knew */
    int64_t through;     /* SEAM: last serial of the anchor file; TRIM: last serial removed */
    uint8_t through_hash[HASH_BYTES]; /* and that record's hash */
    struct str reason;   /* CUTS, BLANKS: retention, delete, purge; SEAM: foreign; HEADS, BLANKS:
                            adopted; REFUSED: cut, gone */
    bool is_signed;
    uint8_t key[SIGN_PUBLIC_BYTES];
    struct str items;    /* parsed: the JSON array of heads, cuts or blanks */
    uint8_t hash[HASH_BYTES]; /* parsed: of the record's text */
};

/* Puts the record's text into out and fills row, which points into out. key NULL = unsigned.
 * anchor->is_signed, key and hash are set here. -ERR_MEMORY. */
int anchor_make(struct anchor *anchor, const struct log_part *items, uint32_t count,
                const struct sign_key *key, struct buf *out, struct anchor_row *row);

/* False when the text is no record. What it says is not yet believed: see anchor_signed. */
bool anchor_parse(struct str record, struct anchor *anchor);
/* False behind the last one. Of one that says nothing that can be read only `unread` is set. lines
 * 0 = not known. */
bool anchor_next_item(struct json_iter *iter, struct log_part *item);

/* Is the signature by the key the record names? */
bool anchor_signature_good(const struct anchor *anchor, struct str record, struct str signature);

/* A line of the anchor file, with its newline; and back, pointing into the line. */
void anchor_line_write(struct buf *out, const struct anchor_row *row);
bool anchor_line_parse(struct str line, struct str *record, struct str *signature);

#endif
