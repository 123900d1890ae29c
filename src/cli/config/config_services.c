/* The section `services:` of the configuration: its records, and the rules over their keys.
 * Constant data and checks; values of headers that are secrets are read in config_secrets.c. */
#include "cli/config/config.h"

#include "core/bounds.h"
#include "core/service/grpc_status.h"
#include "core/service/service_url.h"

#include <strings.h>

#define AT(type, member) .offset = offsetof(struct type, member)
#define HEADER_BYTES_MAX 4096

/* ---- headers ---- */

static bool is_taken(struct str name)
{
    static const char *const taken[] = {
        "host", "content-length", "content-type", "transfer-encoding", "connection", "expect",
        "upgrade", "te", "trailer", "idempotency-key", "traceparent", "tracestate"};

    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (name.len == strlen(taken[i]) && strncasecmp(name.data, taken[i], name.len) == 0)
            return true;
    return name.len >= 8 && strncasecmp(name.data, "perdura-", 8) == 0;
}

static bool name_valid(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_'))
            return false;
    }
    return name.len > 0 && !is_taken(name);
}

static int check_header(const void *record, struct err *err)
{
    const struct service_header *header = record;

    if (!name_valid(header->name))
        return err_set(err, ERR_INVALID, "the header '" STR_FMT "' of a service must be of "
                       "letters, digits, '-' and '_', and none that Perdura sets itself",
                       STR_ARG(str_cut(header->name, 100)));
    if ((header->value.data != NULL) + (header->env.data != NULL) + (header->file.data != NULL) !=
        1)
        return err_set(err, ERR_INVALID, "the header '" STR_FMT "' of a service needs a value, "
                       "{env: NAME} or {file: PATH}", STR_ARG(header->name));
    for (size_t i = 0; i < header->value.len; i++)
        if ((unsigned char)header->value.data[i] < ' ' || header->value.data[i] == 127)
            return err_set(err, ERR_INVALID, "the value of the header '" STR_FMT "' of a service "
                           "must be one line of text", STR_ARG(header->name));
    return 0;
}

static const struct config_field header_fields[] = {
    {.key = "name", .kind = CONFIG_TEXT, AT(service_header, name), .max = BOUND_NAME_BYTES,
     .help = "name of the header"},
    {.key = "value", .kind = CONFIG_TEXT, AT(service_header, value), .max = HEADER_BYTES_MAX,
     .help = "its value"},
    {.key = "env", .kind = CONFIG_TEXT, AT(service_header, env), .max = BOUND_NAME_BYTES,
     .help = "variable with the value, which is never shown or logged"},
    {.key = "file", .kind = CONFIG_TEXT, AT(service_header, file),
     .help = "file with the value, which is never shown or logged"},
    {0}};
static const struct config_record header_record = {
    "services.headers", sizeof(struct service_header), header_fields, check_header};

/* ---- methods ---- */

static int check_method(const void *record, struct err *err)
{
    const struct service_method *method = record;

    TRY(service_method_check(method->name, err));
    return service_method_check(method->lookup, err);
}

static const struct config_field method_fields[] = {
    {.key = "name", .kind = CONFIG_TEXT, AT(service_method, name), .max = BOUND_NAME_BYTES,
     .help = "a method, as handlers and jobs name it"},
    {.key = "lookup", .kind = CONFIG_TEXT, AT(service_method, lookup), .max = BOUND_NAME_BYTES,
     .help = "method that is asked with the idempotency key before a call is repeated"},
    {0}};
static const struct config_record method_record = {
    "services.methods", sizeof(struct service_method), method_fields, check_method};

/* ---- services ---- */

static int check_tls(const struct service_rule *rule, struct err *err)
{
    const struct service_tls *tls = &rule->tls;

    if (service_url_is_clear(rule->url) &&
        (tls->ca.data || tls->cert.data || tls->key.data || tls->server_name.data ||
         tls->spiffe_id.data))
        return err_set(err, ERR_INVALID, "service '" STR_FMT "' has tls settings but a url in "
                       "clear text; nothing would be encrypted", STR_ARG(rule->name));
    if (!tls->cert.data != !tls->key.data)
        return err_set(err, ERR_INVALID, "service '" STR_FMT "' needs both tls.cert and tls.key, "
                       "or neither", STR_ARG(rule->name));
    if (tls->spiffe_id.data && !str_starts(tls->spiffe_id, STR("spiffe://")))
        return err_set(err, ERR_INVALID, "tls.spiffe_id of service '" STR_FMT "' must begin with "
                       "spiffe://", STR_ARG(rule->name));
    if (tls->spiffe_id.data && !tls->ca.data)
        return err_set(err, ERR_INVALID, "service '" STR_FMT "' has tls.spiffe_id but no tls.ca: "
                       "any CA of the system could sign such a name", STR_ARG(rule->name));
    return 0;
}

/* What only gRPC has, and what it cannot have. */
static int check_grpc(const struct service_rule *rule, struct err *err)
{
    if (!service_url_is_grpc(rule->url)) {
        if (rule->descriptor.data || rule->package.data || rule->health_method.data)
            return err_set(err, ERR_INVALID, "service '" STR_FMT "' has descriptor, package or "
                           "health.method, which need a grpc:// or grpcs:// url",
                           STR_ARG(rule->name));
        return 0;
    }
#ifndef PERDURA_GRPC
    return err_set(err, ERR_INVALID, "service '" STR_FMT "' speaks gRPC, which this build of "
                   "Perdura cannot; see `perdura version --features`", STR_ARG(rule->name));
#endif
    if (rule->health_path.data)
        return err_set(err, ERR_INVALID, "service '" STR_FMT "' speaks gRPC: use health.method in "
                       "place of health.path", STR_ARG(rule->name));
    for (uint32_t i = 0; i < rule->headers_count; i++)
        if (rule->headers[i].name.len >= 5 &&
            strncasecmp(rule->headers[i].name.data, "grpc-", 5) == 0)
            return err_set(err, ERR_INVALID, "the header '" STR_FMT "' of service '" STR_FMT "' "
                           "belongs to gRPC itself", STR_ARG(rule->headers[i].name),
                           STR_ARG(rule->name));
    return 0;
}

static int check_service(const void *record, struct err *err)
{
    const struct service_rule *rule = record;

    if (!service_name_valid(rule->name))
        return err_set(err, ERR_INVALID, "the name '" STR_FMT "' of a service must be of at most "
                       "%d letters, digits, '.', '_', '~' and '-'",
                       STR_ARG(str_cut(rule->name, 100)), BOUND_SERVICE_BYTES);
    if (!service_url_valid(rule->url))
        return err_set(err, ERR_INVALID, "the url of service '" STR_FMT "' must be http:// or "
                       "https://, a host and perhaps a path, or grpc:// or grpcs:// and a host, "
                       "without user, query or fragment", STR_ARG(rule->name));
    if (service_url_is_clear(rule->url) && !service_url_is_loopback(rule->url) &&
        str_is(rule->clear_text, "loopback"))
        return err_set(err, ERR_INVALID, "service '" STR_FMT "' is beyond loopback and its url is "
                       "in clear text, so its calls could be read on the way; use https:// or "
                       "grpcs://, or set clear_text to mesh (a sidecar encrypts) or allowed",
                       STR_ARG(rule->name));
    if (rule->health_path.data && rule->health_path.data[0] != '/')
        return err_set(err, ERR_INVALID, "health.path of service '" STR_FMT "' must begin with '/'",
                       STR_ARG(rule->name));
    TRY(check_grpc(rule, err));
    return check_tls(rule, err);
}

static const struct config_field service_fields[] = {
    {.key = "name", .kind = CONFIG_TEXT, AT(service_rule, name), .max = BOUND_SERVICE_BYTES,
     .required = true, .help = "name that handlers and jobs use"},
    {.key = "url", .kind = CONFIG_TEXT, AT(service_rule, url), .max = BOUND_URL_BYTES,
     .required = true, .help = "where its tasks are sent: http://…, https://…, grpc://… "
                              "or grpcs://…"},
    {.key = "descriptor", .kind = CONFIG_TEXT, AT(service_rule, descriptor),
     .help = "gRPC: file with a FileDescriptorSet (default: the service is asked, by reflection)"},
    {.key = "package", .kind = CONFIG_TEXT, AT(service_rule, package), .max = 255,
     .help = "gRPC: package.Service, so that a method may be just its name"},
    {.key = "tls.ca", .kind = CONFIG_TEXT, AT(service_rule, tls.ca),
     .help = "PEM file of the CAs that sign its certificate (default: the system's)"},
    {.key = "tls.cert", .kind = CONFIG_TEXT, AT(service_rule, tls.cert),
     .help = "PEM file of the certificate that is shown to it"},
    {.key = "tls.key", .kind = CONFIG_TEXT, AT(service_rule, tls.key),
     .help = "PEM file of that certificate's private key"},
    {.key = "tls.server_name", .kind = CONFIG_TEXT, AT(service_rule, tls.server_name), .max = 255,
     .help = "name its certificate must have (default: the host of the url)"},
    {.key = "tls.spiffe_id", .kind = CONFIG_TEXT, AT(service_rule, tls.spiffe_id), .max = 1024,
     .help = "SPIFFE id its certificate must have, in place of the host"},
    {.key = "clear_text", .kind = CONFIG_WORD, AT(service_rule, clear_text),
     .fallback = "loopback", .choices = "loopback|mesh|allowed",
     .help = "where an http:// or grpc:// url may lead: this machine only, into a mesh that "
             "encrypts, or anywhere"},
    {.key = "timeout", .kind = CONFIG_DURATION, AT(service_rule, timeout_ms), .fallback = "30s",
     .min = 1, .max = BOUND_DELAY_MS,
     .help = "longest time of a call; the task's own timeout counts where it is shorter"},
    {.key = "headers", .kind = CONFIG_GROUPS, AT(service_rule, headers),
     .count_offset = offsetof(struct service_rule, headers_count), .max = 32,
     .record = &header_record,
     .help = "sent with every call: {X-Team: billing, Authorization: {env: NAME}}; {file: PATH} "
             "reads a file"},
    {.key = "concurrency", .kind = CONFIG_INT, AT(service_rule, concurrency), .fallback = "20",
     .min = 1, .max = 20000, .help = "calls a worker has under way at once"},
    {.key = "rate", .kind = CONFIG_RATE, AT(service_rule, rate),
     .help = "most calls of a worker per period: 100/s"},
    {.key = "breaker.failures", .kind = CONFIG_INT, AT(service_rule, breaker_failures),
     .fallback = "5", .max = 1000000,
     .help = "failures in a row after which tasks wait for the service; 0 = never"},
    {.key = "breaker.open", .kind = CONFIG_DURATION, AT(service_rule, breaker_open_ms),
     .fallback = "60s", .min = 1, .max = BOUND_DELAY_MS,
     .help = "how long they wait before one call is tried"},
    {.key = "health.path", .kind = CONFIG_TEXT, AT(service_rule, health_path),
     .max = BOUND_URL_BYTES, .help = "path that answers GET with 2xx while the service is well"},
    {.key = "health.method", .kind = CONFIG_WORD, AT(service_rule, health_method),
     .choices = "grpc.health.v1", .help = "gRPC: the health check that it offers"},
    {.key = "health.every", .kind = CONFIG_DURATION, AT(service_rule, health_every_ms),
     .fallback = "10s", .min = 100, .max = BOUND_DELAY_MS, .help = "how often it is asked"},
    {.key = "methods", .kind = CONFIG_GROUPS, AT(service_rule, methods),
     .count_offset = offsetof(struct service_rule, methods_count), .max = 256,
     .record = &method_record,
     .help = "what is special about methods: {Charge: {lookup: 'GET /charges/{task/id}'}}"},
    {0}};
const struct config_record config_service_record = {"services", sizeof(struct service_rule),
                                                    service_fields, check_service};

static int check_target(const struct settings *settings, uint32_t i, struct err *err)
{
    const struct handler_rule *handler = &settings->handlers[i];
    const struct service_rule *rule = settings_service(settings, handler->service);
    BUF_AUTO struct buf path = BUF_INIT(1024);

    if (rule && service_url_is_grpc(rule->url))
        return grpc_path_write(rule->package, handler->method, &path, err);
    return service_method_check(handler->method, err);
}

int config_check_services(const struct config *config, const char *name, struct err *err)
{
    const struct settings *settings = &config->settings;

    for (uint32_t i = 0; i < settings->pool.services_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (str_eq(settings->pool.services[j].name, settings->pool.services[i].name))
                return err_set(err, ERR_INVALID, "%s: two entries of services have the name '"
                               STR_FMT "'", name, STR_ARG(settings->pool.services[i].name));
    for (uint32_t i = 0; i < settings->handlers_count; i++) {
        struct err why;

        if (settings->handlers[i].service.data && check_target(settings, i, &why) < 0)
            return err_set(err, ERR_INVALID, "%s: handler '" STR_FMT "': %s", name,
                           STR_ARG(settings->handlers[i].type), why.text);
    }
    return 0;
}
