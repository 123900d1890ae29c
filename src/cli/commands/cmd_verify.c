/* perdura verify: checks a store's integrity offline and names what was tampered with. One
 * thread. */
#include "base/json.h"
#include "node/node.h"
#include "cli/config/store_call.h"

#define JSON_BYTES_MAX (64 * 1024 * 1024)

static const struct flag flags[] = {
    {.name = "logs", .type = FLAG_BOOL,
     .help = "only the logs: their hash chains and the signed records about them"},
    {.name = "audit", .type = FLAG_BOOL, .help = "only the audit trail and the logs, which share "
     "their signed records"},
    {.name = "checkpoints", .type = FLAG_BOOL, .help = "the hashes of the checkpoints only"},
    {.name = "anchor", .type = FLAG_TEXT, .value = "FILE",
     .help = "compare the logs with the records of this anchor file"},
    {.name = "public-key", .type = FLAG_TEXT, .value = "HEX",
     .help = "accept signatures of these keys only, separated by commas (default: those the store "
             "names)"},
    {0}};

static void write_finding(struct buf *out, const struct verify_finding *finding)
{
    char id[UUID_TEXT_BYTES];

    json_write_member_string(out, "kind", finding->kind);
    json_write_member_string(out, "subject", finding->subject);
    json_write_member_string(out, "detail", finding->detail);
    if (!uuid_is_nil(&finding->execution)) {
        uuid_format(&finding->execution, id);
        json_write_member_string(out, "execution_id", str_of(id));
    } else if (!finding->task_id.data) {
        return;
    }
    json_write_member_string(out, "task_id", finding->task_id);
}

static void print_json(struct call *call, const struct verify_report *report)
{
    BUF_AUTO struct buf out = BUF_INIT(JSON_BYTES_MAX);

    buf_format(&out, "{\"ok\":%s,\"checked\":{", report->findings_count == 0 ? "true" : "false");
    for (uint32_t i = 0; i < report->counts_count; i++) {
        json_comma(&out);
        json_write_string(&out, report->counts[i].what);
        buf_byte(&out, ':');
        buf_int(&out, report->counts[i].checked);
    }
    buf_text(&out, "},");
    json_write_member_string(&out, "public_key", report->public_key);
    json_write_member_string(&out, "log_key_missing", report->key_missed);
    buf_text(&out, ",\"findings\":[");
    for (uint32_t i = 0; i < report->findings_count; i++) {
        buf_text(&out, i > 0 ? ",{" : "{");
        write_finding(&out, &report->findings[i]);
        buf_byte(&out, '}');
    }
    buf_text(&out, "]}");
    terminal_json(&call->out, buf_view(&out));
}

static void print_text(struct call *call, const struct verify_report *report)
{
    struct table table;

    for (uint32_t i = 0; i < report->counts_count; i++)
        fprintf(call->out.file, "%lld " STR_FMT " checked\n", (long long)report->counts[i].checked,
                STR_ARG(report->counts[i].what));
    if (report->public_key.data)
        fprintf(call->out.file, "public key " STR_FMT "\n", STR_ARG(report->public_key));
    if (report->key_missed.data)
        fprintf(call->out.file, "checked without the log key (" STR_FMT "): signed records only; "
                "to check the newest lines too, copy the key there or set log_key\n",
                STR_ARG(report->key_missed));
    if (report->findings_count == 0) {
        terminal_line(&call->out, COLOUR_GREEN, STR("no problems found"));
        return;
    }
    table_init(&table, &call->arena);
    table_column(&table, "KIND", false, false);
    table_column(&table, "WHAT", false, false);
    table_column(&table, "TASK", false, false);
    table_column(&table, "FINDING", false, true);
    for (uint32_t i = 0; i < report->findings_count; i++) {
        table_cell(&table, report->findings[i].kind, COLOUR_RED);
        table_cell(&table, report->findings[i].subject, COLOUR_NONE);
        table_cell(&table, report->findings[i].task_id.data ? report->findings[i].task_id
                                                            : STR(""), COLOUR_NONE);
        table_cell(&table, report->findings[i].detail, COLOUR_NONE);
    }
    table_print(&table, &call->out);
}

#define PUBLIC_KEYS_MAX 16

static uint32_t split_keys(struct str text, struct str *keys)
{
    uint32_t count = 0;
    size_t begin = 0;

    for (size_t i = 0; text.data && i <= text.len && count < PUBLIC_KEYS_MAX; i++)
        if (i == text.len || text.data[i] == ',') {
            keys[count++] = str_span(text.data + begin, i - begin);
            begin = i + 1;
        }
    return count;
}

static int run(struct call *call)
{
    struct str keys[PUBLIC_KEYS_MAX];
    struct verify_request request = {.logs = call_given(call, "logs") || call_given(call, "audit"),
                                     .checkpoints = call_given(call, "checkpoints"),
                                     .anchor = call_given_text(call, "anchor"),
                                     .public_keys = keys};
    struct verify_report report = {0};
    CONFIG_AUTO struct config config = {0};

    TRY(store_call_config(call, &config));
    request.public_keys_count = split_keys(call_given_text(call, "public-key"), keys);
    TRY(node_verify(&config.settings, &request, &call->arena, &report, &call->err));
    if (call_given(call, "json"))
        print_json(call, &report);
    else
        print_text(call, &report);
    return report.findings_count > 0 ? 1 : 0;
}

const struct command command_verify = {
    .name = "verify", .summary = "Check a store's integrity and name what is wrong",
    .details = "The exit code is 1 when it finds something. Without --logs or --checkpoints it "
               "checks everything. With an anchor file kept elsewhere it also finds logs cut at "
               "the end, missing runs, and a store that was restored to an older state.",
    .example = "perdura verify --store perdura.db\n"
               "perdura verify --store perdura.db --audit\n"
               "perdura verify --store perdura.db --logs --anchor /mnt/safe/perdura.anchor\n"
               "perdura verify --store backup.db --checkpoints",
    .flags = flags, .groups = FLAGS_STORE | FLAGS_JSON, .run = run};
