/* The section `inboxes:` of the configuration: its record, and the rules over its keys. Constant
 * data and checks; passwords are read in config_secrets.c. */
#include "cli/config/config.h"

#include "core/bounds.h"
#include "core/inbox/inbox_row.h"
#include "core/queue_name.h"
#include "core/task/task.h"

#define AT(type, member) .offset = offsetof(struct type, member)

static bool is_postgres(struct str store)
{
    return str_starts(store, STR("postgres://")) || str_starts(store, STR("postgresql://"));
}

/* The message never shows the store: it may hold a password. */
static int check_inbox(const void *record, struct err *err)
{
    const struct inbox_rule *rule = record;
    bool postgres = is_postgres(rule->store);

    if (!postgres && (!str_starts(rule->store, STR("sqlite:")) || rule->store.len == 7))
        return err_set(err, ERR_INVALID, "the store of inbox '" STR_FMT "' must be postgres://… "
                       "or sqlite:PATH", STR_ARG(rule->name));
    if (!inbox_table_valid(rule->table, postgres))
        return err_set(err, ERR_INVALID, "the table of inbox '" STR_FMT "' must be a name of "
                       "letters, digits and '_'%s", STR_ARG(rule->name),
                       postgres ? ", perhaps with a schema and '.' before it" : "");
    if (!postgres && (rule->password_file.data || rule->password_env.data))
        return err_set(err, ERR_INVALID, "inbox '" STR_FMT "' is a file, and has no password",
                       STR_ARG(rule->name));
    if (rule->password_file.data && rule->password_env.data)
        return err_set(err, ERR_INVALID, "inbox '" STR_FMT "' has both password_file and "
                       "password_env; keep one of them", STR_ARG(rule->name));
    return namespace_check_name(rule->namespace_name, err);
}

static const struct config_field fields[] = {
    {.key = "name", .kind = CONFIG_TEXT, AT(inbox_rule, name), .max = BOUND_NAME_BYTES,
     .required = true, .help = "name that commands and metrics use; keep it while rows wait"},
    {.key = "store", .kind = CONFIG_TEXT, AT(inbox_rule, store), .max = BOUND_URL_BYTES,
     .required = true, .help = "the database with the table: postgres://… or sqlite:PATH"},
    {.key = "password_file", .kind = CONFIG_TEXT, AT(inbox_rule, password_file),
     .help = "file with the password of the database"},
    {.key = "password_env", .kind = CONFIG_TEXT, AT(inbox_rule, password_env),
     .max = BOUND_NAME_BYTES, .help = "variable with that password"},
    {.key = "table", .kind = CONFIG_TEXT, AT(inbox_rule, table), .max = 127,
     .fallback = "perdura_inbox",
     .help = "the table, as 'perdura inbox sql' makes it; in PostgreSQL perhaps schema.table"},
    {.key = "namespace", .kind = CONFIG_TEXT, AT(inbox_rule, namespace_name),
     .fallback = TASK_DEFAULT_NAMESPACE, .max = BOUND_NAME_BYTES,
     .help = "namespace of its tasks"},
    {.key = "after", .kind = CONFIG_WORD, AT(inbox_rule, after), .fallback = "mark",
     .choices = "mark|delete", .help = "what happens to a row that has become a task"},
    {.key = "queues", .kind = CONFIG_TEXTS, AT(inbox_rule, queues),
     .count_offset = offsetof(struct inbox_rule, queues_count), .max = BOUND_CLAIM_QUEUES,
     .help = "queues its rows may name, exact or with '*' at the end (default: all)"},
    {.key = "types", .kind = CONFIG_TEXTS, AT(inbox_rule, types),
     .count_offset = offsetof(struct inbox_rule, types_count), .max = BOUND_CLAIM_TYPES,
     .help = "types its rows may have, exact or with '*' at the end (default: all)"},
    {0}};
const struct config_record config_inbox_record = {"inboxes", sizeof(struct inbox_rule), fields,
                                                  check_inbox};

int config_check_inboxes(const struct config *config, const char *name, struct err *err)
{
    const struct settings *settings = &config->settings;

    for (uint32_t i = 0; i < settings->enqueue.inboxes_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            const struct inbox_rule *one = &settings->enqueue.inboxes[i];
            const struct inbox_rule *other = &settings->enqueue.inboxes[j];

            if (str_eq(one->name, other->name))
                return err_set(err, ERR_INVALID, "%s: two entries of inboxes have the name '"
                               STR_FMT "'", name, STR_ARG(one->name));
            if (str_eq(one->store, other->store) && str_eq(one->table, other->table))
                return err_set(err, ERR_INVALID, "%s: the inboxes '" STR_FMT "' and '" STR_FMT
                               "' are the same table; each row would become two tasks", name,
                               STR_ARG(other->name), STR_ARG(one->name));
        }
    return 0;
}
