/* The section `brokers:` of the configuration: its records, and the rules over their keys. Constant
 * data and checks; passwords in files are read in config_secrets.c. */
#include "cli/config/config.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/broker/broker_url.h"
#include "core/queue_name.h"
#include "core/task/search.h"

#define BROKER_NAME_BYTES 64  /* part of keys of tasks */
#define BROKER_QUEUE_BYTES 250 /* AMQP has 255; ".dead" is put behind it */
#define POINTER_BYTES 256
#define PREFETCH_MAX 10000
#define AT(type, member) .offset = offsetof(struct type, member)

static int check_pointer(struct str queue, const char *key, struct str pointer, struct err *err)
{
    if (!pointer.data || json_pointer_valid(pointer))
        return 0;
    return err_set(err, ERR_INVALID, "%s of the queue '" STR_FMT "' must be a JSON pointer such as "
                   "/order/id", key, STR_ARG(queue));
}

static int check_input(const void *record, struct err *err)
{
    const struct broker_input *input = record;

    TRY(check_pointer(input->queue, "map.payload", input->payload, err));
    TRY(check_pointer(input->queue, "map.key", input->key, err));
    TRY(check_pointer(input->queue, "map.options", input->options, err));
    TRY(namespace_check_name(input->namespace_name, err));
    if (search_is_pattern(input->type) || search_is_pattern(input->task_queue))
        return err_set(err, ERR_INVALID, "type and task_queue of the queue '" STR_FMT "' must be "
                       "names, without '*'", STR_ARG(input->queue));
    if (str_eq(input->queue, input->dead_letters))
        return err_set(err, ERR_INVALID, "dead_letters of the queue '" STR_FMT "' must be another "
                       "queue, or refused messages come again for ever", STR_ARG(input->queue));
    return 0;
}

static const struct config_field input_fields[] = {
    {.key = "queue", .kind = CONFIG_TEXT, AT(broker_input, queue), .max = BROKER_QUEUE_BYTES,
     .required = true, .help = "queue of the broker; it is made where it is not there"},
    {.key = "queue_type", .kind = CONFIG_WORD, AT(broker_input, queue_type), .fallback = "quorum",
     .choices = "quorum|classic", .help = "what it is where it is made"},
    {.key = "type", .kind = CONFIG_TEXT, AT(broker_input, type), .max = BOUND_NAME_BYTES,
     .required = true, .help = "type of the tasks"},
    {.key = "task_queue", .kind = CONFIG_TEXT, AT(broker_input, task_queue),
     .max = BOUND_NAME_BYTES, .help = "their queue (default: default)"},
    {.key = "namespace", .kind = CONFIG_TEXT, AT(broker_input, namespace_name),
     .max = BOUND_NAME_BYTES, .fallback = "default", .help = "their namespace"},
    {.key = "map.payload", .kind = CONFIG_TEXT, AT(broker_input, payload), .max = POINTER_BYTES,
     .help = "JSON pointer to the payload (default: the whole body)"},
    {.key = "map.key", .kind = CONFIG_TEXT, AT(broker_input, key), .max = POINTER_BYTES,
     .help = "JSON pointer to what tells messages apart (default: the message_id)"},
    {.key = "map.options", .kind = CONFIG_TEXT, AT(broker_input, options), .max = POINTER_BYTES,
     .help = "JSON pointer to other members of the task, such as priority (default: none)"},
    {.key = "dead_letters", .kind = CONFIG_TEXT, AT(broker_input, dead_letters), .max = 255,
     .help = "queue of refused messages (default: the queue's name and .dead)"},
    {.key = "prefetch", .kind = CONFIG_INT, AT(broker_input, prefetch), .fallback = "1000",
     .min = 1, .max = PREFETCH_MAX, .help = "messages that a node holds at once"},
    {0}};
static const struct config_record input_record = {
    "brokers.consume", sizeof(struct broker_input), input_fields, check_input};

static bool name_valid(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.'))
            return false;
    }
    return name.len > 0;
}

static int check_clear_text(const struct broker_rule *rule, const struct broker_url *url,
                            struct err *err)
{
    const struct broker_tls *tls = &rule->tls;

    if (!tls->cert.data != !tls->key.data)
        return err_set(err, ERR_INVALID, "broker '" STR_FMT "' needs both tls.cert and tls.key, or "
                       "neither", STR_ARG(rule->name));
    if (url->tls)
        return 0;
    if (tls->ca.data || tls->cert.data)
        return err_set(err, ERR_INVALID, "broker '" STR_FMT "' has tls settings but an amqp:// "
                       "url; nothing would be encrypted", STR_ARG(rule->name));
    if (broker_url_is_loopback(url) || !str_is(rule->clear_text, "loopback"))
        return 0;
    return err_set(err, ERR_INVALID, "broker '" STR_FMT "' is beyond loopback and its url is in "
                   "clear text, so its messages could be read on the way; use amqps://, or set "
                   "clear_text to mesh (a sidecar encrypts) or allowed", STR_ARG(rule->name));
}

static int check_broker(const void *record, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    const struct broker_rule *rule = record;
    struct broker_url url;
    struct err why = {0};

    if (!name_valid(rule->name))
        return err_set(err, ERR_INVALID, "the name '" STR_FMT "' of a broker must be of letters, "
                       "digits, '.', '_' and '-'", STR_ARG(str_cut(rule->name, 100)));
#ifndef PERDURA_RABBITMQ
    return err_set(err, ERR_INVALID, "this build of Perdura has no RabbitMQ, which broker '" STR_FMT
                   "' needs; see `perdura version --features`", STR_ARG(rule->name));
#endif
    if (broker_url_parse(rule->url, &arena, &url, &why) < 0)
        return err_set(err, ERR_INVALID, "the url of broker '" STR_FMT "': %s",
                       STR_ARG(rule->name), why.text);
    return check_clear_text(rule, &url, err);
}

static const struct config_field broker_fields[] = {
    {.key = "name", .kind = CONFIG_TEXT, AT(broker_rule, name), .max = BROKER_NAME_BYTES,
     .required = true, .help = "its name here; part of the keys of tasks"},
    {.key = "url", .kind = CONFIG_TEXT, AT(broker_rule, url), .max = BOUND_URL_BYTES,
     .required = true, .help = "amqp://user@127.0.0.1:5672/%2f, or amqps:// for TLS"},
    {.key = "password_file", .kind = CONFIG_TEXT, AT(broker_rule, password_file),
     .help = "file with the password, in place of one in the url"},
    {.key = "tls.ca", .kind = CONFIG_TEXT, AT(broker_rule, tls.ca),
     .help = "PEM file of the CAs that sign its certificate (default: the system's)"},
    {.key = "tls.cert", .kind = CONFIG_TEXT, AT(broker_rule, tls.cert),
     .help = "PEM file of the certificate that is shown to it"},
    {.key = "tls.key", .kind = CONFIG_TEXT, AT(broker_rule, tls.key),
     .help = "PEM file of that certificate's private key"},
    {.key = "clear_text", .kind = CONFIG_WORD, AT(broker_rule, clear_text), .fallback = "loopback",
     .choices = "loopback|mesh|allowed",
     .help = "where an amqp:// url may lead, as for services"},
    {.key = "heartbeat", .kind = CONFIG_DURATION, AT(broker_rule, heartbeat_ms), .fallback = "10s",
     .min = 2000, .max = 600000,
     .help = "a broker that is silent for twice this is given up and connected again"},
    {.key = "consume", .kind = CONFIG_LIST, AT(broker_rule, inputs),
     .count_offset = offsetof(struct broker_rule, inputs_count), .max = 64,
     .record = &input_record, .help = "queues whose messages become tasks"},
    {0}};
const struct config_record config_broker_record = {"brokers", sizeof(struct broker_rule),
                                                   broker_fields, check_broker};

static int check_queues(const struct broker_rule *rule, const char *name, struct err *err)
{
    for (uint32_t i = 0; i < rule->inputs_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (str_eq(rule->inputs[j].queue, rule->inputs[i].queue))
                return err_set(err, ERR_INVALID, "%s: broker '" STR_FMT "' consumes the queue '"
                               STR_FMT "' twice", name, STR_ARG(rule->name),
                               STR_ARG(rule->inputs[i].queue));
    return 0;
}

int config_check_brokers(const struct config *config, const char *name, struct err *err)
{
    const struct settings *settings = &config->settings;

    for (uint32_t i = 0; i < settings->pool.brokers_count; i++) {
        TRY(check_queues(&settings->pool.brokers[i], name, err));
        for (uint32_t j = 0; j < i; j++)
            if (str_eq(settings->pool.brokers[j].name, settings->pool.brokers[i].name))
                return err_set(err, ERR_INVALID, "%s: two entries of brokers have the name '"
                               STR_FMT "'", name, STR_ARG(settings->pool.brokers[i].name));
    }
    return 0;
}
