/* Inside of the verification of logs: records (logverify_records.c) and lines (logverify.c). */
#ifndef CORE_LOG_LOGVERIFY_INT_H
#define CORE_LOG_LOGVERIFY_INT_H

#include "core/log/logverify.h"

/* A head, cut or blank that a record, or the store's waiting list (serial 0), names. */
struct told {
    struct log_head head;
    int64_t serial;
    int64_t lines;           /* of cuts: how many went; of heads: how many came, as far as known */
    bool follows;            /* of heads: `from` is the hash of the line before those */
    uint8_t from[HASH_BYTES];
    bool written;            /* of heads: a node remembered it; others may name the lines, too */
    bool based;              /* of cuts: records name the lines up to `base`, and no later ones */
    int64_t base;
    enum log_severity level; /* of blanks */
    bool closed;             /* no line may follow */
    bool kept;               /* an older record said so; the one that tells of its end repeats it */
    bool noted;              /* by a note of the store */
    bool unproven;           /* a note that an attacker may have made: only the key could tell, */
    bool waits;              /* of lines that wait for a record, it says */
};

struct told_list {
    struct told *items;
    size_t count, cap;
};

struct known { /* a record, of the file or of the store */
    int64_t serial;
    int64_t at_us;
    uint8_t hash[HASH_BYTES];
    bool seam;
};

struct known_list {
    struct known *items;
    size_t count, cap;
};

/* Where the store's records begin. */
struct verified_start {
    int64_t previous_serial; /* they begin behind this one ... */
    uint8_t previous[HASH_BYTES];
    bool begins;      /* ... which is the first, or the first after a regression, */
    bool trimmed;     /* or a record says what became of those before */
    bool begun;       /* a record names all lines from before: no time tells them any more */
    int64_t begin;    /* the newest record that a key began with: it opens what it finds again */
    bool since_told;  /* by a record; then options.since_us is that */
    int64_t since_us; /* by the newest record that says it ... */
    uint8_t since_key[SIGN_PUBLIC_BYTES]; /* ... and whose that is */
};

/* Why two records of an execution cannot both be right; why NULL = they fit. */
struct conflict {
    const char *why;
    int64_t seq;    /* from about this line on */
    int64_t serial; /* the later record */
};

/* What records have named of an execution so far; heads come by their line. */
struct named {
    struct log_head before; /* the line before `at` that one names */
    struct log_head at;
    bool counted;           /* one that names it says how many lines came with it */
    size_t cut_at;          /* the cut that it went with, if any did */
};

/* The execution whose lines are coming. */
struct verified_run {
    struct uuid id;
    bool any, bad;
    struct log_head at; /* the last line that was good */
    int64_t plain_seq;  /* the last one from before there were records */
    size_t head_at;     /* next of heads */
    size_t cut_at;
    int64_t cut_seq;
    int64_t cut_serial;  /* of the record that says so */
    int64_t cut_lines;  /* so many went in all the cuts, they say; -1 = one does not */
    size_t blank_at;                    /* next of blanks */
    int64_t blank_seqs[SEVERITY_COUNT]; /* lines of a level up to here may have been emptied */
    int64_t signed_seq;                 /* the highest one that heads and cuts name */
    int64_t proven_seq;                 /* and the highest that they name for certain */
    int64_t closed_seq; /* none may follow this one; INT64_MAX = it was not closed */
    int64_t closings;   /* records that close it, beside those that repeat it */
    int64_t closing;    /* the last of them, */
    int64_t kept;       /* and the first that repeats one; 0 = none */
    struct conflict conflict; /* records that do not fit each other */
    int64_t last_at_us; /* of the line that was seen last */
    int64_t note_seq;   /* the highest one that a note names */
    int64_t stale_seq;  /* the first that waits for a record too long; 0 = none */
};

struct logverify {
    struct logverify_options options;
    struct logverify_counts counts;
    enum err_code failed; /* what is known may be incomplete */
    struct known_list file, store;
    int64_t file_lines;
    struct buf piece;     /* a line of the file that is no record, until the next one is seen */
    int64_t piece_at;
    struct told_list heads, cuts, blanks;
    bool key_known;       /* the one that is trusted where none was given */
    uint8_t key[SIGN_PUBLIC_BYTES];
    bool store_signed;    /* a signed record of the store was seen */
    bool store_told;      /* a record of the store is of a version that keeps notes */
    int64_t foreign_seam; /* the first record that tells of others that were gone or forged */
    struct known seen;    /* the last record of the store, believed or not; serial 0 = none */
    bool foreign_told;    /* a finding has named this key, which is not the store's */
    uint8_t foreign_key[SIGN_PUBLIC_BYTES];
    struct verified_start start;
    bool sorted;

    /* The execution whose lines are coming. */
    struct verified_run run;
};

void logverify_tell(struct logverify *verify, const char *kind, struct str subject,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
void logverify_bad_line(struct logverify *verify, int64_t seq, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void logverify_add_told(struct logverify *verify, struct told_list *list, const struct told *told);
/* logverify.c: a record says that this was written without the key, or is gone */
void logverify_refused(struct logverify *verify, const struct log_head *head, int64_t serial,
                       struct str reason);
/* logverify_named.c: each head of the execution, by line; then what they say together */
void logverify_take_named(struct logverify *verify, const struct told *head, struct named *named);
void logverify_check_named(struct logverify *verify);
/* logverify_records.c: after the last record */
void logverify_compare_anchor(struct logverify *verify);

#endif
