#include "store/rows/type_limits.h"

#include "base/json.h"

static int64_t member_int(struct str object, struct str key)
{
    int64_t number = 0;

    json_int64(json_get(object, key), &number);
    return number;
}

int type_limits_parse(struct str text, struct arena *arena, struct queue_rule *rule,
                      struct err *err)
{
    struct type_limit *limits;
    struct json_iter iter;
    struct str element;
    size_t count;

    rule->type_limits = NULL;
    rule->type_limits_count = 0;
    if (!text.data || json_check(text, &text, NULL) < 0 || json_kind(text) != JSON_ARRAY)
        return 0;
    count = json_count(text);
    limits = arena_alloc_array(arena, count ? count : 1, sizeof *limits);
    if (!limits)
        return err_no_memory(err);
    json_begin(text, &iter);
    while (json_next_element(&iter, &element) && rule->type_limits_count < BOUND_TYPE_LIMITS) {
        struct type_limit *limit = &limits[rule->type_limits_count];

        limit->type = json_string(json_get(element, STR("type")), arena);
        limit->concurrency = member_int(element, STR("concurrency"));
        limit->rate.count = member_int(element, STR("rate_count"));
        limit->rate.per_ms = member_int(element, STR("rate_per_ms"));
        limit->rate.burst = member_int(element, STR("rate_burst"));
        if (limit->type.data)
            rule->type_limits_count++;
    }
    rule->type_limits = limits;
    return 0;
}

void type_limits_write(const struct queue_rule *rule, struct buf *out)
{
    buf_byte(out, '[');
    for (uint32_t i = 0; i < rule->type_limits_count; i++) {
        const struct type_limit *limit = &rule->type_limits[i];

        buf_text(out, i ? ",{" : "{");
        json_write_member_string(out, "type", limit->type);
        buf_text(out, ",\"concurrency\":");
        buf_int(out, limit->concurrency);
        buf_text(out, ",\"rate_count\":");
        buf_int(out, limit->rate.count);
        buf_text(out, ",\"rate_per_ms\":");
        buf_int(out, limit->rate.per_ms);
        buf_text(out, ",\"rate_burst\":");
        buf_int(out, limit->rate.burst);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}
