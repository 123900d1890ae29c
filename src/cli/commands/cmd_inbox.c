/* perdura inbox …: the tables of other databases whose rows become tasks. `sql` prints the
 * statements that make one; `list` asks the server. One thread. */
#include "cli/frame/listing.h"
#include "node/node.h"

#define SQL_BYTES_MAX 16384

static const struct view_column columns[] = {
    {"INBOX", "/name", VIEW_TEXT},
    {"STATE", "/state", VIEW_TEXT},
    {"TAKEN", "/taken", VIEW_NUMBER},
    {"DAMAGED", "/damaged", VIEW_NUMBER},
    {"LAG MS", "/lag_ms", VIEW_NUMBER},
    {"NAMESPACE", "/namespace", VIEW_TEXT | VIEW_SPARE(3)},
    {"TABLE", "/table", VIEW_TEXT | VIEW_SPARE(4)},
    {"STORE", "/store", VIEW_TEXT | VIEW_SPARE(2)},
    {"ERROR", "/error", VIEW_TEXT | VIEW_SPARE(1)},
};

static int run_list(struct call *call)
{
    return listing_print_all(call, STR("/v1/inboxes?limit=1000"), COLUMNS(columns));
}

static int run_sql(struct call *call)
{
    BUF_AUTO struct buf out = BUF_INIT(SQL_BYTES_MAX);
    struct str kind = call_text(call, "for"), table = call_text(call, "table");

    if (!kind.data)
        return err_set(&call->err, ERR_USAGE, "say which database the table is for: --for "
                       "postgres, or --for sqlite");
    TRY(node_inbox_sql(str_is(kind, "postgres"), table.data ? table : STR("perdura_inbox"), &out,
                       &call->err));
    fwrite(out.data, 1, out.len, call->out.file);
    return 0;
}

static const struct flag sql_flags[] = {
    {.name = "for", .type = FLAG_WORD, .value = "KIND", .choices = "postgres|sqlite",
     .help = "the database that the table is for: postgres or sqlite"},
    {.name = "table", .type = FLAG_TEXT, .value = "NAME", .fallback = "perdura_inbox",
     .help = "name of the table; for PostgreSQL also schema.table"},
    {0}};

static const struct command inbox_list = {
    .name = "list", .summary = "List the inboxes of a server, how far they are, and what is wrong",
    .details = "With several nodes only the leader takes rows, and the others show standby: ask "
               "the leader.",
    .example = "perdura inbox list\nperdura inbox list --json", CLIENT_COMMAND(0, 0, run_list)};

static const struct command inbox_sql = {
    .name = "sql", .summary = "Print the SQL statements that create the table of an inbox",
    .details = "Run them in your own database, then name the table in 'inboxes:' of the "
               "configuration.",
    .example = "perdura inbox sql --for postgres | psql shop\n"
               "perdura inbox sql --for sqlite --table outgoing | sqlite3 shop.db",
    .flags = sql_flags, .run = run_sql};

static const struct command *const subcommands[] = {&inbox_list, &inbox_sql, NULL};

const struct command command_inbox = {
    .name = "inbox", .summary = "Show inboxes: tables in other databases whose rows become tasks",
    .example = "perdura inbox sql --for sqlite\nperdura inbox list", .subcommands = subcommands};
