/* perdura worker: a worker on this or another machine; its handlers come from the configuration.
 * Joins the settings and hands over to the node. One thread until then. */
#include "node/node.h"
#include "cli/config/config_reload.h"
#include "cli/config/store_call.h"

static const struct flag flags[] = {
    {.name = "server", .type = FLAG_TEXT, .value = "URL", .env = "PERDURA_SERVER",
     .fallback = "http://127.0.0.1:7070",
     .help = "the server whose tasks it runs; the token comes from PERDURA_TOKEN, else from the "
             "file in PERDURA_TOKEN_FILE, else from token_file in the configuration"},
    CLIENT_NAMESPACE_FLAG,
    CLIENT_TLS_FLAGS,
    {.name = "queues", .type = FLAG_LIST, .value = "a,b",
     .help = "queues it serves (default: 'default' and those of the configuration)"},
    {.name = "categories", .type = FLAG_LIST, .value = "a,b",
     .help = "it takes only tasks of these categories (default: worker.categories of the "
             "configuration, else all); tasks without a category are in 'general'"},
    {.name = "concurrency", .type = FLAG_INT, .value = "N", .fallback = "4", .min = 1, .max = 1024,
     .help = "how many tasks it runs at once"},
    {.name = "config", .type = FLAG_TEXT, .value = "FILE",
     .help = "configuration file (default: perdura.yaml in the current folder, if it exists)"},
    {.name = "log-level", .type = FLAG_WORD, .value = "LEVEL", .fallback = "info",
     .choices = "debug|info|warn|error", .help = "lowest level that is logged"},
    {.name = "log-format", .type = FLAG_WORD, .value = "FORMAT", .fallback = "auto",
     .choices = "auto|text|json",
     .help = "how events are logged; auto is text on a terminal and JSON otherwise"},
    {0}};

static int fill_options(struct call *call, struct worker_options *options)
{
    struct str *queues = NULL;
    struct str *categories = NULL;

    TRY(call_list(call, "queues", &queues, &options->queues_count));
    TRY(call_list(call, "categories", &categories, &options->categories_count));
    options->queues = queues;
    options->categories = categories;
    options->server = call_text(call, "server");
    options->namespace_name = call_text(call, "namespace");
    options->ca = call_text(call, "ca");
    options->cert = call_text(call, "cert");
    options->key = call_text(call, "cert-key");
    options->concurrency = call_int(call, "concurrency", 4);
    return 0;
}

static int run(struct call *call)
{
    struct worker_options options = {0};
    CONFIG_AUTO struct config config = {0};
    CONFIG_RELOAD_AUTO struct config_reload reload = {.call = call, .newest = &config};
    struct node_config source = config_reload_source(&reload);

    TRY(store_call_config(call, &config));
    TRY(fill_options(call, &options));
    if (config.settings.handlers_count + config.settings.pool.services_count +
            config.settings.agents.agents_count == 0)
        return err_set(&call->err, ERR_INVALID, "no handlers are configured; list them under "
                       "'handlers:' or 'services:' in perdura.yaml or pass --config FILE");
    return node_worker_main(&config.settings, &options, &source);
}

const struct command command_worker = {
    .name = "worker", .summary = "Run a worker for a server on this or another machine",
    .details = "Runs the handlers, services and agents of its configuration file. After SIGTERM it "
               "claims nothing more, waits up to 'grace' for running tasks, gives the rest back to "
               "their queue and ends. A second signal gives them back at once. SIGHUP reads the "
               "configuration again.",
    .example = "perdura worker --server https://10.0.0.5:7070 --ca ca.pem --queues mail,news\n"
               "perdura worker --config worker.yaml",
    .flags = flags, .run = run};
