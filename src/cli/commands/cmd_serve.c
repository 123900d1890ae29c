/* perdura serve: joins the settings and hands over to the node. One thread until then. */
#include "node/node.h"
#include "cli/config/config_reload.h"
#include "cli/config/store_call.h"

static const struct flag flags[] = {
    {.name = "listen", .type = FLAG_TEXT, .value = "ADDRESS", .fallback = "127.0.0.1:7070",
     .env = "PERDURA_LISTEN", .help = "address of the API"},
    {.name = "tls-cert", .type = FLAG_TEXT, .value = "FILE", .env = "PERDURA_TLS_CERT",
     .help = "certificate and chain (PEM); the API then speaks only TLS"},
    {.name = "tls-key", .type = FLAG_TEXT, .value = "FILE", .env = "PERDURA_TLS_KEY",
     .help = "private key of the certificate (PEM)"},
    {.name = "tls-client-ca", .type = FLAG_TEXT, .value = "FILE", .env = "PERDURA_TLS_CLIENT_CA",
     .help = "CAs (PEM); every client must show a certificate that one of them signed"},
    {.name = "allow-clear-text", .type = FLAG_BOOL,
     .help = "allow listening beyond loopback without TLS"},
    {.name = "workers", .type = FLAG_INT, .value = "N", .min = 0, .max = 1024,
     .help = "in-process worker slots; default 4 where handlers are configured"},
    {.name = "lease", .type = FLAG_DURATION, .value = "D", .fallback = "30s",
     .help = "a worker that does not renew its lease within this time loses its tasks"},
    {.name = "leader-lease", .type = FLAG_DURATION, .value = "D", .fallback = "30s",
     .help = "lease of the leading node"},
    {.name = "demo", .type = FLAG_BOOL, .help = "fill the store with a demonstration"},
    {.name = "again", .type = FLAG_BOOL,
     .help = "serve a store that 'perdura copy' has moved; its tasks run a second time"},
    {.name = "log-level", .type = FLAG_WORD, .value = "LEVEL", .fallback = "info",
     .choices = "debug|info|warn|error", .help = "lowest level that is logged"},
    {.name = "log-format", .type = FLAG_WORD, .value = "FORMAT", .fallback = "auto",
     .choices = "auto|text|json",
     .help = "how events are logged; auto is text on a terminal and JSON otherwise"},
    {.name = "allow-network-fs", .type = FLAG_BOOL,
     .help = "allow a SQLite store on a network file system"},
    {.name = "allow-changed-schema", .type = FLAG_BOOL,
     .help = "allow a store whose schema others changed"},
    {0}};

static int run(struct call *call)
{
    CONFIG_AUTO struct config config = {0};
    CONFIG_RELOAD_AUTO struct config_reload reload = {.call = call, .newest = &config};
    struct node_config source = config_reload_source(&reload);

    TRY(store_call_config(call, &config));
    return node_serve_main(&config.settings, &source);
}

const struct command command_serve = {
    .name = "serve", .summary = "Run the server: API, crash recovery and workers",
    .details = "Needs no configuration: without one, it stores tasks in perdura.db and listens on "
               "127.0.0.1:7070. Listening elsewhere needs PERDURA_TOKEN and a certificate. A "
               "setting comes from its flag, else the environment, else the configuration file, "
               "else its default; 'perdura doctor' shows which. SIGHUP reloads handlers, limits, "
               "certificates and the log level from the file; the log names settings that need a "
               "restart.",
    .example = "perdura serve\n"
               "perdura serve --store /var/lib/perdura/tasks.db --workers 8\n"
               "PERDURA_TOKEN=… perdura serve --listen 0.0.0.0:7070 --tls-cert server.pem "
               "--tls-key server.key",
    .flags = flags, .groups = FLAGS_STORE, .run = run};
