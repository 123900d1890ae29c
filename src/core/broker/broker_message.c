#include "core/broker/broker_message.h"

#include "base/hash.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/spec/spec_intake.h"

#define OWN_KEYS SPEC_OWN_KEYS "broker:"

/* A text or a number, as text. */
static int read_key(struct str body, const struct broker_input *input, struct arena *arena,
                    struct str *key, struct err *err)
{
    struct str value = json_pointer(body, input->key, arena);

    if (!value.data)
        return err_set(err, ERR_INVALID, "the message has no '" STR_FMT "', which map.key names",
                       STR_ARG(input->key));
    *key = value;
    if (json_kind(value) == JSON_STRING)
        *key = json_string(value, arena);
    else if (json_kind(value) != JSON_NUMBER)
        key->len = 0;
    if (key->len == 0)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' of the message must be a text or a number",
                       STR_ARG(input->key));
    return 0;
}

static int make_key(struct str broker, const struct broker_input *input, struct str key,
                    struct arena *arena, struct str *to, struct err *err)
{
    uint8_t hash[HASH_BYTES];
    char hex[HASH_HEX_BYTES + 1];
    struct str whole = arena_format(arena, OWN_KEYS STR_FMT ":" STR_FMT ":" STR_FMT,
                                    STR_ARG(broker), STR_ARG(input->queue), STR_ARG(key));

    TRY_MEMORY(whole.data);
    *to = whole;
    if (whole.len <= BOUND_KEY_BYTES)
        return 0;
    if (hash_sha256(whole, hash) < 0)
        return err_no_memory(err);
    hash_hex(hash, sizeof hash, hex);
    *to = arena_format(arena, OWN_KEYS "sha256:%s", hex);
    return to->data ? 0 : err_no_memory(err);
}

static int find_key(struct str broker, const struct broker_input *input,
                    const struct broker_message *message, struct str body, struct arena *arena,
                    struct str *to, struct err *err)
{
    struct str key = message->id;

    if (input->key.data)
        TRY(read_key(body, input, arena, &key, err));
    if (!str_is_utf8(key))
        return err_set(err, ERR_INVALID, "the message_id must be UTF-8");
    if (key.len == 0)
        return err_set(err, ERR_INVALID, "the message has no message_id, by which one that comes "
                       "twice is known; set it, or name a member of the body in map.key");
    return make_key(broker, input, key, arena, to, err);
}

static int find_parts(const struct broker_input *input, struct str body, struct arena *arena,
                      struct intake_row *row, struct err *err)
{
    row->payload = input->payload.data ? json_pointer(body, input->payload, arena) : body;
    if (!row->payload.data)
        return err_set(err, ERR_INVALID, "the message has no '" STR_FMT "', which map.payload "
                       "names", STR_ARG(input->payload));
    if (row->payload.len > BOUND_PAYLOAD_BYTES)
        return err_set(err, ERR_TOO_LARGE, "the payload is larger than %d bytes",
                       BOUND_PAYLOAD_BYTES);
    row->options = input->options.data ? json_pointer(body, input->options, arena) : STR_NONE;
    if (!row->options.data || json_kind(row->options) == JSON_NULL)
        row->options = STR("{}");
    if (json_get(row->options, STR("idempotency_key")).data)
        return err_set(err, ERR_INVALID, "the options must not have an idempotency_key: the "
                       "message_id, or what map.key names, is the key");
    return 0;
}

int broker_message_parse(struct str broker, const struct broker_input *input,
                         const struct broker_message *message, const struct settings *settings,
                         struct arena *arena, struct task_input *task, struct err *err)
{
    struct intake_row row = {.namespace_name = input->namespace_name, .type = input->type};
    struct str body, key;

    if (message->body.len > BROKER_BODY_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE, "the message is larger than %d MiB",
                       (int)(BROKER_BODY_BYTES_MAX >> 20));
    TRY(json_check(message->body, &body, err));
    TRY(find_key(broker, input, message, body, arena, &key, err));
    TRY(find_parts(input, body, arena, &row, err));
    TRY(intake_parse(&row, settings, arena, task, err));
    task->given_key = 0;
    task->spec.idempotency_key = key;
    if (input->task_queue.data && !task->has_queue)
        task->spec.queue = input->task_queue;
    return 0;
}
