/* A namespace from JSON: what it is for, its bounds, how long its ended tasks are kept. null takes
 * a bound away, and gives a window of retention back to the settings. Pure, any thread. */
#include "server/parse_namespace.h"

#include "core/bounds.h"
#include "core/queue_name.h"
#include "server/body.h"
#include "server/parse_queue.h"

#define COUNT_MAX INT64_C(1000000000)

static bool given(const struct body_field *field)
{
    return field->value.data || field->is_null;
}

static int parse_limits(const struct body_field *field, struct namespace_request *request,
                        struct err *err)
{
    enum { WAITING, RATE, PAYLOAD, SCHEDULES, COUNT };
    struct body_field fields[COUNT] = {[WAITING] = {.name = "waiting"},
                                       [RATE] = {.name = "enqueue_rate"},
                                       [PAYLOAD] = {.name = "payload_bytes"},
                                       [SCHEDULES] = {.name = "schedules"}};
    struct namespace_row *row = &request->row;

    if (!field->value.data)
        return 0;
    TRY(body_parse(field->value, fields, COUNT, err));
    for (unsigned i = 0; i < COUNT; i++)
        if (given(&fields[i]))
            request->set |= (unsigned)NAMESPACE_SET_WAITING << i; /* in the same order */
    _Static_assert(NAMESPACE_SET_SCHEDULES == NAMESPACE_SET_WAITING << SCHEDULES,
                   "the order of the fields above");
    TRY(body_int(&fields[WAITING], 1, COUNT_MAX, &row->waiting_limit, err));
    TRY(parse_rate(&fields[RATE], &row->enqueue_rate, err));
    TRY(body_int(&fields[PAYLOAD], 1, BOUND_PAYLOAD_BYTES, &row->payload_bytes_limit, err));
    return body_int(&fields[SCHEDULES], 1, COUNT_MAX, &row->schedules_limit, err);
}

static int parse_retention(const struct body_field *field, struct namespace_request *request,
                           struct err *err)
{
    struct body_field fields[] = {{.name = "completed_ms"}, {.name = "failed_ms"}};
    struct namespace_row *row = &request->row;

    row->completed_ms = row->failed_ms = NAMESPACE_AS_SETTINGS;
    if (!field->value.data)
        return 0;
    TRY(body_parse(field->value, fields, 2, err));
    if (given(&fields[0]))
        request->set |= NAMESPACE_SET_COMPLETED;
    if (given(&fields[1]))
        request->set |= NAMESPACE_SET_FAILED;
    TRY(body_int(&fields[0], 0, BOUND_DELAY_MS, &row->completed_ms, err));
    return body_int(&fields[1], 0, BOUND_DELAY_MS, &row->failed_ms, err);
}

static int parse_encryption(const struct body_field *field, struct namespace_request *request,
                            struct arena *arena, struct err *err)
{
    struct str word = STR_NONE;

    if (!given(field))
        return 0;
    request->set |= NAMESPACE_SET_ENCRYPTION;
    TRY(body_text(field, BOUND_NAME_BYTES, arena, &word, err));
    request->row.encrypt_all = word.data != NULL;
    if (!word.data || str_is(word, "all"))
        return 0;
    return err_set_field(err, ERR_INVALID, "encryption", "'encryption' is \"all\", or null for "
                         "what the settings of the server say");
}

int parse_namespace(struct str object, bool named, struct arena *arena,
                    struct namespace_request *request, struct err *err)
{
    enum { DESCRIPTION, LIMITS, RETENTION, ENCRYPTION, NAME, COUNT };
    struct body_field fields[COUNT] = {[DESCRIPTION] = {.name = "description"},
                                       [LIMITS] = {.name = "limits"},
                                       [RETENTION] = {.name = "retention"},
                                       [ENCRYPTION] = {.name = "encryption"},
                                       [NAME] = {.name = "name"}};

    TRY(body_parse(object, fields, named ? COUNT : NAME, err));
    if (named) {
        TRY(body_text(&fields[NAME], NAMESPACE_BYTES_MAX, arena, &request->row.name, err));
        if (!request->row.name.data)
            return err_set_field(err, ERR_INVALID, "name", "'name' is missing");
        TRY(namespace_check_name(request->row.name, err));
    }
    if (given(&fields[DESCRIPTION]))
        request->set |= NAMESPACE_SET_DESCRIPTION;
    TRY(body_text(&fields[DESCRIPTION], BOUND_DESCRIPTION_BYTES, arena,
                  &request->row.description, err));
    TRY(parse_encryption(&fields[ENCRYPTION], request, arena, err));
    TRY(parse_limits(&fields[LIMITS], request, err));
    return parse_retention(&fields[RETENTION], request, err);
}
