/* The logs of a store verified as `perdura verify --logs` does, for test programs: how many findings
 * there are and what the first one says. */
#ifndef TESTS_LOG_CHECK_H
#define TESTS_LOG_CHECK_H

#include "core/log/logverify.h"
#include "engine/logs/anchor_file.h"
#include "store/log_store.h"

#include <stdio.h>

struct log_check {
    int64_t findings;
    char kind[32];
    char subject[128]; /* of the first */
    char detail[512];
    struct logverify_counts counts;
};

static inline void log_check_tell(void *ctx, const struct logverify_finding *finding)
{
    struct log_check *check = ctx;

    if (check->findings++ > 0)
        return;
    snprintf(check->kind, sizeof check->kind, "%s", finding->kind);
    snprintf(check->subject, sizeof check->subject, STR_FMT, STR_ARG(finding->subject));
    snprintf(check->detail, sizeof check->detail, STR_FMT, STR_ARG(finding->detail));
}

static inline void log_check_record(void *ctx, const struct anchor_row *row)
{
    logverify_record(ctx, row);
}

static inline void log_check_note(void *ctx, const struct log_note *note)
{
    logverify_note(ctx, note);
}

static inline void log_check_line(void *ctx, const struct log_line *line, struct str chain_hash)
{
    logverify_line(ctx, line, chain_hash);
}

static inline void log_check_anchor(void *ctx, struct str line)
{
    logverify_anchor_line(ctx, line);
}

/* anchor NULL = without a file. */
static inline struct log_check log_check_run(struct store *store, const char *anchor)
{
    struct log_check check = {.findings = 0};
    struct logverify_options options = {.tell = log_check_tell, .ctx = &check};
    struct logverify *verify = logverify_new(&options);
    const struct log_walk walk = {log_check_record, log_check_note, log_check_line, verify};
    struct err err = {0};

    ASSERT(verify);
    if (anchor && anchor_file_read(anchor, log_check_anchor, verify, &err) < 0)
        fprintf(stderr, "anchor: %s\n", err.text);
    if (store->verbs->logs->walk(store, &walk, &err) < 0 ||
        logverify_end(verify, &check.counts, &err) < 0) {
        fprintf(stderr, "walk: %s\n", err.text);
        check.findings = -1;
    }
    logverify_free(verify);
    return check;
}

#endif
