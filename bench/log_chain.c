/* What tamper-evident logs cost: the hash of one line, lines committed to an SQLite store in a second
 * with hashes and, in turn, by the same code without, and lines verified in a second. Prints one line
 * of JSON. Usually run by logs.py.
 *
 *   log_chain FOLDER [LINES]   the store is made there, and stays: FOLDER/log-chain.db */
#include "core/log/logverify.h"
#include "store/log_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BATCH 100        /* lines of one report */
#define PER_EXECUTION 1000
#define TURN 10000       /* lines with, then as many without */
#define MESSAGE STR("GET /v1/orders/4711 answered 200 after 12 ms, 3 of 5 parts from the cache")
#define CONTEXT STR("{\"request\":\"b7c1\",\"user\":{\"id\":4711},\"ms\":12}")

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void check(int rc, const struct err *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "log_chain: %s\n", err->text);
    exit(1);
}

static struct uuid execution_of(int64_t line)
{
    struct uuid id = {{1, 0x9a, 0, 0, 0, 0, 0x70}};
    int64_t number = line / PER_EXECUTION;

    for (int i = 0; i < 4; i++)
        id.bytes[12 + i] = (uint8_t)(number >> (24 - 8 * i));
    return id;
}

int __real_logchain_step(struct log_head *head, const struct log_line *line);
int __wrap_logchain_step(struct log_head *head, const struct log_line *line);

static bool without; /* this program has one thread */

/* The linker puts it in the place of logchain_step. */
int __wrap_logchain_step(struct log_head *head, const struct log_line *line)
{
    if (!without)
        return __real_logchain_step(head, line);
    head->execution_id = line->execution_id;
    head->seq = line->seq;
    head->hashed = true;
    return 0;
}

static double hash_ns(int64_t lines)
{
    struct log_head head = {.seq = 0};
    int64_t began = now_ns();
    char hex[HASH_HEX_BYTES + 1];

    for (int64_t i = 0; i < lines; i++) {
        struct log_line line = {.seq = i + 1, .level = SEVERITY_INFO, .message = MESSAGE,
                                .context = CONTEXT, .logged_at_us = i};

        logchain_step(&head, &line);
        hash_hex(head.hash, HASH_BYTES, hex);
    }
    return (double)(now_ns() - began) / (double)lines;
}

/* From one line on, in batches of one report each and a commit; seconds. */
static double write_lines(struct store *store, int64_t from, int64_t lines)
{
    struct log_entry entries[BATCH];
    int64_t began = now_ns();
    struct err err = {0};

    for (int64_t i = from; i < from + lines; i += BATCH) {
        check(store->verbs->begin(store, &err), &err);
        for (uint32_t j = 0; j < BATCH; j++) {
            entries[j] = (struct log_entry){.execution_id = execution_of(i), .level = SEVERITY_INFO,
                                            .message = MESSAGE, .context = CONTEXT,
                                            .logged_at_us = i};
            entries[j].id.bytes[0] = 1;
        }
        check(store->verbs->logs_insert(store, entries, BATCH, &err), &err);
        check(store->verbs->commit(store, &err), &err);
    }
    return (double)(now_ns() - began) / 1e9;
}

static void on_finding(void *ctx, const struct logverify_finding *finding)
{
    (void)ctx;
    fprintf(stderr, "log_chain: " STR_FMT "\n", STR_ARG(finding->detail));
}

static void on_record(void *ctx, const struct anchor_row *row)
{
    logverify_record(ctx, row);
}

static void on_note(void *ctx, const struct log_note *note)
{
    logverify_note(ctx, note);
}

static void on_line(void *ctx, const struct log_line *line, struct str chain_hash)
{
    logverify_line(ctx, line, chain_hash);
}

static double verify_per_s(struct store *store, int64_t lines)
{
    struct logverify_options options = {.tell = on_finding};
    struct logverify *verify = logverify_new(&options);
    const struct log_walk walk = {on_record, on_note, on_line, verify};
    struct logverify_counts counts;
    struct err err = {0};
    int64_t began = now_ns();

    ASSERT(verify);
    check(store->verbs->logs->walk(store, &walk, &err), &err);
    check(logverify_end(verify, &counts, &err), &err);
    logverify_free(verify);
    ASSERT(counts.lines == lines && counts.findings == 0);
    return (double)lines * 1e9 / (double)(now_ns() - began);
}

static struct store *open_new(const char *folder, const char *name, char path[4200])
{
    static const char *const beside[] = {"", "-wal", "-shm", "-lock", "-ballast"};
    struct store_options options = {.allow_network_fs = true};
    struct err err = {0};
    struct store *store;
    char file[4300];

    snprintf(path, 4200, "%s/%s", folder, name);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        snprintf(file, sizeof file, "%s%s", path, beside[i]);
        unlink(file);
    }
    check(store_open(&store, str_of(path), &options, &err), &err);
    return store;
}

int main(int argc, char **argv)
{
    int64_t lines = argc > 2 ? strtoll(argv[2], NULL, 10) : 200000;
    double hash, with_s = 0, without_s = 0, per_s;
    struct store *chained, *plain;
    char path[4200];

    if (argc < 2 || lines < TURN || lines % TURN != 0) {
        fprintf(stderr, "usage: log_chain FOLDER [LINES, in ten thousands]\n");
        return 2;
    }
    hash = hash_ns(lines);
    plain = open_new(argv[1], "log-plain.db", path);
    chained = open_new(argv[1], "log-chain.db", path);
    for (int64_t i = 0; i < lines; i += TURN) {
        with_s += write_lines(chained, i, TURN);
        without = true;
        without_s += write_lines(plain, i, TURN);
        without = false;
    }
    per_s = verify_per_s(chained, lines);
    plain->verbs->close(plain);
    chained->verbs->close(chained);
    printf("{\"lines\":%lld,\"hash_us\":%.2f,\"with_per_s\":%.0f,\"without_per_s\":%.0f,"
           "\"walk_per_s\":%.0f}\n", (long long)lines, hash / 1000, (double)lines / with_s,
           (double)lines / without_s, per_s);
    return 0;
}
