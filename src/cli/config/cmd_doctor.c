/* perdura doctor: is everything as it should be, where does each setting come from, and what to do
 * where something is wrong. Checks of the store are the node's. One thread. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/frame/cli_client.h"
#include "node/node.h"
#include "cli/config/store_call.h"

#define CHECKS_MAX 5000    /* one per handler, and some */
#define JSON_BYTES_MAX (16 * 1024 * 1024)
#define FILES_WANTED 1024  /* open files a busy server needs */
#define SERVER_TIMEOUT_MS 3000

struct doctor {
    struct call *call;
    struct config *config;
    struct doctor_check *checks;
    uint32_t count;
    bool has_tokens; /* the store has API tokens that clients can show */
};

static void add(struct doctor *doctor, enum doctor_verdict verdict, const char *name,
                struct str detail, struct str fix)
{
    if (doctor->count == CHECKS_MAX)
        return;
    doctor->checks[doctor->count++] =
        (struct doctor_check){.verdict = verdict, .name = str_of(name), .detail = detail,
                              .fix = fix};
}

static void check_config(struct doctor *doctor)
{
    const struct config *config = doctor->config;
    struct arena *arena = &doctor->call->arena;

    if (config->file.data)
        add(doctor, DOCTOR_OK, "configuration", arena_format(arena, STR_FMT " is valid",
            STR_ARG(config->file)), STR_NONE);
    else
        add(doctor, DOCTOR_OK, "configuration", STR("no file; defaults are used"), STR_NONE);
}

static void check_handlers(struct doctor *doctor)
{
    const struct settings *settings = &doctor->config->settings;
    struct arena *arena = &doctor->call->arena;
    uint32_t missing = 0;

    for (uint32_t i = 0; i < settings->handlers_count; i++) {
        const struct handler_rule *rule = &settings->handlers[i];

        if (rule->validate_command && !node_program_exists(rule, rule->validate_command)) {
            missing++;
            add(doctor, DOCTOR_FAILURE, "handler",
                arena_format(arena, STR_FMT ": its validator %s cannot be run",
                             STR_ARG(rule->type), rule->validate_command[0]),
                STR("install the program, make it executable, or correct 'validate'"));
        }
        if (rule->service.data || rule->agent.data ||
            (rule->command && node_program_exists(rule, rule->command)))
            continue;
        missing++;
        if (!rule->command) {
            add(doctor, DOCTOR_FAILURE, "handler",
                arena_format(arena, STR_FMT ": has no command, so no worker takes its tasks",
                             STR_ARG(rule->type)),
                STR("give it a 'command' or a 'service'"));
            continue;
        }
        add(doctor, DOCTOR_FAILURE, "handler",
            arena_format(arena, STR_FMT ": %s cannot be run", STR_ARG(rule->type),
                         rule->command[0]),
            STR("install the program, make it executable, or correct 'command'"));
    }
    if (settings->handlers_count + settings->pool.services_count == 0)
        add(doctor, DOCTOR_WARNING, "handlers", STR("none are configured"),
            STR("list them under 'handlers:' in perdura.yaml, or run workers elsewhere"));
    else if (missing == 0)
        add(doctor, DOCTOR_OK, "handlers",
            arena_format(arena, "%u, every program is there", settings->handlers_count), STR_NONE);
}

static void check_ends(struct doctor *doctor)
{
    struct arena *arena = &doctor->call->arena;

    if (doctor->config->settings.handlers_count)
        add(doctor, DOCTOR_OK, "ends of handlers",
            arena_format(arena, "a server started here uses " STR_FMT,
                         STR_ARG(node_handler_ends(arena))), STR_NONE);
}

/* What handlers could do with the rights of the server's user. */
static void check_users(struct doctor *doctor)
{
    struct arena *arena = &doctor->call->arena;
    struct command_risks risks;
    struct str detail;

    node_command_risks(&doctor->config->settings, true, arena, &risks);
    if (risks.refusal.data)
        add(doctor, DOCTOR_FAILURE, "users of handlers", risks.refusal,
            STR("correct 'user' and 'group', or start the server as root"));
    if (risks.shared && (risks.is_root || risks.files.data)) {
        detail = risks.is_root
                     ? arena_format(arena, "%u run as root and can read everything here",
                                    risks.shared)
                     : arena_format(arena, "%u run as the server's own user and can read " STR_FMT,
                                    risks.shared, STR_ARG(risks.files));
        add(doctor, DOCTOR_WARNING, "users of handlers", detail,
            STR("give them a 'user' of their own; see docs/operations.md, Security"));
    } else if (risks.commands && !risks.refusal.data) {
        add(doctor, DOCTOR_OK, "users of handlers",
            risks.shared ? STR("the server's own user, which has no secrets in files")
                         : STR("none runs as the server's own user"), STR_NONE);
    }
    if (risks.shared && !risks.is_root && risks.is_readable)
        add(doctor, DOCTOR_WARNING, "program",
            STR("handlers that run as its user can read the file, and so its memory while it "
                "starts"),
            STR("make root its owner, with mode 0711, as 'make install' does; the same for "
                "perdura-spawn"));
    if (risks.is_root && risks.is_open)
        add(doctor, DOCTOR_WARNING, "token",
            STR("without one every user of this machine can start handlers as root"),
            STR("set PERDURA_TOKEN or token_file, or give handlers a 'user'"));
}

static void check_secrets(struct doctor *doctor)
{
    struct arena *arena = &doctor->call->arena;
    struct str files[NODE_SECRET_FILES_MAX];
    uint32_t count = node_exposed_files(&doctor->config->settings, files);

    for (uint32_t i = 0; i < count; i++)
        add(doctor, DOCTOR_WARNING, "secrets",
            arena_format(arena, "every user of this machine can read " STR_FMT, STR_ARG(files[i])),
            arena_format(arena, "run 'chmod 600 " STR_FMT "'", STR_ARG(files[i])));
}

static bool is_loopback(struct str listen)
{
    return str_starts(listen, STR("127.")) || str_starts(listen, STR("localhost:")) ||
           str_starts(listen, STR("[::1]:"));
}

static void check_listen(struct doctor *doctor)
{
    const struct settings *settings = &doctor->config->settings;

    if (is_loopback(settings->listen))
        add(doctor, DOCTOR_OK, "listen", settings->listen, STR_NONE);
    else if (str_empty(settings->tls.cert) && !settings->tls.allow_clear_text)
        add(doctor, DOCTOR_FAILURE, "listen", STR("beyond loopback in clear text"),
            STR("set tls.cert and tls.key, or listen on 127.0.0.1, or set allow_clear_text where a "
                "proxy or a mesh encrypts the connection"));
    else if (settings->access.token.len >= 16)
        add(doctor, DOCTOR_OK, "listen", arena_format(&doctor->call->arena, STR_FMT
            ", protected by a token", STR_ARG(settings->listen)), STR_NONE);
    else if (settings->access.token.len > 0)
        add(doctor, DOCTOR_WARNING, "listen", STR("the token is shorter than 16 characters"),
            STR("put a longer one into PERDURA_TOKEN or the file of token_file, such as the output "
                "of 'openssl rand -hex 32'"));
    else if (doctor->has_tokens)
        add(doctor, DOCTOR_OK, "listen", arena_format(&doctor->call->arena, STR_FMT
            ", protected by API tokens", STR_ARG(settings->listen)), STR_NONE);
    else if (settings_ask_for_credentials(&settings->access))
        add(doctor, DOCTOR_OK, "listen", arena_format(&doctor->call->arena, STR_FMT
            ", every request needs a credential", STR_ARG(settings->listen)), STR_NONE);
    else
        add(doctor, DOCTOR_FAILURE, "listen", STR("beyond loopback without a token"),
            STR("set PERDURA_TOKEN or token_file, or make one with 'perdura token create --store "
                "STORE --name ops --role admin', or listen on 127.0.0.1"));
}

static void check_tls(struct doctor *doctor)
{
    struct doctor_check checks[NODE_TLS_CHECKS_MAX];
    uint32_t count = node_doctor_tls(&doctor->config->settings, &doctor->call->arena, checks);

    for (uint32_t i = 0; i < count && doctor->count < CHECKS_MAX; i++)
        doctor->checks[doctor->count++] = checks[i];
}

static void check_access(struct doctor *doctor)
{
    struct doctor_check checks[NODE_ACCESS_CHECKS_MAX];
    uint32_t count = node_doctor_access(&doctor->config->settings, &doctor->call->arena, checks);

    for (uint32_t i = 0; i < count && doctor->count < CHECKS_MAX; i++)
        doctor->checks[doctor->count++] = checks[i];
}

typedef int look_at(const struct settings *settings, struct arena *arena,
                    struct doctor_check **checks, uint32_t *count, struct err *err);

static void check_each(struct doctor *doctor, look_at *look)
{
    struct call *call = doctor->call;
    struct doctor_check *checks;
    uint32_t count = 0;

    if (look(&doctor->config->settings, &call->arena, &checks, &count, &call->err) < 0)
        return; /* without memory nothing else is said either */
    for (uint32_t i = 0; i < count && doctor->count < CHECKS_MAX; i++)
        doctor->checks[doctor->count++] = checks[i];
}

static void check_files(struct doctor *doctor)
{
    struct rlimit limit;
    struct str detail;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    detail = arena_format(&doctor->call->arena, "%llu", (unsigned long long)limit.rlim_cur);
    if (limit.rlim_cur >= FILES_WANTED)
        add(doctor, DOCTOR_OK, "open files", detail, STR_NONE);
    else
        add(doctor, DOCTOR_WARNING, "open files", detail,
            STR("allow at least 1024: 'ulimit -n 4096', or LimitNOFILE= in the systemd unit"));
}

static void check_zones(struct doctor *doctor)
{
    const char *folder = getenv("TZDIR");

    if (!folder)
        folder = "/usr/share/zoneinfo";
    if (access(folder, R_OK | X_OK) == 0)
        add(doctor, DOCTOR_OK, "time zones", arena_str(&doctor->call->arena, str_of(folder)),
            STR_NONE);
    else
        add(doctor, DOCTOR_WARNING, "time zones",
            arena_format(&doctor->call->arena, "%s: %s", folder, strerror(errno)),
            STR("install the package tzdata; until then schedules can use UTC only"));
}

/* Not running is no fault: doctor is often asked before the first start. */
static void check_server(struct doctor *doctor)
{
    struct call *call = doctor->call;
    struct client client = {0};
    struct str reply = STR_NONE;
    struct err kept = call->err;
    int rc = client_open(&client, call);

    if (rc == 0)
        rc = client_call(&client, "GET", STR("/v1/stats"), STR_NONE, SERVER_TIMEOUT_MS, &reply);
    if (rc == 0)
        add(doctor, DOCTOR_OK, "server", arena_format(&call->arena, "answers at " STR_FMT,
            STR_ARG(client.server)), STR_NONE);
    else
        add(doctor, DOCTOR_WARNING, "server", arena_str(&call->arena, str_of(call->err.text)),
            rc == -ERR_UNAUTHORIZED
                ? STR_NONE : STR("start one with 'perdura serve', if it should be running"));
    client_close(&client);
    call->err = kept;
}

static void check_store(struct doctor *doctor)
{
    struct doctor_check *checks = NULL;
    struct call *call = doctor->call;
    uint32_t count = 0;
    int rc = node_doctor_store(&doctor->config->settings, &call->arena, &checks, &count,
                               &call->err);

    for (uint32_t i = 0; rc == 0 && i < count && doctor->count < CHECKS_MAX; i++) {
        doctor->checks[doctor->count++] = checks[i];
        doctor->has_tokens |= checks[i].protects;
    }
    if (rc < 0)
        add(doctor, DOCTOR_FAILURE, "store", arena_str(&call->arena, str_of(call->err.text)),
            STR("check --store, and that this user may read and write it"));
}

static const char *verdict_word(enum doctor_verdict verdict)
{
    static const char *const words[] = {[DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "warning",
                                        [DOCTOR_FAILURE] = "failure"};

    return words[verdict];
}

static struct str origin_text(const struct config_value_origin *origin)
{
    return origin->origin == ORIGIN_DEFAULT ? STR("default") : origin->where;
}

static void write_settings_json(struct doctor *doctor, struct buf *out)
{
    uint32_t index = 0;

    for (const struct config_field *field = config_root.fields; field->key; field++, index++) {
        BUF_AUTO struct buf value = BUF_INIT(CONFIG_TEXT_BYTES_MAX + 64);

        config_show(doctor->config, field, &value);
        buf_text(out, index > 0 ? ",{" : "{");
        json_write_member_string(out, "key", str_of(field->key));
        json_write_member_string(out, "value", buf_view(&value));
        json_write_member_string(out, "from", origin_text(&doctor->config->origins[index]));
        buf_byte(out, '}');
    }
}

static void print_json(struct doctor *doctor, bool ok)
{
    BUF_AUTO struct buf out = BUF_INIT(JSON_BYTES_MAX);

    buf_format(&out, "{\"ok\":%s,\"checks\":[", ok ? "true" : "false");
    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct doctor_check *check = &doctor->checks[i];

        buf_text(&out, i > 0 ? ",{" : "{");
        json_write_member_string(&out, "verdict", str_of(verdict_word(check->verdict)));
        json_write_member_string(&out, "name", check->name);
        json_write_member_string(&out, "detail", check->detail);
        if (check->fix.data)
            json_write_member_string(&out, "fix", check->fix);
        buf_byte(&out, '}');
    }
    buf_text(&out, "],\"settings\":[");
    write_settings_json(doctor, &out);
    buf_text(&out, "]}");
    terminal_json(&doctor->call->out, buf_view(&out));
}

static void print_settings(struct doctor *doctor)
{
    struct table table;
    uint32_t index = 0;

    table_init(&table, &doctor->call->arena);
    table_column(&table, "SETTING", false, false);
    table_column(&table, "VALUE", false, true);
    table_column(&table, "FROM", false, true);
    for (const struct config_field *field = config_root.fields; field->key; field++, index++) {
        const struct config_value_origin *origin = &doctor->config->origins[index];
        BUF_AUTO struct buf value = BUF_INIT(CONFIG_TEXT_BYTES_MAX + 64);

        config_show(doctor->config, field, &value);
        table_cell(&table, str_of(field->key), COLOUR_NONE);
        table_cell(&table, buf_view(&value), COLOUR_NONE);
        table_cell(&table, origin_text(origin),
                   origin->origin == ORIGIN_DEFAULT ? COLOUR_DIM : COLOUR_CYAN);
    }
    table_print(&table, &doctor->call->out);
}

static void print_checks(struct doctor *doctor)
{
    static const enum colour colours[] = {COLOUR_GREEN, COLOUR_YELLOW, COLOUR_RED};
    const struct terminal *out = &doctor->call->out;

    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct doctor_check *check = &doctor->checks[i];
        BUF_AUTO struct buf line = BUF_INIT(65536);

        buf_format(&line, "%-8s", verdict_word(check->verdict));
        terminal_print(out, colours[check->verdict], buf_view(&line));
        buf_reset(&line);
        buf_byte(&line, ' ');
        terminal_clean(&line, check->name);
        buf_text(&line, ": ");
        terminal_clean(&line, check->detail);
        if (check->fix.data) {
            buf_text(&line, "\n         ");
            terminal_clean(&line, check->fix);
        }
        terminal_line(out, COLOUR_NONE, buf_view(&line));
    }
    fputc('\n', out->file);
}

static int examine(struct doctor *doctor)
{
    bool ok = true;

    check_config(doctor);
    check_store(doctor);
    check_listen(doctor);
    check_tls(doctor);
    check_access(doctor);
    check_handlers(doctor);
    check_each(doctor, node_doctor_services);
    check_each(doctor, node_doctor_inboxes);
    check_each(doctor, node_doctor_brokers);
    check_ends(doctor);
    check_users(doctor);
    check_secrets(doctor);
    check_server(doctor);
    check_files(doctor);
    check_zones(doctor);
    for (uint32_t i = 0; i < doctor->count; i++)
        ok = ok && doctor->checks[i].verdict != DOCTOR_FAILURE;
    if (call_given(doctor->call, "json")) {
        print_json(doctor, ok);
    } else {
        print_checks(doctor);
        print_settings(doctor);
    }
    return ok ? 0 : 1;
}

static int run(struct call *call)
{
    CONFIG_AUTO struct config config = {0};
    struct doctor doctor = {.call = call, .config = &config};

    TRY(store_call_config(call, &config));
    doctor.checks = arena_alloc_array(&call->arena, CHECKS_MAX, sizeof *doctor.checks);
    return doctor.checks ? examine(&doctor) : err_no_memory(&call->err);
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "Check configuration, store and environment, and say how to fix problems",
    .details = "Also shows every setting and where its value comes from. The exit code is 1 if "
               "something must be fixed.",
    .example = "perdura doctor\nperdura doctor --config /etc/perdura.yaml --json",
    .groups = FLAGS_STORE | FLAGS_CLIENT | FLAGS_JSON, .run = run};
