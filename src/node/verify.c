/* perdura verify: the store compared with itself, its checkpoints with their hashes, its logs with
 * their chains and with signed records, also those of an anchor file. Only reads; a store that is
 * in use is seen as it was at one moment. One thread. */
#include "core/log/audit.h"
#include "core/log/logverify.h"
#include "node/node.h"
#include "node/verify_sealed.h"
#include "engine/logs/anchor_file.h"
#include "engine/stores/routes.h"
#include "store/catalog_store.h"
#include "store/log_store.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FINDINGS_MAX 10000 /* beyond that the store is lost anyway */
#define COUNTS_MAX 11
#define FRESH_MS 60000     /* so long a line may wait for its record */

struct findings {
    struct arena *arena;
    struct verify_finding *list;
    uint32_t count;
    bool only_checkpoints;
    bool of_logs; /* the current findings are about the tables of logs */
    struct str where; /* shown behind each finding where there are several stores */
};

/* NULL: there were too many, and the last one says so. */
static struct verify_finding *add_finding(struct findings *findings, struct str kind,
                                          struct str subject, struct str detail)
{
    char shown[256];

    if (findings->count + 1 >= FINDINGS_MAX) {
        findings->count = FINDINGS_MAX;
        findings->list[FINDINGS_MAX - 1] = (struct verify_finding){
            STR("store"), STR("store"), STR("there are more findings; repair these first"),
            {{0}}, STR_NONE};
        return NULL;
    }
    if (findings->where.data) {
        store_shown(findings->where, shown, sizeof shown);
        detail = arena_format(findings->arena, STR_FMT " (%s)", STR_ARG(detail), shown);
    }
    findings->list[findings->count] = (struct verify_finding){kind, subject, detail, {{0}},
                                                              STR_NONE};
    return &findings->list[findings->count++];
}

/* "… of task ID …": its id, where the line names one. */
static struct str task_named(struct str detail)
{
    const char *at = detail.len ? memmem(detail.data, detail.len, " of task ", 9) : NULL;
    struct str id = at ? str_span(at + 9, strcspn(at + 9, " ,.;:")) : STR_NONE;
    struct uuid parsed;

    return id.data && uuid_parse(id, &parsed) ? id : STR_NONE;
}

/* A line is "table: what is wrong". */
static void on_line(void *ctx, const char *line)
{
    struct findings *findings = ctx;
    struct str text = arena_str(findings->arena, str_of(line));
    const char *colon = text.data ? strstr(text.data, ": ") : NULL;
    struct str subject = colon ? str_span(text.data, (size_t)(colon - text.data)) : STR("store");
    struct str detail = colon ? str_of(colon + 2) : text;
    bool is_checkpoint = str_is(subject, "task_checkpoints");
    struct verify_finding *added;

    if (findings->only_checkpoints && !findings->of_logs && !is_checkpoint)
        return;
    added = add_finding(findings, is_checkpoint ? STR("checkpoint") : STR("store"), subject,
                        detail);
    if (added)
        added->task_id = task_named(detail);
}

/* ---- logs ---- */

static void on_log_finding(void *ctx, const struct logverify_finding *finding)
{
    struct findings *findings = ctx;
    bool of_trail = finding->execution_id && audit_is_chain(finding->execution_id);
    const char *at = of_trail ? memmem(finding->subject.data, finding->subject.len, "line ", 5)
                              : NULL;
    struct str subject =
        at ? arena_format(findings->arena, "entry %.*s",
                          (int)(finding->subject.data + finding->subject.len - at) - 5, at + 5)
           : arena_str(findings->arena, finding->subject);
    struct verify_finding *added = add_finding(findings, str_of(of_trail ? "audit" : finding->kind),
                                               subject,
                                               arena_str(findings->arena, finding->detail));

    if (added && finding->execution_id && !of_trail)
        added->execution = *finding->execution_id;
}

/* Which tasks the executions are of. Their rows may be gone or damaged as well; the findings are
 * reported all the same. */
static void name_tasks(struct store *store, struct findings *findings, uint32_t from)
{
    for (uint32_t i = from; i < findings->count; i++) {
        struct verify_finding *finding = &findings->list[i];
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct execution *execution = NULL;
        char id[UUID_TEXT_BYTES];
        struct err err = {0};

        if (!uuid_is_nil(&finding->execution) &&
            store->verbs->execution_load(store, uuid7_key(&finding->execution), &arena, &execution,
                                         &err) == 0 &&
            execution && uuid_eq(&execution->id, &finding->execution)) {
            uuid_format(&execution->task_id, id);
            finding->task_id = arena_str(findings->arena, str_of(id));
        }
    }
}

static void on_anchor_line(void *ctx, struct str line)
{
    logverify_anchor_line(ctx, line);
}

/* A run with lines. */
struct seen_run {
    struct uuid id, task_id;
};

/* The verifier, how many of its lines are entries of the audit trail, and whose the others are. */
struct log_reading {
    struct logverify *verify;
    int64_t entries;
    bool keeps_runs;
    bool failed; /* out of memory */
    struct seen_run *runs;
    size_t runs_count, runs_cap;
};

static void on_record(void *ctx, const struct anchor_row *row)
{
    logverify_record(((struct log_reading *)ctx)->verify, row);
}

static void on_note(void *ctx, const struct log_note *note)
{
    logverify_note(((struct log_reading *)ctx)->verify, note);
}

static void keep_run(struct log_reading *reading, const struct log_line *line)
{
    size_t count = reading->runs_count;

    if (uuid_is_nil(&line->task_id) ||
        (count > 0 && uuid_eq(&reading->runs[count - 1].id, &line->execution_id)))
        return;
    if (count == reading->runs_cap) {
        size_t cap = count ? 2 * count : 1024;
        struct seen_run *runs = realloc(reading->runs, cap * sizeof *runs);

        if (!runs) {
            reading->failed = true;
            return;
        }
        reading->runs = runs;
        reading->runs_cap = cap;
    }
    reading->runs[reading->runs_count++] = (struct seen_run){line->execution_id, line->task_id};
}

static void on_log_line(void *ctx, const struct log_line *line, struct str chain_hash)
{
    struct log_reading *reading = ctx;

    if (reading->keeps_runs)
        keep_run(reading, line);
    reading->entries += audit_is_chain(&line->execution_id);
    logverify_line(reading->verify, line, chain_hash);
}

/* What the store says of itself: its key, and since when lines have hashes. */
static int read_facts(struct store *store, struct arena *arena, struct logverify_options *options,
                      struct str *public_key, struct err *err)
{
    struct str since;

    TRY(store->verbs->info_get(store, "log_public_key", arena, public_key, err));
    TRY(store->verbs->info_get(store, "log_chain_since", arena, &since, err));
    options->has_key = public_key->data &&
                       hash_from_hex(*public_key, options->key, sizeof options->key);
    if (since.data)
        str_to_int64(since, &options->since_us);
    return 0;
}

static int read_keys(const struct verify_request *request, struct logverify_options *options,
                     struct err *err)
{
    if (request->public_keys_count > LOGVERIFY_KEYS_MAX)
        return err_set(err, ERR_USAGE, "at most %d public keys can be given", LOGVERIFY_KEYS_MAX);
    for (uint32_t i = 0; i < request->public_keys_count; i++)
        if (!hash_from_hex(request->public_keys[i], options->keys[i], SIGN_PUBLIC_BYTES))
            return err_set(err, ERR_USAGE, "a public key is 64 hexadecimal digits, as 'perdura "
                           "verify --logs' prints them");
    options->keys_count = request->public_keys_count;
    return 0;
}

/* Whose signatures count: those given, otherwise the store's word. */
static bool is_meant(const struct logverify_options *options, const struct sign_key *key)
{
    uint8_t public_key[SIGN_PUBLIC_BYTES];
    bool meant = options->keys_count == 0 && options->has_key;

    sign_key_public(key, public_key);
    if (meant)
        meant = memcmp(options->key, public_key, sizeof public_key) == 0;
    for (uint32_t i = 0; i < options->keys_count; i++)
        meant |= memcmp(options->keys[i], public_key, sizeof public_key) == 0;
    return meant;
}

struct totals {
    int64_t texts; /* that were encrypted and could be opened */
    int64_t tasks;
    struct logverify_counts logs; /* without the audit trail */
    int64_t entries;              /* of that */
    struct str public_key;
    struct str key_missed; /* why the key of a store was not at hand; absent = it was */
    struct str anchor;     /* as asked for, or the configured one */
    const struct str *before; /* the stores that readers look into first */
    uint32_t before_count;
};

/* The key itself, where it is at hand: then notes of lines that no record names yet are checked.
 * Nothing is changed: one that others may read is left alone. */
static struct log_mac *load_mac(const struct settings *settings, struct store *store,
                                const struct logverify_options *options, struct arena *arena,
                                struct str *missed)
{
    const char *path = settings->logs.key.data ? arena_cstr(arena, settings->logs.key) : NULL;
    struct sign_key *key = NULL;
    struct log_mac *mac = NULL;
    struct err err = {0};
    struct stat info;

    if (!path && store->path)
        path = arena_format(arena, "%s.log-key", store->path).data;
    if (!path)
        *missed = STR("log_key is not set");
    else if (stat(path, &info) < 0)
        *missed = arena_format(arena, "%s is not there", path);
    else if (info.st_mode & (S_IRWXG | S_IRWXO))
        *missed = arena_format(arena, "other users may read %s", path);
    else if (sign_key_load(path, settings->logs.key.data != NULL, &key, &err) < 0 || !key)
        *missed = arena_format(arena, "%s cannot be read", path);
    else if (!is_meant(options, key))
        *missed = arena_format(arena, "%s is another key", path);
    else
        mac = logmac_new(key);
    sign_key_free(key);
    return mac;
}

/* So long a line may wait for its record. */
static int64_t wait_us(const struct settings *settings)
{
    int64_t every_ms = settings->logs.anchor_every_ms;

    return (3 * every_ms > FRESH_MS ? 3 * every_ms : FRESH_MS) * CLOCK_MS_US;
}

static int read_all(struct log_reading *reading, struct store *store, const char *anchor,
                    struct err *err)
{
    const struct log_walk walk = {on_record, on_note, on_log_line, reading};
    int rc = 0;

    if (anchor && access(anchor, F_OK) == 0) /* before the store, which only grows meanwhile */
        rc = anchor_file_read(anchor, on_anchor_line, reading->verify, err);
    return rc < 0 ? rc : store->verbs->logs->walk(store, &walk, err);
}

/* Finds an attacker who sets the store back and removes the file, too. */
static void check_anchor_there(const char *anchor, const struct logverify_counts *counts,
                               struct findings *findings)
{
    if (anchor && counts->records > 0 && counts->anchor_records == 0)
        add_finding(findings, STR("anchor"), str_of(anchor),
                    STR("the anchor file is not there or empty, and the store has records: it was "
                        "removed, or no server has run with it yet"));
}

static const struct store_options only_looks = {.no_migrate = true,
                                                .allow_network_fs = true,
                                                .no_lock = true,
                                                .only_reads = true};

/* Readers that ask for the task, or for the execution itself, end in the other store. */
static int find_hiding(struct store *before, struct store_reader *reader,
                       const struct seen_run *run, const char **what, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct execution *execution = NULL;
    struct task *task;

    TRY(before->verbs->read_task(reader, &run->task_id, &arena, &task, err));
    if (!task)
        TRY(before->verbs->catalog->read_execution(reader, &run->id, &arena, &execution, err));
    *what = task ? "a task" : execution ? "an execution" : NULL;
    return 0;
}

static int tell_hidden(struct store *before, struct str where, const struct log_reading *reading,
                       struct findings *findings, struct err *err)
{
    struct store_reader *reader = before->verbs->reader_open(before, err);
    int rc = reader ? 0 : -(int)err->code;

    for (size_t i = 0; rc == 0 && i < reading->runs_count; i++) {
        char id[UUID_TEXT_BYTES], shown[256];
        struct verify_finding *added;
        const char *what;

        rc = find_hiding(before, reader, &reading->runs[i], &what, err);
        if (rc < 0 || !what)
            continue;
        uuid_format(&reading->runs[i].id, id);
        store_shown(where, shown, sizeof shown);
        added = add_finding(findings, STR("log"), arena_format(findings->arena, "execution %s", id),
                            arena_format(findings->arena, "readers do not find its lines: there is "
                                         "%s of the same id in %s, where they look first", what,
                                         shown));
        if (added)
            added->execution = reading->runs[i].id;
    }
    if (reader)
        before->verbs->reader_close(reader);
    return rc;
}

/* What is in a store that readers ask first stands in the way of the same id behind it. */
static int check_hidden(const struct totals *totals, const struct log_reading *reading,
                        struct findings *findings, struct err *err)
{
    if (reading->failed)
        return err_no_memory(err);
    for (uint32_t i = 0; reading->runs_count > 0 && i < totals->before_count; i++) {
        struct store *before;
        int rc;

        TRY(store_open(&before, totals->before[i], &only_looks, err));
        rc = tell_hidden(before, totals->before[i], reading, findings, err);
        before->verbs->close(before);
        TRY(rc);
    }
    return 0;
}

static int verify_logs(struct store *store, const struct settings *settings,
                       const struct verify_request *request, const char *anchor,
                       struct findings *findings, struct totals *totals, struct str *public_key,
                       struct err *err)
{
    struct logverify_options options = {.tell = on_log_finding, .ctx = findings,
                                        .fresh_us = clock_wall_us() - wait_us(settings),
                                        .ahead_us = clock_wall_us() + wait_us(settings)};
    struct logverify_counts counts = {0}, *total = &totals->logs;
    struct str missed = STR_NONE;
    uint32_t found_before = findings->count;
    struct log_reading reading = {.keeps_runs = totals->before_count > 0};
    int rc = read_keys(request, &options, err);

    if (rc == 0)
        rc = read_facts(store, findings->arena, &options, public_key, err);
    if (rc < 0)
        return rc;
    options.mac = load_mac(settings, store, &options, findings->arena, &missed);
    reading.verify = logverify_new(&options);
    if (!reading.verify) {
        logmac_free(options.mac);
        return err_no_memory(err);
    }
    rc = read_all(&reading, store, anchor, err);
    if (rc == 0)
        rc = logverify_end(reading.verify, &counts, err);
    logverify_free(reading.verify);
    logmac_free(options.mac);
    if (rc == 0)
        rc = check_hidden(totals, &reading, findings, err);
    free(reading.runs);
    name_tasks(store, findings, found_before);
    if (rc == 0)
        check_anchor_there(anchor, &counts, findings);
    if (options.has_key && missed.data && !totals->key_missed.data)
        totals->key_missed = missed;
    totals->entries += reading.entries;
    total->lines += counts.lines - reading.entries;
    total->emptied += counts.emptied;
    total->adopted += counts.adopted;
    total->waiting += counts.waiting;
    total->executions += counts.executions - (reading.entries > 0);
    total->records += counts.records;
    total->unsigned_records += counts.unsigned_records;
    total->anchor_records += counts.anchor_records;
    return rc;
}

/* ---- all of it ---- */

static int count_tasks(struct store *store, struct arena *arena, int64_t *total, struct err *err)
{
    struct lane_count *lanes;
    uint32_t count;

    TRY(store->verbs->counts_load(store, arena, &lanes, &count, err));
    for (uint32_t i = 0; i < count; i++)
        *total += lanes[i].tasks;
    return 0;
}

/* Nothing that is read through a schema of others proves anything: that is all that is said. */
static int refuse_schema(struct findings *findings, struct err *err)
{
    add_finding(findings, STR("schema"), STR("store"),
                arena_format(findings->arena, "%s; nothing else was checked", err->text));
    *err = (struct err){0};
    return 0;
}

/* The report keeps what was found before the failure: it may be why. */
static int end_early(struct findings *findings, struct err *err)
{
    add_finding(findings, STR("store"), STR("store"),
                arena_format(findings->arena, "%s; not everything was checked", err->text));
    *err = (struct err){0};
    return 0;
}

/* What is asked for: the store itself unless only logs are, logs unless only checkpoints are. */
static int verify_one(struct str where, const struct settings *settings, bool is_main,
                      const struct verify_request *request, struct findings *findings,
                      struct totals *totals, struct err *err)
{
    bool logs = request->logs || request->anchor.data || !request->checkpoints;
    bool whole = request->checkpoints || !(request->logs || request->anchor.data);
    char *anchor = is_main && totals->anchor.data ? arena_cstr(findings->arena, totals->anchor)
                                                  : NULL;
    struct str public_key = STR_NONE;
    uint32_t found_before = findings->count;
    struct store *store;
    int64_t found, texts = 0;
    int rc = store_open(&store, where, &only_looks, err);

    if (rc < 0)
        return strcmp(err->field, "schema") == 0 ? refuse_schema(findings, err) : rc;
    if (whole)
        rc = store->verbs->verify(store, on_line, findings, &found, err);
    if (rc == 0 && whole)
        rc = verify_sealed(store, settings, on_line, findings, &texts, err);
    totals->texts += texts;
    findings->of_logs = logs && (request->checkpoints || !whole);
    if (rc == 0 && findings->of_logs)
        rc = store->verbs->logs->whole(store, on_line, findings, err);
    findings->of_logs = false;
    if (rc == 0 && logs)
        rc = verify_logs(store, settings, request, anchor, findings, totals, &public_key, err);
    if (rc == 0)
        rc = count_tasks(store, findings->arena, &totals->tasks, err);
    store->verbs->close(store);
    if (is_main)
        totals->public_key = public_key;
    if (rc < 0 && strcmp(err->field, "schema") == 0)
        rc = refuse_schema(findings, err);
    return rc < 0 && findings->count > found_before ? end_early(findings, err) : rc;
}

static void add_count(struct verify_count *counts, struct verify_report *report, struct str what,
                      int64_t checked)
{
    counts[report->counts_count++] = (struct verify_count){what, checked};
}

static int fill_report(const struct totals *totals, const struct verify_request *request,
                       struct findings *findings, struct verify_report *report, struct err *err)
{
    bool asks_logs = request->logs || request->anchor.data;
    bool only_checkpoints = request->checkpoints && !asks_logs;
    struct verify_count *counts = arena_alloc_array(findings->arena, COUNTS_MAX, sizeof *counts);

    TRY_MEMORY(counts && !findings->arena->failed);
    *report = (struct verify_report){.findings = findings->list, .findings_count = findings->count,
                                     .counts = counts, .public_key = totals->public_key,
                                     .key_missed = totals->key_missed};
    if (request->checkpoints || !asks_logs)
        add_count(counts, report, STR("tasks"), totals->tasks);
    if (totals->texts > 0)
        add_count(counts, report, STR("encrypted texts"), totals->texts);
    if (only_checkpoints)
        return 0;
    if (totals->entries > 0)
        add_count(counts, report, STR("audit entries"), totals->entries);
    add_count(counts, report, STR("log lines"), totals->logs.lines);
    add_count(counts, report, STR("executions with logs"), totals->logs.executions);
    add_count(counts, report, STR("records"), totals->logs.records);
    if (totals->logs.emptied > 0)
        add_count(counts, report, STR("emptied log lines"), totals->logs.emptied);
    if (totals->logs.adopted > 0)
        add_count(counts, report, STR("log lines from before the key"), totals->logs.adopted);
    if (totals->logs.waiting > 0)
        add_count(counts, report, STR("log lines that wait for a record"), totals->logs.waiting);
    if (totals->logs.unsigned_records > 0)
        add_count(counts, report, STR("unsigned records"), totals->logs.unsigned_records);
    if (totals->anchor.data)
        add_count(counts, report, STR("anchor records"), totals->logs.anchor_records);
    return 0;
}

/* One that is asked for has to be there; the configured one comes with the first record. */
static int find_anchor(const struct settings *settings, const struct verify_request *request,
                       struct arena *arena, struct str *anchor, struct err *err)
{
    const char *path = request->anchor.data ? arena_cstr(arena, request->anchor) : NULL;

    *anchor = request->anchor.data ? request->anchor : settings->logs.anchor;
    if (path && access(path, F_OK) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no anchor file '%s'", path);
    return 0;
}

/* Of the main store and of those that queues are routed to; the anchor file is about the main
 * one. */
int node_verify(const struct settings *settings, const struct verify_request *request,
                struct arena *arena, struct verify_report *report, struct err *err)
{
    struct findings findings = {.arena = arena, .only_checkpoints = request->checkpoints};
    struct totals totals = {.tasks = 0};
    struct str stores[ROUTES_MAX];
    uint32_t stores_count;

    findings.list = TRY_MEMORY(arena_alloc_array(arena, FINDINGS_MAX, sizeof *findings.list));
    TRY(find_anchor(settings, request, arena, &totals.anchor, err));
    TRY(routes_stores(settings, stores, &stores_count, err));
    for (uint32_t i = 0; i < stores_count; i++) {
        findings.where = stores_count > 1 ? stores[i] : STR_NONE;
        totals.before = stores;
        totals.before_count = i;
        TRY(verify_one(stores[i], settings, i == 0, request, &findings, &totals, err));
    }
    return fill_report(&totals, request, &findings, report, err);
}
