/* What tamper-evident logs cost: the hash of one line, a line written to an SQLite store with it (as
 * the queue's thread does, without the commit), and lines verified in a second. Prints one line of
 * JSON.
 *
 *   log_chain FOLDER [LINES]   the store is made there and removed */
#include "core/logverify.h"
#include "store/log_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BATCH 100        /* lines of one report */
#define PER_EXECUTION 1000
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

/* In batches of one report each, commits between them not counted. */
static double write_ns(struct store *store, int64_t lines, uint32_t batch)
{
    struct log_entry entries[BATCH];
    int64_t spent = 0;
    struct err err = {0};

    for (int64_t i = 0; i < lines; i += batch) {
        int64_t began;

        check(store->verbs->begin(store, &err), &err);
        for (uint32_t j = 0; j < batch; j++) {
            entries[j] = (struct log_entry){.execution_id = execution_of(i), .level = SEVERITY_INFO,
                                            .message = MESSAGE, .context = CONTEXT,
                                            .logged_at_us = i};
            entries[j].id.bytes[0] = 1;
        }
        began = now_ns();
        check(store->verbs->logs_insert(store, entries, batch, &err), &err);
        spent += now_ns() - began;
        check(store->verbs->commit(store, &err), &err);
    }
    return (double)spent / (double)lines;
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

static void on_pending(void *ctx, const struct log_head *head)
{
    logverify_pending(ctx, head);
}

static void on_line(void *ctx, const struct log_line *line, struct str chain_hash)
{
    logverify_line(ctx, line, chain_hash);
}

static double verify_per_s(struct store *store, int64_t lines)
{
    struct logverify_options options = {.tell = on_finding};
    struct logverify *verify = logverify_new(&options);
    const struct log_walk walk = {on_record, on_pending, on_line, verify};
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

static void remove_store(const char *path)
{
    static const char *const beside[] = {"", "-wal", "-shm", "-lock", "-ballast"};
    char name[4200];

    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, beside[i]);
        unlink(name);
    }
}

int main(int argc, char **argv)
{
    struct store_options options = {.allow_network_fs = true};
    int64_t lines = argc > 2 ? strtoll(argv[2], NULL, 10) : 200000;
    struct store *store;
    struct err err = {0};
    double hash, single, batched, per_s;
    char path[4096];

    if (argc < 2 || lines < BATCH || lines % PER_EXECUTION != 0) {
        fprintf(stderr, "usage: log_chain FOLDER [LINES, in thousands]\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/log-chain.db", argv[1]);
    remove_store(path);
    hash = hash_ns(lines);
    check(store_open(&store, str_of(path), &options, &err), &err);
    single = write_ns(store, PER_EXECUTION, 1);
    store->verbs->close(store);
    remove_store(path);
    check(store_open(&store, str_of(path), &options, &err), &err);
    batched = write_ns(store, lines, BATCH);
    per_s = verify_per_s(store, lines);
    store->verbs->close(store);
    remove_store(path);
    printf("{\"lines\":%lld,\"hash_us\":%.2f,\"write_alone_us\":%.2f,\"write_batched_us\":%.2f,"
           "\"verify_lines_per_s\":%.0f}\n", (long long)lines, hash / 1000, single / 1000,
           batched / 1000, per_s);
    return 0;
}
