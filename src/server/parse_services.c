/* The part of a heartbeat about the services that its worker calls. Pure, any thread. */
#include "core/bounds.h"
#include "core/service/service_url.h"
#include "server/body.h"
#include "server/parse_report.h"

static int parse_method(struct str element, struct arena *arena, struct service_told_method *method,
                        struct err *err)
{
    struct body_field fields[1 + SERVICE_RESULT_COUNT] = {{.name = "method"}};

    for (int i = 0; i < SERVICE_RESULT_COUNT; i++)
        fields[1 + i].name = service_result_word((enum service_result)i);
    *method = (struct service_told_method){.name = STR("")};
    TRY(body_parse(element, fields, 1 + SERVICE_RESULT_COUNT, err));
    TRY(body_text(&fields[0], SERVICE_METHOD_BYTES, arena, &method->name, err));
    for (int i = 0; i < SERVICE_RESULT_COUNT; i++)
        TRY(body_int(&fields[1 + i], 0, SERVICE_TOLD_CALLS_MAX, &method->calls[i], err));
    return 0;
}

static int parse_methods(const struct body_field *field, struct arena *arena,
                         struct service_told *told, struct err *err)
{
    struct json_iter iter;
    struct str element;

    if (!field->value.data)
        return 0;
    if (json_kind(field->value) != JSON_ARRAY ||
        json_count(field->value) > SERVICE_METHODS_MAX + 1)
        return err_set_field(err, ERR_INVALID, "services", "'methods' must be an array of at most "
                             "%d", SERVICE_METHODS_MAX + 1);
    told->methods = TRY_MEMORY(arena_alloc_array(arena, SERVICE_METHODS_MAX + 1,
                                                 sizeof *told->methods));
    json_begin(field->value, &iter);
    while (json_next_element(&iter, &element))
        TRY(parse_method(element, arena, &told->methods[told->methods_count++], err));
    return 0;
}

/* One of the pairs: a bound and how many calls took no longer. */
static bool parse_duration(struct str element, struct histogram *durations)
{
    int64_t pair[2];
    struct json_iter iter;
    struct str number;

    if (json_kind(element) != JSON_ARRAY || json_count(element) != 2)
        return false;
    json_begin(element, &iter);
    for (int i = 0; i < 2; i++)
        if (!json_next_element(&iter, &number) || json_kind(number) != JSON_NUMBER ||
            !json_int64(number, &pair[i]) || pair[i] < 0)
            return false;
    if (pair[1] > SERVICE_TOLD_CALLS_MAX)
        return false;
    durations->counts[histogram_bucket(pair[0])] += pair[1];
    return true;
}

static int parse_durations(const struct body_field *field, struct arena *arena,
                           struct service_told *told, struct err *err)
{
    struct json_iter iter;
    struct str element;

    if (!field->value.data)
        return 0;
    if (json_kind(field->value) != JSON_ARRAY || json_count(field->value) > HISTOGRAM_BUCKETS)
        return err_set_field(err, ERR_INVALID, "services", "'durations' must be an array of at "
                             "most %d", HISTOGRAM_BUCKETS);
    told->durations = TRY_MEMORY(arena_alloc(arena, sizeof *told->durations));
    *told->durations = (struct histogram){.sum_us = 0};
    json_begin(field->value, &iter);
    while (json_next_element(&iter, &element))
        if (!parse_duration(element, told->durations))
            return err_set_field(err, ERR_INVALID, "services",
                                 "'durations' must have pairs of microseconds and calls");
    return 0;
}

static int parse_one(struct str element, struct arena *arena, struct service_told *told,
                     struct err *err)
{
    enum { SERVICE, URL, STATUS, IN_FLIGHT, CONCURRENCY, DOWN_MS, NEXT_TRY_MS, WAIT_MS, METHODS,
           DURATIONS, DURATION_US, LAST_ERROR, LAST_ERROR_MS, COUNT };
    struct body_field fields[COUNT] = {
        {.name = "service"},     {.name = "url"},        {.name = "status"},
        {.name = "in_flight"},   {.name = "concurrency"}, {.name = "down_ms"},
        {.name = "next_try_ms"}, {.name = "wait_ms"},    {.name = "methods"},
        {.name = "durations"},   {.name = "duration_us"}, {.name = "last_error"},
        {.name = "last_error_ms"}};
    struct str status = STR("unknown");
    int64_t sum_us = 0;

    *told = (struct service_told){.url = STR("")};
    TRY(body_parse(element, fields, COUNT, err));
    TRY(body_text(&fields[SERVICE], BOUND_SERVICE_BYTES, arena, &told->name, err));
    TRY(body_text(&fields[URL], BOUND_URL_BYTES, arena, &told->url, err));
    TRY(body_text(&fields[STATUS], BOUND_NAME_BYTES, arena, &status, err));
    TRY(body_int(&fields[IN_FLIGHT], 0, SERVICE_TOLD_CALLS_MAX, &told->in_flight, err));
    TRY(body_int(&fields[CONCURRENCY], 0, SERVICE_TOLD_CALLS_MAX, &told->concurrency, err));
    TRY(body_int(&fields[DOWN_MS], -BOUND_DELAY_MS, BOUND_DELAY_MS, &told->down_ms, err));
    TRY(body_int(&fields[NEXT_TRY_MS], -BOUND_DELAY_MS, BOUND_DELAY_MS, &told->next_try_ms, err));
    TRY(body_int(&fields[WAIT_MS], -BOUND_DELAY_MS, BOUND_DELAY_MS, &told->wait_ms, err));
    TRY(parse_methods(&fields[METHODS], arena, told, err));
    TRY(parse_durations(&fields[DURATIONS], arena, told, err));
    TRY(body_int(&fields[DURATION_US], 0, SERVICE_TOLD_US_MAX, &sum_us, err));
    TRY(body_text(&fields[LAST_ERROR], SERVICE_ERROR_BYTES, arena, &told->error, err));
    TRY(body_int(&fields[LAST_ERROR_MS], -BOUND_DELAY_MS, BOUND_DELAY_MS, &told->error_ms, err));
    told->is_down = fields[DOWN_MS].value.data != NULL;
    told->status = service_status_word(status);
    if (told->durations)
        told->durations->sum_us = sum_us;
    if (!told->status)
        return err_set_field(err, ERR_INVALID, "services",
                             "'status' must be up, down, degraded or unknown");
    if (!service_name_valid(told->name) || (told->url.len && !service_url_valid(told->url)))
        return err_set_field(err, ERR_INVALID, "services",
                             "'service' must be the name of a service, 'url' its address");
    return 0;
}

int parse_services(const struct body_field *serial, const struct body_field *field,
                   struct arena *arena, struct services_told *told, struct err *err)
{
    struct json_iter iter;
    struct str element;

    *told = (struct services_told){.list = NULL};
    TRY(body_int(serial, 0, INT64_MAX, &told->serial, err));
    if (!field->value.data)
        return 0;
    if (json_kind(field->value) != JSON_ARRAY)
        return err_set_field(err, ERR_INVALID, "services", "'services' must be an array");
    if (json_count(field->value) > SERVICES_TOLD_MAX)
        return err_set_field(err, ERR_TOO_LARGE, "services", "more than %d in 'services'",
                             SERVICES_TOLD_MAX);
    told->list = TRY_MEMORY(arena_alloc_array(arena, json_count(field->value) + 1,
                                              sizeof *told->list));
    json_begin(field->value, &iter);
    while (json_next_element(&iter, &element))
        TRY(parse_one(element, arena, &told->list[told->count++], err));
    return 0;
}
