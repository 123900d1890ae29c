/* Limits and order of a queue from JSON: concurrency, rates, limits per type, order, ageing. Bounds
 * are those of the configuration file. The engine applies them. Pure, any thread.
 * The other bodies are in parse_report.c. */
#include "server/parse_queue.h"

#include "core/bounds.h"
#include "server/body.h"

#define CONCURRENCY_MAX 1000000
#define RATE_COUNT_MAX 1000000000 /* as in the configuration file */

static bool given(const struct body_field *field)
{
    return field->value.data || field->is_null;
}

int parse_rate(const struct body_field *field, struct rate_rule *rate, struct err *err)
{
    struct body_field parts[] = {{.name = "count"}, {.name = "per_ms"}, {.name = "burst"}};
    int rc = 0;

    *rate = (struct rate_rule){.per_ms = 1000};
    if (!field->value.data)
        return 0;
    if (json_kind(field->value) == JSON_OBJECT)
        rc = body_parse(field->value, parts, 3, err);
    if (rc == 0)
        rc = body_int(&parts[0], 0, RATE_COUNT_MAX, &rate->count, err);
    if (rc == 0)
        rc = body_int(&parts[1], 1, BOUND_DELAY_MS, &rate->per_ms, err);
    if (rc == 0)
        rc = body_int(&parts[2], 1, RATE_COUNT_MAX, &rate->burst, err);
    if (rc < 0 || !parts[0].value.data)
        rc = err_set_field(err, ERR_INVALID, field->name,
                           "'%s' must be {\"count\":100,\"per_ms\":1000} or null; \"burst\" may "
                           "be added",
                           field->name);
    return rc;
}

/* {"concurrency","rate"}, or just the concurrency; with "type" where the limits are an array, and
 * not where they are an object, whose names are the types. */
static int parse_type_limit(struct str value, bool by_name, struct arena *arena,
                            struct type_limit *limit, struct err *err)
{
    enum { CONCURRENCY, RATE, TYPE, COUNT };
    struct body_field fields[COUNT] = {{.name = "concurrency"}, {.name = "rate"}, {.name = "type"}};

    if (by_name && json_kind(value) == JSON_NUMBER)
        fields[CONCURRENCY].value = value;
    else
        TRY(body_parse(value, fields, by_name ? TYPE : COUNT, err));
    TRY(body_text(&fields[TYPE], BOUND_NAME_BYTES, arena, &limit->type, err));
    TRY(body_int(&fields[CONCURRENCY], 0, CONCURRENCY_MAX, &limit->concurrency, err));
    TRY(parse_rate(&fields[RATE], &limit->rate, err));
    return body_check_name("type", limit->type, BOUND_NAME_BYTES, err);
}

static int check_type_limits(const struct body_field *field, struct err *err)
{
    enum json_kind kind = json_kind(field->value);

    if ((kind != JSON_ARRAY && kind != JSON_OBJECT) ||
        json_count(field->value) > BOUND_TYPE_LIMITS)
        return err_set_field(err, ERR_INVALID, field->name,
                             "'%s' must be an array of at most %d {\"type\",\"concurrency\","
                             "\"rate\"}", field->name, BOUND_TYPE_LIMITS);
    return 0;
}

static int parse_type_limits(const struct body_field *field, struct arena *arena,
                             struct queue_rule *rule, struct err *err)
{
    struct type_limit *limits;
    struct json_member member;
    struct json_iter iter;
    uint32_t count = 0;
    int rc = field->value.data ? check_type_limits(field, err) : 0;

    if (rc < 0 || !field->value.data)
        return rc;
    limits = TRY_MEMORY(arena_alloc_array(arena, json_count(field->value) + 1, sizeof *limits));
    json_begin(field->value, &iter);
    if (json_kind(field->value) == JSON_OBJECT)
        for (; rc == 0 && json_next_member(&iter, &member); count++) {
            limits[count].type = json_decode_key(member.key, arena);
            rc = parse_type_limit(member.value, true, arena, &limits[count], err);
        }
    else
        for (; rc == 0 && json_next_element(&iter, &member.value); count++)
            rc = parse_type_limit(member.value, false, arena, &limits[count], err);
    rule->type_limits = limits;
    rule->type_limits_count = count;
    return rc;
}

static int parse_order(const struct body_field *field, struct arena *arena,
                       enum priority_order *order, struct err *err)
{
    struct str text = STR("high_first");

    TRY(body_text(field, BOUND_NAME_BYTES, arena, &text, err));
    if (!str_is(text, "high_first") && !str_is(text, "low_first"))
        return err_set_field(err, ERR_INVALID, field->name,
                             "'%s' must be high_first or low_first", field->name);
    *order = str_is(text, "low_first") ? ORDER_LOW_FIRST : ORDER_HIGH_FIRST;
    return 0;
}

int parse_queue_patch(struct str object, struct arena *arena, struct queue_patch_request *request,
                      struct err *err)
{
    enum { CONCURRENCY, RATE, KEY_CONCURRENCY, KEY_RATE, TYPE_LIMITS, ORDER, AGEING, COUNT };
    struct body_field fields[COUNT] = {
        [CONCURRENCY] = {.name = "concurrency"}, [RATE] = {.name = "rate"},
        [KEY_CONCURRENCY] = {.name = "key_concurrency"}, [KEY_RATE] = {.name = "key_rate"},
        [TYPE_LIMITS] = {.name = "type_limits"}, [ORDER] = {.name = "priority_order"},
        [AGEING] = {.name = "ageing_ms"}};
    struct queue_rule *rule = &request->rule;

    TRY(body_parse(object, fields, COUNT, err));
    for (unsigned i = 0; i < COUNT; i++)
        if (given(&fields[i]))
            request->set |= 1u << i; /* QUEUE_SET_... are in the same order */
    _Static_assert(QUEUE_SET_AGEING == 1 << AGEING && QUEUE_SET_KEY_RATE == 1 << KEY_RATE,
                   "the order of the fields above");
    TRY(body_int(&fields[CONCURRENCY], 0, CONCURRENCY_MAX, &rule->concurrency, err));
    TRY(parse_rate(&fields[RATE], &rule->rate, err));
    TRY(body_int(&fields[KEY_CONCURRENCY], 0, CONCURRENCY_MAX, &rule->key_concurrency, err));
    TRY(parse_rate(&fields[KEY_RATE], &rule->key_rate, err));
    TRY(parse_type_limits(&fields[TYPE_LIMITS], arena, rule, err));
    TRY(parse_order(&fields[ORDER], arena, &rule->priority_order, err));
    return body_int(&fields[AGEING], 0, BOUND_DELAY_MS, &rule->ageing_ms, err);
}
