/* Bodies of the worker's routes. Written straight into a buffer, read by slicing. */
#include "worker/sources/source_remote_json.h"

/* ---- writing ---- */

static void put_text(struct buf *out, const char *key, struct str text)
{
    if (!text.data)
        return;
    json_write_key(out, key);
    json_write_string(out, text);
}

static void put_json(struct buf *out, const char *key, struct str json)
{
    if (!json.data)
        return;
    json_write_key(out, key);
    buf_str(out, json);
}

static void put_int(struct buf *out, const char *key, int64_t value)
{
    json_write_key(out, key);
    buf_int(out, value);
}

static void put_bool(struct buf *out, const char *key, bool value)
{
    json_write_key(out, key);
    buf_text(out, value ? "true" : "false");
}

static void put_uuid(struct buf *out, const char *key, const struct uuid *id)
{
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    put_text(out, key, str_of(text));
}

void remote_write_strings(struct buf *out, const struct str *texts, uint32_t count)
{
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_comma(out);
        json_write_string(out, texts[i]);
    }
    buf_byte(out, ']');
}

static void put_strings(struct buf *out, const char *key, const struct str *texts, uint32_t count)
{
    if (!texts)
        return;
    json_write_key(out, key);
    remote_write_strings(out, texts, count);
}

void remote_write_register(struct buf *out, const struct source_worker *worker)
{
    buf_byte(out, '{');
    put_text(out, "id", worker->id);
    put_text(out, "hostname", worker->hostname);
    put_text(out, "version", worker->version);
    put_int(out, "pool_size", worker->pool_size);
    put_strings(out, "queues", worker->queues, worker->queues_count);
    put_strings(out, "types", worker->types, worker->types_count);
    put_strings(out, "categories", worker->categories, worker->categories_count);
    buf_byte(out, '}');
}

void remote_write_claim(struct buf *out, struct str queues, struct str types,
                        struct str services, uint32_t max, int64_t wait_ms)
{
    buf_byte(out, '{');
    put_json(out, "queues", queues);
    put_json(out, "types", types);
    put_json(out, "services", services);
    put_int(out, "max", max);
    put_int(out, "wait_ms", wait_ms);
    buf_byte(out, '}');
}

static void put_field(struct buf *out, const struct report_field *field,
                      const struct report *report)
{
    const void *at = (const char *)report + field->offset;

    switch (field->kind) {
    case REPORT_IS_ID:
        put_uuid(out, field->name, at);
        break;
    case REPORT_IS_OP:
        put_text(out, field->name, str_of(report_op_word(report->op)));
        break;
    case REPORT_IS_LEVEL:
        put_text(out, field->name, str_of(severity_word(report->level)));
        break;
    case REPORT_IS_INT:
        if (*(const int64_t *)at >= field->min)
            put_int(out, field->name, *(const int64_t *)at);
        break;
    case REPORT_IS_BOOL:
        put_bool(out, field->name, *(const bool *)at);
        break;
    case REPORT_IS_TEXT:
        put_text(out, field->name, *(const struct str *)at);
        break;
    case REPORT_IS_JSON:
    case REPORT_IS_OBJECT:
    case REPORT_IS_ARRAY:
        put_json(out, field->name, *(const struct str *)at);
        break;
    }
}

void remote_write_reports(struct buf *out, const struct report *reports, uint32_t count)
{
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_comma(out);
        buf_byte(out, '{');
        for (size_t f = 0; f < REPORT_FIELDS; f++)
            if (report_fields[f].ops & 1u << reports[i].op)
                put_field(out, &report_fields[f], &reports[i]);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void put_holds(struct buf *out, const struct service_hold *holds, uint32_t count)
{
    json_write_key(out, "holds");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_comma(out);
        buf_byte(out, '{');
        put_text(out, "service", holds[i].service);
        put_int(out, "wait_ms", holds[i].wait_ms);
        put_bool(out, "is_down", holds[i].is_down);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

void remote_write_heartbeat(struct buf *out, const struct held *held, uint32_t count,
                            const struct service_hold *holds, uint32_t holds_count,
                            struct str process, const struct agent_day *days,
                            uint32_t days_count, struct str figures)
{
    buf_text(out, "{\"tasks\":[");
    for (uint32_t i = 0; i < count; i++) {
        json_comma(out);
        buf_byte(out, '{');
        put_uuid(out, "task_id", &held[i].task_id);
        put_int(out, "lease_token", held[i].lease_token);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
    if (holds)
        put_holds(out, holds, holds_count);
    if (days_count) {
        put_text(out, "process", process);
        agent_days_write(days, days_count, out);
    }
    if (figures.len) {
        json_comma(out);
        buf_append(out, figures.data, figures.len);
    }
    buf_byte(out, '}');
}

/* ---- reading ---- */

static int not_understood(struct err *err, const char *what)
{
    return err_set(err, ERR_IO, "the server's answer to a %s is not understood; "
                                "do worker and server have the same version?", what);
}

static bool read_object(struct str body, struct str *object)
{
    return json_check_ours(body, object, NULL) == 0 && json_kind(*object) == JSON_OBJECT;
}

/* A member that is looked for; absent where it is not there. */
struct wanted {
    struct str key;
    struct str value;
};

/* All of them in one pass: the tasks of a claim have some sixty members each, and looking for one
 * after the other was most of what a worker did. */
static void get_all(struct str object, struct wanted *wanted, size_t count)
{
    struct json_member member;
    struct json_iter iter;

    json_begin(object, &iter);
    while (json_next_member(&iter, &member)) {
        bool escaped = memchr(member.key.data, '\\', member.key.len) != NULL;

        for (size_t i = 0; i < count; i++)
            if (escaped ? json_key_is(member.key, wanted[i].key)
                        : str_eq(member.key, wanted[i].key))
                wanted[i].value = member.value;
    }
}

static struct str of_kind(struct str value, enum json_kind kind)
{
    return value.data && json_kind(value) == kind ? value : STR_NONE;
}

static struct str text_of(struct str value, struct arena *arena)
{
    return of_kind(value, JSON_STRING).data ? json_string(value, arena) : STR_NONE;
}

static bool int_of(struct str value, int64_t *number)
{
    return of_kind(value, JSON_NUMBER).data && json_int64(value, number);
}

static bool uuid_of(struct str value, struct uuid *id)
{
    return of_kind(value, JSON_STRING).data &&
           uuid_parse(str_span(value.data + 1, value.len - 2), id);
}

static struct str get_kind(struct str object, const char *key, enum json_kind kind)
{
    return of_kind(json_get(object, str_of(key)), kind);
}

static struct str get_text(struct str object, const char *key, struct arena *arena)
{
    return text_of(json_get(object, str_of(key)), arena);
}

static bool get_int(struct str object, const char *key, int64_t *number)
{
    return int_of(json_get(object, str_of(key)), number);
}

int remote_read_register(struct str body, struct arena *arena,
                         struct source_registration *registered, struct err *err)
{
    struct str object;
    struct str text, unknown;

    if (!read_object(body, &object))
        return not_understood(err, "registration");
    text = get_text(object, "id", arena);
    unknown = json_get(object, STR("unknown_categories"));
    registered->id = arena_str(arena, text);
    registered->unknown_categories = arena_str(arena, unknown);
    if (!text.len || !registered->id.data ||
        !get_int(object, "heartbeat_ms", &registered->heartbeat_ms) ||
        !get_int(object, "lease_ms", &registered->lease_ms) || registered->heartbeat_ms <= 0 ||
        registered->lease_ms <= 0)
        return not_understood(err, "registration");
    return 0;
}

static struct str json_or_null(struct str value)
{
    return value.data ? value : STR("null");
}

static void read_checkpoint(struct str checkpoint, struct arena *arena, struct work *work)
{
    work->checkpoint_name = get_text(checkpoint, "name", arena);
    work->checkpoint_data = json_or_null(json_get(checkpoint, STR("data")));
    get_int(checkpoint, "progress", &work->checkpoint_progress);
}

static bool read_work(struct str task, struct arena *arena, struct work *work)
{
    enum { ID, TYPE, QUEUE, PAYLOAD, DATA, METADATA, CORRELATION_ID, TRACEPARENT, TRACESTATE,
           CHECKPOINT, COMPLETE_TOKEN, IDENTITY, TIMEOUT_MS,
           RETRY_DELAY_MS, ATTEMPT, CRASH_COUNT, LEASE_TOKEN, LEASE_MS, COUNT };
    struct wanted found[COUNT] = {
        [ID] = {.key = STR("id")},
        [TYPE] = {.key = STR("type")},
        [QUEUE] = {.key = STR("queue")},
        [PAYLOAD] = {.key = STR("payload")},
        [DATA] = {.key = STR("data")},
        [METADATA] = {.key = STR("metadata")},
        [CORRELATION_ID] = {.key = STR("correlation_id")},
        [TRACEPARENT] = {.key = STR("traceparent")},
        [TRACESTATE] = {.key = STR("tracestate")},
        [CHECKPOINT] = {.key = STR("checkpoint")},
        [COMPLETE_TOKEN] = {.key = STR("complete_token")},
        [IDENTITY] = {.key = STR("identity")},
        [TIMEOUT_MS] = {.key = STR("timeout_ms")},
        [RETRY_DELAY_MS] = {.key = STR("retry_delay_ms")},
        [ATTEMPT] = {.key = STR("attempt")},
        [CRASH_COUNT] = {.key = STR("crash_count")},
        [LEASE_TOKEN] = {.key = STR("lease_token")},
        [LEASE_MS] = {.key = STR("lease_ms")}};

    get_all(task, found, COUNT);
    *work = (struct work){.type = text_of(found[TYPE].value, arena),
                          .queue = text_of(found[QUEUE].value, arena),
                          .payload = json_or_null(found[PAYLOAD].value),
                          .data = json_or_null(found[DATA].value),
                          .metadata = of_kind(found[METADATA].value, JSON_OBJECT),
                          .correlation_id = text_of(found[CORRELATION_ID].value, arena),
                          .traceparent = text_of(found[TRACEPARENT].value, arena),
                          .tracestate = text_of(found[TRACESTATE].value, arena),
                          .complete_token = text_of(found[COMPLETE_TOKEN].value, arena),
                          .identity = text_of(found[IDENTITY].value, arena),
                          .json = task};
    if (!work->metadata.data)
        work->metadata = STR("{}");
    if (of_kind(found[CHECKPOINT].value, JSON_OBJECT).data)
        read_checkpoint(found[CHECKPOINT].value, arena, work);
    int_of(found[TIMEOUT_MS].value, &work->timeout_ms);
    int_of(found[RETRY_DELAY_MS].value, &work->retry_delay_ms);
    int_of(found[ATTEMPT].value, &work->attempt);
    int_of(found[CRASH_COUNT].value, &work->crash_count);
    return uuid_of(found[ID].value, &work->id) &&
           int_of(found[LEASE_TOKEN].value, &work->lease_token) &&
           int_of(found[LEASE_MS].value, &work->lease_ms) && work->type.len > 0;
}

int remote_read_claim(struct str body, uint32_t max, struct arena *arena, struct work **works,
                      uint32_t *count, struct err *err)
{
    struct str tasks = STR_NONE;
    struct json_iter iter;
    struct str object;
    struct str task;

    *count = 0;
    if (read_object(body, &object))
        tasks = get_kind(object, "tasks", JSON_ARRAY);
    if (!tasks.data)
        return not_understood(err, "claim");
    *works = TRY_MEMORY(arena_alloc_array(arena, max, sizeof **works));
    json_begin(tasks, &iter);
    while (*count < max && json_next_element(&iter, &task)) {
        if (json_kind(task) != JSON_OBJECT || !read_work(task, arena, &(*works)[*count]))
            return not_understood(err, "claim");
        ++*count;
    }
    return 0;
}

static void read_error(struct str error, struct arena *arena, struct report_result *result)
{
    struct str word = get_text(error, "code", arena);
    struct str message = get_text(error, "message", arena);
    char name[40];

    snprintf(name, sizeof name, "%.*s", word.len < 39 ? (int)word.len : 39,
             word.data ? word.data : "");
    result->code = err_from_word(name);
    snprintf(result->message, sizeof result->message, "%.*s",
             (int)str_cut(message, sizeof result->message - 1).len,
             message.data ? message.data : "");
}

static void read_result(struct str item, struct arena *arena, struct report_result *result)
{
    enum { OK, CANCEL, PAUSE, ERROR, COUNT };
    struct wanted found[COUNT] = {[OK] = {.key = STR("ok")},
                                  [CANCEL] = {.key = STR("cancel")},
                                  [PAUSE] = {.key = STR("pause")},
                                  [ERROR] = {.key = STR("error")}};

    get_all(item, found, COUNT);
    *result = (struct report_result){.cancel = of_kind(found[CANCEL].value, JSON_TRUE).data,
                                     .pause = of_kind(found[PAUSE].value, JSON_TRUE).data};
    if (of_kind(found[OK].value, JSON_TRUE).data)
        return;
    result->code = ERR_INTERNAL;
    if (of_kind(found[ERROR].value, JSON_OBJECT).data)
        read_error(found[ERROR].value, arena, result);
}

int remote_read_reports(struct str body, struct report_result *results, uint32_t count,
                        struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(16 * 1024 * 1024);
    struct str items = STR_NONE;
    struct json_iter iter;
    struct str object;
    struct str item;
    uint32_t at = 0;

    if (read_object(body, &object))
        items = get_kind(object, "items", JSON_ARRAY);
    if (items.data) {
        json_begin(items, &iter);
        while (at < count && json_next_element(&iter, &item) && json_kind(item) == JSON_OBJECT)
            read_result(item, &arena, &results[at++]);
    }
    return at == count ? 0 : not_understood(err, "report");
}

/* Indices of the named tasks among those that were sent; others are passed over. Where leases has
 * another array, it says which lease of each is meant. */
static int read_ids(struct str object, const char *key, const char *leases,
                    const struct held *held, uint32_t count, struct arena *arena,
                    uint32_t **indices, uint32_t *indices_count, struct err *err)
{
    struct str ids = get_kind(object, key, JSON_ARRAY);
    struct str tokens = leases ? get_kind(object, leases, JSON_ARRAY) : STR_NONE;
    struct json_iter iter, token_iter;
    struct str value, token;
    struct uuid id;
    int64_t of;

    *indices = TRY_MEMORY(arena_alloc_array(arena, count + 1, sizeof **indices));
    if (!ids.data)
        return 0;
    json_begin(ids, &iter);
    if (tokens.data)
        json_begin(tokens, &token_iter);
    while (json_next_element(&iter, &value)) {
        bool any = !tokens.data || !json_next_element(&token_iter, &token);

        if (json_kind(value) != JSON_STRING || (!any && !int_of(token, &of)) ||
            !uuid_parse(str_span(value.data + 1, value.len - 2), &id))
            return not_understood(err, "heartbeat");
        for (uint32_t i = 0; i < count && *indices_count < count; i++)
            if (uuid_eq(&held[i].task_id, &id) && (any || held[i].lease_token == of))
                (*indices)[(*indices_count)++] = i;
    }
    return 0;
}

uint32_t remote_read_holds(struct str body, struct arena *arena,
                           struct service_hold holds[SERVICE_HOLDS_MAX])
{
    struct str object, list = STR_NONE, item;
    struct json_iter iter;
    uint32_t count = 0;

    if (read_object(body, &object))
        list = get_kind(object, "holds", JSON_ARRAY);
    if (!list.data)
        return 0;
    json_begin(list, &iter);
    while (count < SERVICE_HOLDS_MAX && json_next_element(&iter, &item) &&
           json_kind(item) == JSON_OBJECT) {
        struct service_hold *hold = &holds[count];

        *hold = (struct service_hold){.service = get_text(item, "service", arena),
                                      .is_down = get_kind(item, "is_down", JSON_TRUE).data};
        count += hold->service.len > 0 && get_int(item, "wait_ms", &hold->wait_ms);
    }
    return count;
}

uint32_t remote_read_days(struct str body, struct arena *arena,
                          struct agent_day days[AGENT_DAYS_MAX])
{
    struct str object, list = STR_NONE, item;
    struct json_iter iter;
    uint32_t count = 0;

    if (read_object(body, &object))
        list = get_kind(object, "days", JSON_ARRAY);
    if (!list.data)
        return 0;
    json_begin(list, &iter);
    while (count < AGENT_DAYS_MAX && json_next_element(&iter, &item) &&
           json_kind(item) == JSON_OBJECT) {
        struct agent_day *day = &days[count];
        struct agent_usage *used = &day->used;

        *day = (struct agent_day){.agent = get_text(item, "agent", arena)};
        count += day->agent.len > 0 && get_int(item, "day", &day->day) &&
                 get_int(item, "calls", &used->calls) &&
                 get_int(item, "input_tokens", &used->input_tokens) &&
                 get_int(item, "output_tokens", &used->output_tokens) &&
                 get_int(item, "cost", &used->cost) && get_int(item, "time_ms", &used->time_ms);
    }
    return count;
}

int remote_read_heartbeat(struct str body, const struct held *held, uint32_t count,
                          struct arena *arena, struct heartbeat_answer *answer, struct err *err)
{
    struct str object;

    *answer = (struct heartbeat_answer){0};
    if (!read_object(body, &object))
        return not_understood(err, "heartbeat");
    TRY(read_ids(object, "cancel", NULL, held, count, arena, &answer->cancel, &answer->cancel_count,
                 err));
    TRY(read_ids(object, "pause", NULL, held, count, arena, &answer->pause, &answer->pause_count,
                 err));
    return read_ids(object, "lost", "lost_leases", held, count, arena, &answer->lost,
                    &answer->lost_count, err);
}
