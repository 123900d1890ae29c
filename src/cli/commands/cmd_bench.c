/* perdura bench: measures this machine and prints a table. One thread here; the node measures. */
#include "base/json.h"
#include "node/node.h"
#include "cli/config/store_call.h"

#define JSON_BYTES_MAX (1024 * 1024)

static const struct flag flags[] = {
    {.name = "tasks", .type = FLAG_INT, .value = "N", .fallback = "20000", .min = 1,
     .max = 100000000, .help = "tasks per measurement"},
    {.name = "batch", .type = FLAG_INT, .value = "N", .min = 1, .max = 10000,
     .help = "measure this batch size only"},
    {.name = "payload", .type = FLAG_INT, .value = "BYTES", .min = 2, .max = 1048576,
     .help = "size of the payloads (default: 110 bytes)"},
    {.name = "encrypt", .type = FLAG_BOOL, .help = "store the tasks encrypted"},
    {.name = "folder", .type = FLAG_TEXT, .value = "FOLDER",
     .help = "folder of the temporary store; its disk is measured"},
    {.name = "config", .type = FLAG_TEXT, .value = "FILE", .help = "configuration file"},
    {.name = "store", .type = FLAG_TEXT, .value = "STORE",
     .help = "measure on this store and leave the tasks in it (default: a temporary store)"},
    {0}};

static int64_t per_second(const struct bench_row *row)
{
    if (row->duration_us <= 0)
        return 0;
    return (int64_t)((double)row->tasks * 1e6 / (double)row->duration_us);
}

static void print_json(struct call *call, const struct bench_report *report)
{
    BUF_AUTO struct buf out = BUF_INIT(JSON_BYTES_MAX);

    buf_text(&out, "{\"items\":[");
    for (uint32_t i = 0; i < report->rows_count; i++) {
        const struct bench_row *row = &report->rows[i];

        buf_text(&out, i > 0 ? ",{" : "{");
        json_write_member_string(&out, "name", row->name);
        buf_format(&out, ",\"batch\":%lld,\"tasks\":%lld,\"duration_us\":%lld,"
                   "\"tasks_per_second\":%lld", (long long)row->batch, (long long)row->tasks,
                   (long long)row->duration_us, (long long)per_second(row));
        if (row->p50_us >= 0)
            buf_format(&out, ",\"p50_us\":%lld,\"p99_us\":%lld", (long long)row->p50_us,
                       (long long)row->p99_us);
        buf_byte(&out, '}');
    }
    buf_text(&out, "]}");
    terminal_json(&call->out, buf_view(&out));
}

static struct str latency(struct call *call, int64_t us)
{
    return us < 0 ? STR("") : arena_format(&call->arena, "%.2f", (double)us / 1000);
}

static void print_table(struct call *call, const struct bench_report *report)
{
    struct table table;

    table_init(&table, &call->arena);
    table_column(&table, "MEASUREMENT", false, false);
    table_column(&table, "BATCH", true, false);
    table_column(&table, "TASKS", true, false);
    table_column(&table, "TASKS/S", true, false);
    table_column(&table, "P50 MS", true, false);
    table_column(&table, "P99 MS", true, false);
    for (uint32_t i = 0; i < report->rows_count; i++) {
        const struct bench_row *row = &report->rows[i];

        table_cell(&table, row->name, COLOUR_NONE);
        table_cell(&table, arena_format(&call->arena, "%lld", (long long)row->batch), COLOUR_NONE);
        table_cell(&table, arena_format(&call->arena, "%lld", (long long)row->tasks), COLOUR_NONE);
        table_cell(&table, arena_format(&call->arena, "%lld", (long long)per_second(row)),
                   COLOUR_BOLD);
        table_cell(&table, latency(call, row->p50_us), COLOUR_NONE);
        table_cell(&table, latency(call, row->p99_us), COLOUR_NONE);
    }
    table_print(&table, &call->out);
}

static void show_step(void *ctx, const char *name)
{
    progress_draw(ctx, PROGRESS_UNKNOWN, str_of(name), 0);
}

static int run(struct call *call)
{
    struct bench_request request = {.store = call_given_text(call, "store"),
                                    .folder = call_given_text(call, "folder"),
                                    .tasks = call_int(call, "tasks", 20000),
                                    .batch = call_int(call, "batch", 0),
                                    .payload_bytes = call_int(call, "payload", 0),
                                    .encrypt = call_given(call, "encrypt")};
    struct bench_report report = {0};
    struct progress progress;
    CONFIG_AUTO struct config config = {0};
    int rc;

    TRY(store_call_config(call, &config));
    progress_init(&progress, &call->notes);
    rc = node_bench(&config.settings, &request, show_step, &progress, &call->arena, &report,
                    &call->err);
    progress_clear(&progress);
    TRY(rc);
    if (call_given(call, "json"))
        print_json(call, &report);
    else
        print_table(call, &report);
    return 0;
}

const struct command command_bench = {
    .name = "bench", .summary = "Measure how many tasks this machine enqueues and runs per second",
    .details = "Every step is durable, as in production. Without --store it uses a temporary store "
               "in the current folder and removes it afterwards.",
    .example = "perdura bench\nperdura bench --tasks 100000 --batch 100 --folder /var/lib/perdura",
    .flags = flags, .groups = FLAGS_JSON, .run = run};
