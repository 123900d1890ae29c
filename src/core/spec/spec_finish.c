/* What a task gets that its request did not say: the defaults of its type, the priority that rules
 * give it (C5), and the hash of its input (A3). Pure, any thread. */
#include "core/callback_allow.h"
#include "core/spec/spec_int.h"

#include "base/hash.h"

/* Numbers grow in canonical form (1e20 has 21 digits), and hash_fields may name a part again and
 * again. */
#define CANONICAL_BYTES_MAX (8 * BOUND_PAYLOAD_BYTES)
#define RULE_BYTES_MAX (8 * BOUND_METADATA_BYTES)

void spec_init(struct task_input *input)
{
    *input = (struct task_input){
        .spec = {
            .namespace_name = STR(TASK_DEFAULT_NAMESPACE),
            .queue = STR(TASK_DEFAULT_QUEUE),
            .retry = {
                .policy = RETRY_POLYNOMIAL,
                .max_retries = TASK_DEFAULT_MAX_RETRIES,
                .delay_ms = TASK_DEFAULT_RETRY_DELAY_MS,
                .max_delay_ms = TASK_DEFAULT_MAX_RETRY_DELAY_MS,
            },
            .max_crashes = TASK_DEFAULT_MAX_CRASHES,
            .max_continuations = TASK_DEFAULT_MAX_CONTINUATIONS,
            .timeout_ms = TASK_DEFAULT_TIMEOUT_MS,
            .auto_recovery = true,
        },
    };
}

static void take_default(int64_t *value, bool given, int64_t from_type)
{
    if (!given && from_type >= 0)
        *value = from_type;
}

/* The task's own word comes first, then its type's, then its queue's. */
static void fill_stall_after(struct task_spec *spec, const struct handler_rule *handler,
                             const struct settings *settings)
{
    if (spec->stall_after_ms == 0 && handler && handler->stall_after_ms > 0)
        spec->stall_after_ms = handler->stall_after_ms;
    for (uint32_t i = 0; spec->stall_after_ms == 0 && i < settings->queues_count; i++)
        if (str_eq(settings->queues[i].name, spec->queue))
            spec->stall_after_ms = settings->queues[i].stall_after_ms;
}

static void fill_from_handler(struct task_input *input, const struct handler_rule *handler)
{
    struct task_spec *spec = &input->spec;
    bool planned =
        !uuid_is_nil(&spec->origin.schedule_id) || !uuid_is_nil(&spec->origin.recurring_job_id);

    take_default(&spec->timeout_ms, input->has_timeout, handler->timeout_ms);
    take_default(&spec->retry.max_retries, input->has_max_retries, handler->max_retries);
    take_default(&spec->retry.delay_ms, input->has_retry_delay, handler->retry_delay_ms);
    take_default(&spec->retry.max_delay_ms, input->has_max_retry_delay,
                 handler->max_retry_delay_ms);
    if (!input->has_retry_policy && handler->has_retry_policy)
        spec->retry.policy = handler->retry_policy;
    /* Two runs of a schedule have the same input and are still two runs. */
    if (handler->hash_input && !input->no_hash && !planned)
        input->hash_input = true;
}

/* True when two JSON values are the same however they are written. */
static bool json_equal(struct str a, struct str b)
{
    BUF_AUTO struct buf canonical_a = BUF_INIT(RULE_BYTES_MAX);
    BUF_AUTO struct buf canonical_b = BUF_INIT(RULE_BYTES_MAX);
    bool equal = str_eq(a, b);

    if (!equal && json_kind(a) == json_kind(b))
        equal = json_canonical(a, &canonical_a, NULL) == 0 &&
                json_canonical(b, &canonical_b, NULL) == 0 &&
                str_eq(buf_view(&canonical_a), buf_view(&canonical_b));
    return equal;
}

static bool rule_matches(const struct priority_rule *rule, const struct task_input *input,
                         struct arena *arena)
{
    struct str value;

    if (rule->type.data && !settings_type_matches(rule->type, input->spec.type))
        return false;
    if (!rule->metadata_pointer.data)
        return true;
    if (!input->about.metadata.data)
        return false;
    value = json_pointer(input->about.metadata, rule->metadata_pointer, arena);
    if (!value.data)
        return false;
    return !rule->metadata_equals.data || json_equal(value, rule->metadata_equals);
}

static void apply_rules(struct task_input *input, const struct settings *settings,
                        struct arena *arena)
{
    for (uint32_t i = 0; i < settings->enqueue.rules_count; i++) {
        if (!rule_matches(&settings->enqueue.rules[i], input, arena))
            continue;
        input->priority = settings->enqueue.rules[i].priority;
        input->ruled_priority = true;
        return;
    }
}

/* {"pointer":value,...} of the parts named, null for one that is not there. */
static void write_parts(const struct task_input *input, struct str payload, struct arena *arena,
                        struct buf *out)
{
    buf_byte(out, '{');
    for (uint32_t i = 0; i < input->hash_fields_count && !out->failed; i++) {
        struct str value = json_pointer(payload, input->hash_fields[i], arena);

        json_comma(out);
        json_write_string(out, input->hash_fields[i]);
        buf_byte(out, ':');
        buf_str(out, value.data ? value : STR("null"));
    }
    buf_byte(out, '}');
}

static int hash_input(struct task_input *input, struct arena *arena, struct err *err)
{
    const char *field = input->hash_fields_count ? "hash_fields" : "payload";
    struct buf parts = BUF_INIT(CANONICAL_BYTES_MAX);
    struct buf canonical = BUF_INIT(CANONICAL_BYTES_MAX);
    struct str value = input->spec.payload.data ? input->spec.payload : STR("null");
    uint8_t hash[HASH_BYTES];
    char *hex;
    int rc = 0;

    if (input->hash_fields_count) {
        write_parts(input, value, arena, &parts);
        value = buf_view(&parts);
    }
    if (parts.failed || json_canonical(value, &canonical, NULL) < 0) {
        rc = err_set_field(err, ERR_TOO_LARGE, field,
                           "\"%s\" is too large or too deep for an input hash; name smaller parts "
                           "in \"hash_fields\" or use \"idempotency_key\"",
                           field);
        goto out;
    }
    hex = arena_alloc(arena, HASH_HEX_BYTES + 1);
    if (!hex || hash_sha256(buf_view(&canonical), hash) < 0) {
        rc = spec_no_memory(err);
        goto out;
    }
    hash_hex(hash, sizeof hash, hex);
    input->spec.input_hash = str_span(hex, HASH_HEX_BYTES);
out:
    buf_deinit(&parts);
    buf_deinit(&canonical);
    return rc;
}

static int check_key(struct str key, struct err *err)
{
    if (!key.data || !str_starts(key, STR(SPEC_OWN_KEYS)))
        return 0;
    return err_set_field(err, ERR_INVALID, "idempotency_key", "\"idempotency_key\" must not begin "
                         "with \"" SPEC_OWN_KEYS "\": such keys are Perdura's own");
}

static int check_input(const struct task_input *input, struct err *err)
{
    if (!input->spec.type.data)
        return err_set_field(err, ERR_INVALID, "type",
                             "\"type\" is missing; it says which handler does the task");
    TRY(spec_check_text(input->spec.type, BOUND_NAME_BYTES, "type", err));
    TRY(check_key(input->spec.idempotency_key, err));
    TRY(spec_check_queue(input->spec.queue, err));
    TRY(spec_check_bytes(input->spec.payload, BOUND_PAYLOAD_BYTES, "payload", err));
    TRY(spec_check_bytes(input->data, BOUND_DATA_BYTES, "data", err));
    /* what a fork says of itself comes on top */
    return spec_check_bytes(input->about.metadata, uuid_is_nil(&input->forked_from) ?
                            BOUND_METADATA_BYTES : BOUND_METADATA_BYTES + BOUND_FORKED_FROM_BYTES,
                            "metadata", err);
}

int spec_finish(struct task_input *input, const struct settings *settings, struct arena *arena,
                struct err *err)
{
    const struct handler_rule *handler;

    TRY(check_input(input, err));
    if (settings) {
        if (input->spec.callback.url.data && !callback_allowed(settings, input->spec.callback.url))
            return err_set_field(err, ERR_INVALID, "callback_url",
                                 "callbacks to this address are not allowed; add it to "
                                 "callbacks.allow in the configuration");
        handler = settings_handler(settings, input->spec.type);
        if (handler)
            fill_from_handler(input, handler);
        fill_stall_after(&input->spec, handler, settings);
        if (!input->has_priority)
            apply_rules(input, settings, arena);
    }
    return input->hash_input ? hash_input(input, arena, err) : 0;
}
