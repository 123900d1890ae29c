/* perdura migrate status|up|down|sql|grant: the schema of a store. One thread. */
#include "base/clock.h"
#include "base/json.h"
#include "node/node.h"
#include "cli/config/store_call.h"

#define JSON_BYTES_MAX (16 * 1024 * 1024)

static void print_json(struct call *call, const struct migrate_report *report)
{
    BUF_AUTO struct buf out = BUF_INIT(JSON_BYTES_MAX);
    char time_text[CLOCK_TEXT_BYTES];

    buf_text(&out, "{\"items\":[");
    for (uint32_t i = 0; i < report->migrations_count; i++) {
        const struct migration *migration = &report->migrations[i];

        clock_format(migration->applied_at_us, time_text);
        buf_format(&out, "%s{\"number\":%lld,", i > 0 ? "," : "", (long long)migration->number);
        json_write_member_string(&out, "name", migration->name);
        buf_format(&out, ",\"applied\":%s,\"changed\":%s,\"checksum_differs\":%s,\"applied_at\":",
                   migration->applied ? "true" : "false",
                   migration->changed_now ? "true" : "false",
                   migration->checksum_differs ? "true" : "false");
        if (migration->applied_at_us)
            buf_format(&out, "\"%s\"", time_text);
        else
            buf_text(&out, "null");
        if (migration->changed_now && !migration->applied && migration->gives_up.data) {
            buf_byte(&out, ',');
            json_write_member_string(&out, "gave_up", migration->gives_up);
        }
        buf_byte(&out, '}');
    }
    buf_text(&out, "]}");
    terminal_json(&call->out, buf_view(&out));
}

static struct str state_of(const struct migration *migration)
{
    if (migration->checksum_differs)
        return STR("differs");
    return migration->applied ? STR("applied") : STR("open");
}

static void print_table(struct call *call, const struct migrate_report *report)
{
    char time_text[CLOCK_TEXT_BYTES];
    struct table table;

    table_init(&table, &call->arena);
    table_column(&table, "NUMBER", true, false);
    table_column(&table, "NAME", false, true);
    table_column(&table, "STATE", false, false);
    table_column(&table, "APPLIED", false, false);
    for (uint32_t i = 0; i < report->migrations_count; i++) {
        const struct migration *migration = &report->migrations[i];
        struct str state = state_of(migration);

        clock_format(migration->applied_at_us, time_text);
        table_cell(&table, arena_format(&call->arena, "%04lld", (long long)migration->number),
                   COLOUR_NONE);
        table_cell(&table, migration->name, COLOUR_NONE);
        table_cell(&table, state, migration->checksum_differs ? COLOUR_RED
                   : migration->applied ? COLOUR_GREEN : COLOUR_YELLOW);
        table_cell(&table, migration->applied_at_us ? str_of(time_text) : STR(""), COLOUR_NONE);
    }
    table_print(&table, &call->out);
}

static void print_sql(struct call *call, const struct migrate_report *report)
{
    for (uint32_t i = 0; i < report->migrations_count; i++)
        terminal_line(&call->out, COLOUR_NONE, report->migrations[i].sql);
}

/* What went with the migrations that this run took back. */
static void print_losses(struct call *call, const struct migrate_report *report)
{
    for (uint32_t i = report->migrations_count; i-- > 0;) {
        const struct migration *migration = &report->migrations[i];

        if (migration->changed_now && migration->gives_up.data)
            terminal_line(&call->notes, COLOUR_YELLOW,
                          arena_format(&call->arena, "%04lld " STR_FMT " gave up " STR_FMT,
                                       (long long)migration->number, STR_ARG(migration->name),
                                       STR_ARG(migration->gives_up)));
    }
}

static uint32_t count_changed(const struct migrate_report *report)
{
    uint32_t changed = 0;

    for (uint32_t i = 0; i < report->migrations_count; i++)
        changed += report->migrations[i].changed_now;
    return changed;
}

static int migrate(struct call *call, const struct migrate_request *request)
{
    struct migrate_report report = {0};
    CONFIG_AUTO struct config config = {0};

    TRY(store_call_config(call, &config));
    TRY(node_migrate(&config.settings, request, &call->arena, &report, &call->err));
    if (request->action == MIGRATE_SQL)
        print_sql(call, &report);
    else if (request->action == MIGRATE_GRANT)
        return 0;
    else if (call_given(call, "json"))
        print_json(call, &report);
    else
        print_table(call, &report);
    if (request->action == MIGRATE_DOWN)
        print_losses(call, &report);
    if (call->notes.interactive && request->action == MIGRATE_UP && count_changed(&report) == 0)
        terminal_line(&call->notes, COLOUR_DIM, STR("(nothing to do: the schema is up to date)"));
    return 0;
}

static int run_status(struct call *call)
{
    return migrate(call, &(struct migrate_request){.action = MIGRATE_STATUS, .target = -1});
}

static int run_up(struct call *call)
{
    return migrate(call, &(struct migrate_request){.action = MIGRATE_UP,
                                                   .target = call_int(call, "to", -1)});
}

static int run_down(struct call *call)
{
    return migrate(call, &(struct migrate_request){.action = MIGRATE_DOWN,
                                                   .target = call_int(call, "to", -1),
                                                   .down = true,
                                                   .lose_data = call_given(call, "lose-data")});
}

static int run_sql(struct call *call)
{
    return migrate(call, &(struct migrate_request){.action = MIGRATE_SQL, .target = -1});
}

static int run_grant(struct call *call)
{
    return migrate(call, &(struct migrate_request){.action = MIGRATE_GRANT, .target = -1,
                                                   .role = call->args[0],
                                                   .only = call_text(call, "only")});
}

static const struct flag up_flags[] = {
    {.name = "to", .type = FLAG_INT, .value = "NUMBER", .min = 0, .max = 9999,
     .help = "last migration to apply (default: all)"},
    {0}};
static const struct flag down_flags[] = {
    {.name = "to", .type = FLAG_INT, .value = "NUMBER", .min = 0, .max = 9999,
     .help = "last migration to keep (default: one step back)"},
    {.name = "lose-data", .type = FLAG_BOOL,
     .help = "also undo migrations that lose data"},
    {0}};

static const struct flag grant_flags[] = {
    {.name = "only", .type = FLAG_TEXT, .value = "VERBS",
     .help = "these verbs, a comma between them; others that the role had are taken back"},
    {0}};

static const struct command migrate_status = {
    .name = "status", .summary = "Show which migrations a store has",
    .example = "perdura migrate status --store perdura.db", .groups = FLAGS_STORE | FLAGS_JSON,
    .run = run_status};
static const struct command migrate_up = {
    .name = "up", .summary = "Apply pending migrations",
    .details = "The server does this when it starts.",
    .example = "perdura migrate up --store perdura.db", .flags = up_flags,
    .groups = FLAGS_STORE | FLAGS_JSON, .run = run_up};
static const struct command migrate_down = {
    .name = "down", .summary = "Revert the newest migration",
    .details = "Says what each step loses. If a step loses data, nothing happens without "
               "--lose-data.",
    .example = "perdura migrate down --store perdura.db --to 1", .flags = down_flags,
    .groups = FLAGS_STORE | FLAGS_JSON, .run = run_down};
static const struct command migrate_sql = {
    .name = "sql",
    .summary = "Print the migrations as plain SQL, to be applied by hand to an empty store",
    .example = "perdura migrate sql | sqlite3 perdura.db", .groups = FLAGS_STORE, .run = run_sql};

static const struct command migrate_grant = {
    .name = "grant", .arguments = "ROLE",
    .summary = "Let a role of PostgreSQL use tasks with SQL",
    .details = "The role may call enqueue(), enqueue_many(), complete(), fail(), checkpoint(), "
               "cancel(), retry(), status() and wait_for() in the schema of the store, and "
               "INSERT INTO tasks; nothing else. With --only it gets the verbs that are named: "
               "enqueue, complete, fail, checkpoint, cancel, retry, status, wait_for. "
               "access.sql_roles says in which namespace.",
    .example = "perdura migrate grant shop --store postgres://perdura@db.example.com/perdura\n"
               "perdura migrate grant web --only enqueue,status",
    .flags = grant_flags, .groups = FLAGS_STORE, .args_min = 1, .args_max = 1, .run = run_grant};

static const struct command *const subcommands[] = {&migrate_status, &migrate_up, &migrate_down,
                                                    &migrate_sql, &migrate_grant, NULL};

const struct command command_migrate = {
    .name = "migrate", .summary = "Show and change the schema of a store",
    .example = "perdura migrate status\nperdura migrate up --store perdura.db",
    .subcommands = subcommands};
