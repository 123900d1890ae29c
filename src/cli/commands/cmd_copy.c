/* perdura copy: moves everything from one store to another, SQLite or PostgreSQL, and compares them
 * afterwards. A bar on a terminal, otherwise a line now and then. One thread. */
#include "base/clock.h"
#include "base/json.h"
#include "node/node.h"
#include "cli/config/store_call.h"

#include <stdlib.h>

#define JSON_BYTES_MAX (256 * 1024)
#define DRAW_EVERY_MS 100
#define LINE_EVERY_MS 5000 /* into a pipe */
#define LABEL_BYTES 200
#define KEY_BYTES_MAX 4096

static const struct flag flags[] = {
    {.name = "from", .type = FLAG_TEXT, .value = "STORE",
     .help = "store to copy (default: the configured one)"},
    {.name = "to", .type = FLAG_TEXT, .value = "STORE",
     .help = "store to create: a new file, or an empty database or schema"},
    {.name = "again", .type = FLAG_BOOL,
     .help = "copy a source even if an earlier copy marked it as moved"},
    {0}};

struct view {
    struct call *call;
    struct progress bar;
    int64_t began_us;
    int64_t drawn_ms; /* of elapsed time */
    bool has_line;    /* into a pipe, of this half */
    bool compares;
};

static void draw(struct view *view, const struct copy_step *step, int64_t elapsed_ms)
{
    char label[LABEL_BYTES];
    int64_t percent = step->total > 0 ? step->done * 100 / step->total : 100;

    if (!step->begins && elapsed_ms - view->drawn_ms < DRAW_EVERY_MS)
        return;
    snprintf(label, sizeof label, "%s %s, %lld of %lld rows",
             step->compares ? "comparing" : "copying", step->table, (long long)step->done,
             (long long)step->total);
    progress_draw(&view->bar, percent, str_of(label), elapsed_ms);
    view->drawn_ms = elapsed_ms;
}

static void print_line(struct view *view, const struct copy_step *step, int64_t elapsed_ms)
{
    bool is_new_half = !view->has_line || step->compares != view->compares;

    if (!is_new_half && elapsed_ms - view->drawn_ms < LINE_EVERY_MS)
        return;
    fprintf(view->call->notes.file, "%s %s (%lld of %lld rows)\n",
            step->compares ? "comparing" : "copying", step->table, (long long)step->done,
            (long long)step->total);
    fflush(view->call->notes.file);
    view->drawn_ms = elapsed_ms;
    view->has_line = true;
    view->compares = step->compares;
}

static void on_step(void *ctx, const struct copy_step *step)
{
    struct view *view = ctx;
    int64_t elapsed_ms = (clock_boot_us() - view->began_us) / CLOCK_MS_US;

    if (view->call->notes.interactive)
        draw(view, step, elapsed_ms);
    else
        print_line(view, step, elapsed_ms);
}

static int64_t tasks_per_second(const struct copy_report *report)
{
    return report->copy_us > 0 ? report->tasks * CLOCK_SECOND_US / report->copy_us : 0;
}

static bool is_equal(const struct copy_sum *sum)
{
    return sum->from_rows == sum->to_rows && sum->from_hash == sum->to_hash;
}

static void write_sums(struct buf *out, const char *key, const struct copy_sum *sums,
                       uint32_t count, bool hashes)
{
    json_write_key(out, key);
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        buf_text(out, i > 0 ? ",{" : "{");
        json_write_member_string(out, hashes ? "table" : "status", sums[i].name);
        buf_format(out, ",\"from_rows\":%lld,\"to_rows\":%lld", (long long)sums[i].from_rows,
                   (long long)sums[i].to_rows);
        if (hashes)
            buf_format(out, ",\"from_hash\":\"%016llx\",\"to_hash\":\"%016llx\"",
                       (unsigned long long)sums[i].from_hash, (unsigned long long)sums[i].to_hash);
        buf_format(out, ",\"equal\":%s}", is_equal(&sums[i]) ? "true" : "false");
    }
    buf_byte(out, ']');
}

static void print_json(struct call *call, const struct copy_report *report)
{
    BUF_AUTO struct buf out = BUF_INIT(JSON_BYTES_MAX);

    buf_format(&out, "{\"equal\":%s,\"resumed\":%s,\"rows\":%lld,\"tasks\":%lld,"
               "\"copy_ms\":%lld,\"compare_ms\":%lld,\"tasks_per_second\":%lld,",
               report->differences == 0 ? "true" : "false", report->resumed ? "true" : "false",
               (long long)report->rows, (long long)report->tasks,
               (long long)(report->copy_us / CLOCK_MS_US),
               (long long)(report->compare_us / CLOCK_MS_US), (long long)tasks_per_second(report));
    write_sums(&out, "tables", report->tables, report->tables_count, true);
    write_sums(&out, "statuses", report->statuses, report->statuses_count, false);
    buf_text(&out, ",\"left_behind\":[");
    for (uint32_t i = 0; i < report->left_count; i++) {
        buf_text(&out, i > 0 ? "," : "");
        json_write_string(&out, report->left_behind[i]);
    }
    buf_text(&out, "]}");
    terminal_json(&call->out, buf_view(&out));
}

static void add_row(struct call *call, struct table *table, const struct copy_sum *sum,
                    bool hashes)
{
    struct arena *arena = &call->arena;
    struct str hash = STR("");

    if (hashes)
        hash = arena_format(arena, "%016llx", (unsigned long long)sum->to_hash);
    table_cell(table, hashes ? sum->name : arena_format(arena, "  tasks " STR_FMT,
                                                        STR_ARG(sum->name)), COLOUR_NONE);
    table_cell(table, arena_format(arena, "%lld", (long long)sum->from_rows), COLOUR_NONE);
    table_cell(table, arena_format(arena, "%lld", (long long)sum->to_rows), COLOUR_NONE);
    table_cell(table, hash, COLOUR_DIM);
    table_cell(table, is_equal(sum) ? STR("equal") : STR("differs"),
               is_equal(sum) ? COLOUR_GREEN : COLOUR_RED);
}

static void print_text(struct call *call, const struct copy_report *report)
{
    struct table table;

    table_init(&table, &call->arena);
    table_column(&table, "TABLE", false, false);
    table_column(&table, "SOURCE", true, false);
    table_column(&table, "COPY", true, false);
    table_column(&table, "HASH", false, false);
    table_column(&table, "", false, false);
    for (uint32_t i = 0; i < report->tables_count; i++)
        if (report->tables[i].from_rows > 0 || report->tables[i].to_rows > 0)
            add_row(call, &table, &report->tables[i], true);
    for (uint32_t i = 0; i < report->statuses_count; i++)
        add_row(call, &table, &report->statuses[i], false);
    table_print(&table, &call->out);
    fprintf(call->out.file, "%s%lld tasks (%lld rows) copied in %.1f s, %lld tasks/s; compared in "
            "%.1f s\n", report->resumed ? "resumed: " : "", (long long)report->tasks,
            (long long)report->rows, (double)report->copy_us / 1e6,
            (long long)tasks_per_second(report), (double)report->compare_us / 1e6);
    if (report->differences == 0)
        terminal_line(&call->out, COLOUR_GREEN, STR("both stores are equal; serve the copy from "
                                                    "now on, the source is marked as moved"));
}

static void note_left_behind(struct call *call, const struct copy_report *report)
{
    if (report->left_count == 0)
        return;
    fputs("This is not Perdura's and stays in the source: ", call->notes.file);
    for (uint32_t i = 0; i < report->left_count; i++)
        fprintf(call->notes.file, "%s" STR_FMT, i > 0 ? ", " : "",
                STR_ARG(report->left_behind[i]));
    fputs("; move it yourself\n", call->notes.file);
}

/* ---- the key that signs where logs stand ---- */

/* STORE.log-key of a store that is a file; NULL of a database. */
static const char *key_path(struct arena *arena, struct str store)
{
    if (str_starts(store, STR("sqlite:")))
        store = str_span(store.data + 7, store.len - 7);
    if (memmem(store.data, store.len, "://", 3))
        return NULL;
    return arena_format(arena, STR_FMT ".log-key", STR_ARG(store)).data;
}

static size_t read_key(const char *path, char *out)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    size_t len = file ? fread(out, 1, KEY_BYTES_MAX, file) : 0;

    if (file)
        fclose(file);
    return len;
}

static bool same_key(const char *from, const char *to)
{
    char a[KEY_BYTES_MAX], b[KEY_BYTES_MAX];
    size_t len = read_key(from, a);
    bool same = len > 0 && len == read_key(to, b) && memcmp(a, b, len) == 0;

    explicit_bzero(a, sizeof a);
    explicit_bzero(b, sizeof b);
    return same;
}

static bool has_records(const struct copy_report *report)
{
    for (uint32_t i = 0; i < report->tables_count; i++)
        if (str_is(report->tables[i].name, "log_anchors") && report->tables[i].to_rows > 0)
            return true;
    return false;
}

/* It is a secret, so it is not copied without being asked for; what to run is said. A log_key of
 * the configuration serves both stores. */
static void note_key(struct call *call, const struct copy_request *request,
                     const struct copy_report *report, const struct settings *settings)
{
    static const char otherwise[] = "otherwise the next server makes a new key, and 'perdura "
                                    "verify' cannot prove the older log lines";
    const char *from = key_path(&call->arena, request->from);
    const char *to = key_path(&call->arena, request->to);
    char *real = from ? realpath(from, NULL) : NULL;

    if (settings->logs.key.data || !has_records(report) || (real && same_key(from, to)))
        ; /* nothing to do */
    else if (real && to)
        fprintf(call->notes.file, "The log key is not copied. Before you serve or verify the copy, "
                "run: cp -p '%s' '%s'\n(%s)\n", from, to, otherwise);
    else if (real)
        fprintf(call->notes.file, "The log key is not copied. Before you serve or verify the copy, "
                "put this into the configuration of its nodes: log_key: %s\n(%s)\n", real,
                otherwise);
    else
        fprintf(call->notes.file, "The log key is not copied. Serve the copy with the log_key that "
                "the source was served with\n(%s)\n", otherwise);
    free(real);
}

static int copy(struct call *call, const struct config *config)
{
    struct copy_request request = {.from = call_given_text(call, "from"),
                                   .to = call_given_text(call, "to"),
                                   .again = call_given(call, "again"),
                                   .allow_network_fs = config->settings.allow_network_fs,
                                   .allow_changed_schema =
                                       config->settings.allow_changed_schema};
    struct view view = {.call = call, .began_us = clock_boot_us()};
    struct copy_report report;
    int rc;

    if (!request.to.data)
        return err_set(&call->err, ERR_USAGE, "copy needs --to STORE, the store to copy to");
    if (!request.from.data)
        request.from = config->settings.store;
    progress_init(&view.bar, &call->notes);
    rc = node_copy(&request, on_step, &view, &call->arena, &report, &call->err);
    progress_clear(&view.bar);
    if (rc < 0)
        return rc;
    if (call_given(call, "json"))
        print_json(call, &report);
    else
        print_text(call, &report);
    fflush(call->out.file); /* notes come behind it, also where both go to one file */
    note_left_behind(call, &report);
    if (report.differences == 0)
        note_key(call, &request, &report, &config->settings);
    if (report.differences > 0)
        return err_set(&call->err, ERR_CONFLICT, "the copy differs from its source and will not be "
                       "served; start again with an empty target, and report this");
    return 0;
}

static int run(struct call *call)
{
    CONFIG_AUTO struct config config = {0};

    TRY(store_call_config(call, &config));
    return copy(call, &config);
}

const struct command command_copy = {
    .name = "copy", .summary = "Move everything from one store to another, SQLite or PostgreSQL",
    .details = "Stop the servers of both stores first. Ids, leases and lease tokens do not "
               "change: workers keep reporting to a server on the new store. If the copy is "
               "interrupted, run it again and it resumes. At the end it reads both stores again "
               "and compares them; until then no server opens the copy. Then it marks the "
               "source as moved, and no server opens that one. Tables of your own are not "
               "copied; the command names them. The key that signs log records (STORE.log-key) "
               "is not copied; the command prints how to copy it.",
    .example = "perdura copy --from perdura.db --to postgres://perdura@db.example.org/perdura\n"
               "perdura copy --from postgres://perdura@db.example.org/perdura --to perdura.db",
    .flags = flags, .groups = FLAGS_STORE | FLAGS_JSON, .run = run};
