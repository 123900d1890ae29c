/* The work protocol's bodies. Report elements go by one table of fields: which operations take
 * them, what they are, and where they go; a field of another operation is refused like an unknown
 * one. Pure, any thread. */
#include "server/parse_report.h"

#include "base/hash.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/service/service_url.h"
#include "server/body.h"

#define POOL_SIZE_MAX 100000 /* slots of one worker: more is a mistake */

static int wrong(struct err *err, const struct report_field *field, const char *what)
{
    return err_set_field(err, ERR_INVALID, field->name, "'%s' must be %s", field->name, what);
}

static int collect(struct str element, struct str values[REPORT_FIELDS], struct err *err)
{
    struct json_member member;
    struct json_iter iter;
    size_t i;

    if (json_kind(element) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "an element must be an object");
    json_begin(element, &iter);
    while (json_next_member(&iter, &member)) {
        for (i = 0; i < REPORT_FIELDS; i++)
            if (json_key_is(member.key, str_of(report_fields[i].name)))
                break;
        if (i == REPORT_FIELDS)
            return err_set(err, ERR_INVALID, "there is no field '%.*s' here",
                           (int)(member.key.len < 80 ? member.key.len : 80), member.key.data);
        if (json_kind(member.value) != JSON_NULL)
            values[i] = member.value;
    }
    return 0;
}

static int take_text(const struct report_field *field, struct str value, struct arena *arena,
                     struct str *out, struct err *err)
{
    if (json_kind(value) != JSON_STRING)
        return wrong(err, field, "a text");
    *out = json_string(value, arena);
    return out->data ? 0 : err_no_memory(err);
}

static int take_word(const struct report_field *field, struct str value, struct arena *arena,
                     void *at, struct err *err)
{
    struct str text = STR_NONE;

    if (json_kind(value) == JSON_STRING)
        text = json_string(value, arena);
    if (field->kind == REPORT_IS_ID && text.data && uuid_parse(text, at))
        return 0;
    if (field->kind == REPORT_IS_LEVEL && text.data && severity_parse(text, at))
        return 0;
    return wrong(err, field, field->kind == REPORT_IS_ID ? "the id of a task"
                                                     : "DEBUG, INFO, WARN, ERROR or FATAL");
}

static int take_int(const struct report_field *field, struct str value, int64_t *out,
                    struct err *err)
{
    if (json_kind(value) == JSON_NUMBER && json_int64(value, out) && *out >= field->min &&
        *out <= field->max)
        return 0;
    return wrong(err, field, field->max == 100 ? "a whole number from 0 to 100"
                                               : "a whole number that is not negative");
}

static int take(const struct report_field *field, struct str value, struct arena *arena,
                struct report *report, struct err *err)
{
    void *at = (char *)report + field->offset;
    enum json_kind kind = json_kind(value);

    switch (field->kind) {
    case REPORT_IS_ID:
    case REPORT_IS_LEVEL:
        return take_word(field, value, arena, at, err);
    case REPORT_IS_INT:
        return take_int(field, value, at, err);
    case REPORT_IS_TEXT:
        return take_text(field, value, arena, at, err);
    case REPORT_IS_BOOL:
        *(bool *)at = kind == JSON_TRUE;
        return kind == JSON_TRUE || kind == JSON_FALSE ? 0 : wrong(err, field, "true or false");
    case REPORT_IS_OBJECT:
        if (kind != JSON_OBJECT)
            return wrong(err, field, "an object");
        break;
    case REPORT_IS_ARRAY:
        if (kind != JSON_ARRAY)
            return wrong(err, field, "an array of tasks");
        break;
    case REPORT_IS_JSON:
    case REPORT_IS_OP:
        break;
    }
    if (field->kind != REPORT_IS_OP)
        *(struct str *)at = value;
    return 0;
}

static int take_op(struct str value, struct arena *arena, enum report_op *op, struct err *err)
{
    struct str word = STR_NONE;

    if (value.data && json_kind(value) == JSON_STRING)
        word = json_string(value, arena);
    if (word.data && report_op_parse(word, op))
        return 0;
    return err_set_field(err, ERR_INVALID, "op", "'op' must be start, progress, checkpoint, log, "
                         "spawn, complete, continue, fail, partial, release or await");
}

static int parse_element(struct str element, struct arena *arena, struct report *report,
                         struct str *task_id, struct err *err)
{
    struct str values[REPORT_FIELDS] = {{NULL, 0}};
    int rc = collect(element, values, err);

    *report = (struct report){.progress = -1, .delay_ms = -1, .retryable = true,
                              .level = SEVERITY_INFO};
    *task_id = values[REPORT_FIELD_TASK]; /* known also where another member is wrong */
    TRY(rc);
    TRY(take_op(values[REPORT_FIELD_OP], arena, &report->op, err));
    for (size_t i = 0; i < REPORT_FIELDS; i++) {
        const struct report_field *field = &report_fields[i];

        if (values[i].data && !(field->ops & 1u << report->op))
            return err_set_field(err, ERR_INVALID, field->name, "'%s' does not belong to '%s'",
                                 field->name, report_op_word(report->op));
        else if (values[i].data)
            TRY(take(field, values[i], arena, report, err));
        else if (field->required & 1u << report->op)
            return err_set_field(err, ERR_INVALID, field->name, "'%s' is missing", field->name);
    }
    return 0;
}

static int note_bad(struct report_item *item, const struct err *cause, struct arena *arena,
                    struct err *err)
{
    item->bad = arena_alloc(arena, sizeof *item->bad);
    if (!item->bad || cause->code == ERR_MEMORY)
        return err_no_memory(err);
    item->bad->code = cause->code;
    snprintf(item->bad->message, sizeof item->bad->message, "%.*s",
             (int)sizeof item->bad->message - 1, cause->text);
    return 0;
}

int parse_reports(struct str body, struct arena *arena, struct report_batch *batch,
                  struct err *err)
{
    struct str array, element;
    struct json_iter iter;
    struct err cause;
    size_t count;

    *batch = (struct report_batch){0};
    TRY(json_check_within(body, JSON_DEPTH_REPORT, &array, err));
    if (json_kind(array) != JSON_ARRAY)
        return err_set(err, ERR_INVALID, "the body must be an array of reports");
    count = json_count(array);
    if (count > BOUND_REPORT_ELEMENTS)
        return err_set(err, ERR_TOO_LARGE, "more than %d reports; send them in several requests",
                       BOUND_REPORT_ELEMENTS);
    batch->reports = TRY_MEMORY(arena_alloc_array(arena, count + 1, sizeof *batch->reports));
    batch->items = TRY_MEMORY(arena_alloc_array(arena, count + 1, sizeof *batch->items));
    json_begin(array, &iter);
    while (json_next_element(&iter, &element)) {
        struct report_item *item = &batch->items[batch->items_count++];

        if (parse_element(element, arena, &batch->reports[batch->count], &item->task_id,
                          &cause) == 0)
            batch->count++;
        else
            TRY(note_bad(item, &cause, arena, err));
    }
    return 0;
}

/* A body that may be left out. */
static int check_object(struct str body, struct str *object, struct err *err)
{
    *object = STR("{}");
    return str_empty(body) ? 0 : json_check(body, object, err);
}

static int parse_held(struct str element, size_t i, struct arena *arena, struct uuid *task_id,
                      int64_t *lease_token, struct err *err)
{
    struct body_field fields[] = {{.name = "task_id"}, {.name = "lease_token"}};
    struct str text = STR_NONE;
    char field[32];

    TRY(body_parse(element, fields, 2, err));
    TRY(body_text(&fields[0], BOUND_NAME_BYTES, arena, &text, err));
    TRY(body_int(&fields[1], 0, INT64_MAX, lease_token, err));
    if (text.data && uuid_parse(text, task_id) && fields[1].value.data)
        return 0;
    snprintf(field, sizeof field, "tasks[%zu]", i);
    return err_set_field(err, ERR_INVALID, field,
                         "'%s' must have the task_id and lease_token of a task", field);
}

static int parse_hold(struct str element, struct arena *arena, struct service_hold *hold,
                      struct err *err)
{
    struct body_field fields[] = {{.name = "service"}, {.name = "wait_ms"}, {.name = "is_down"}};

    TRY(body_parse(element, fields, 3, err));
    TRY(body_text(&fields[0], BOUND_SERVICE_BYTES, arena, &hold->service, err));
    TRY(body_int(&fields[1], 0, BOUND_DELAY_MS, &hold->wait_ms, err));
    if (!service_name_valid(hold->service))
        return err_set_field(err, ERR_INVALID, "holds", "'service' must be the name of a service");
    return body_bool(&fields[2], &hold->is_down, err);
}

static int parse_holds(const struct body_field *field, struct arena *arena,
                       struct heartbeat_request *request, struct err *err)
{
    struct service_hold *holds;
    struct json_iter iter;
    struct str element;

    request->calls_services = field->value.data != NULL;
    if (!field->value.data)
        return 0;
    if (json_kind(field->value) != JSON_ARRAY)
        return err_set_field(err, ERR_INVALID, "holds", "'holds' must be an array");
    if (json_count(field->value) > SERVICE_HOLDS_MAX)
        return err_set_field(err, ERR_TOO_LARGE, "holds", "more than %d services in 'holds'",
                             SERVICE_HOLDS_MAX);
    holds = TRY_MEMORY(arena_alloc_array(arena, SERVICE_HOLDS_MAX, sizeof *holds));
    request->holds = holds;
    json_begin(field->value, &iter);
    while (json_next_element(&iter, &element)) {
        holds[request->holds_count] = (struct service_hold){.service = STR_NONE};
        TRY(parse_hold(element, arena, &holds[request->holds_count++], err));
    }
    return 0;
}

static int parse_day(struct str element, struct arena *arena, struct agent_day *day,
                     struct err *err)
{
    struct body_field fields[] = {{.name = "agent"},         {.name = "day"},
                                  {.name = "calls"},         {.name = "input_tokens"},
                                  {.name = "output_tokens"}, {.name = "cost"},
                                  {.name = "time_ms"}};
    int64_t *numbers[] = {&day->day,
                          &day->used.calls,
                          &day->used.input_tokens,
                          &day->used.output_tokens,
                          &day->used.cost,
                          &day->used.time_ms};

    *day = (struct agent_day){.agent = STR_NONE};
    TRY(body_parse(element, fields, sizeof fields / sizeof *fields, err));
    TRY(body_text(&fields[0], AGENT_ID_BYTES, arena, &day->agent, err));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        TRY(body_int(&fields[i + 1], 0, INT64_MAX, numbers[i], err));
    if (!day->agent.data || day->agent.len == 0)
        return err_set_field(err, ERR_INVALID, "days", "'agent' must be the id of an agent");
    return 0;
}

static bool is_process(struct str process)
{
    for (size_t i = 0; i < process.len; i++)
        if (hash_hex_digit(process.data[i]) < 0)
            return false;
    return process.data && process.len == AGENT_PROCESS_CHARS;
}

static int parse_days(const struct body_field *process, const struct body_field *field,
                      struct arena *arena, struct heartbeat_request *request, struct err *err)
{
    struct agent_day *days;
    struct json_iter iter;
    struct str element;

    TRY(body_text(process, AGENT_PROCESS_CHARS, arena, &request->process, err));
    if (!field->value.data)
        return 0;
    if (json_kind(field->value) != JSON_ARRAY)
        return err_set_field(err, ERR_INVALID, "days", "'days' must be an array");
    if (json_count(field->value) > AGENT_DAYS_MAX)
        return err_set_field(err, ERR_TOO_LARGE, "days", "more than %d agents in 'days'",
                             AGENT_DAYS_MAX);
    if (!is_process(request->process))
        return err_set_field(err, ERR_INVALID, "process", "'process' must be %d hex digits where "
                             "there are 'days'", AGENT_PROCESS_CHARS);
    days = TRY_MEMORY(arena_alloc_array(arena, AGENT_DAYS_MAX, sizeof *days));
    request->days = days;
    json_begin(field->value, &iter);
    while (json_next_element(&iter, &element))
        TRY(parse_day(element, arena, &days[request->days_count++], err));
    return 0;
}

int parse_heartbeat(struct str body, struct arena *arena, struct heartbeat_request *request,
                    struct services_told *told, struct err *err)
{
    struct body_field fields[] = {{.name = "tasks"}, {.name = "holds"}, {.name = "process"},
                                  {.name = "days"}, {.name = "services_serial"},
                                  {.name = "services"}};
    struct body_field tasks;
    struct str object, element;
    struct json_iter iter;
    size_t count;

    TRY(check_object(body, &object, err));
    TRY(body_parse(object, fields, sizeof fields / sizeof *fields, err));
    TRY(parse_services(&fields[4], &fields[5], arena, told, err));
    TRY(parse_holds(&fields[1], arena, request, err));
    TRY(parse_days(&fields[2], &fields[3], arena, request, err));
    tasks = fields[0];
    if (!tasks.value.data)
        return 0;
    if (json_kind(tasks.value) != JSON_ARRAY)
        return err_set_field(err, ERR_INVALID, "tasks", "'tasks' must be an array");
    count = json_count(tasks.value);
    if (count > BOUND_REPORT_ELEMENTS)
        return err_set_field(err, ERR_TOO_LARGE, "tasks", "more than %d tasks in one heartbeat",
                             BOUND_REPORT_ELEMENTS);
    request->task_ids = arena_alloc_array(arena, count + 1, sizeof *request->task_ids);
    request->lease_tokens = arena_alloc_array(arena, count + 1, sizeof *request->lease_tokens);
    TRY_MEMORY(request->task_ids && request->lease_tokens);
    json_begin(tasks.value, &iter);
    while (json_next_element(&iter, &element)) {
        uint32_t i = request->count++;

        TRY(parse_held(element, i, arena, &request->task_ids[i], &request->lease_tokens[i], err));
    }
    return 0;
}

int parse_claim(struct str body, struct arena *arena, struct claim_request *request,
                struct err *err)
{
    enum { QUEUES, TYPES, SERVICES, MAX, WAIT_MS, TASK_ID, COUNT };
    struct body_field fields[COUNT] = {{.name = "queues"}, {.name = "types"}, {.name = "services"},
                                       {.name = "max"}, {.name = "wait_ms"}, {.name = "task_id"}};
    int64_t max = 1;
    struct str object, task_id = STR_NONE;

    TRY(check_object(body, &object, err));
    request->wait_ms = 0;
    TRY(body_parse(object, fields, COUNT, err));
    TRY(body_texts(&fields[QUEUES], BOUND_CLAIM_QUEUES, BOUND_NAME_BYTES, true, arena,
                   &request->queues, &request->queues_count, err));
    TRY(body_texts(&fields[TYPES], BOUND_CLAIM_TYPES, BOUND_NAME_BYTES, true, arena,
                   &request->types, &request->types_count, err));
    TRY(body_texts(&fields[SERVICES], BOUND_CLAIM_TYPES, BOUND_SERVICE_BYTES, true, arena,
                   &request->services, &request->services_count, err));
    TRY(body_int(&fields[MAX], 1, BOUND_CLAIM_MAX, &max, err));
    TRY(body_int(&fields[WAIT_MS], 0, INT64_MAX, &request->wait_ms, err));
    if (request->wait_ms > BOUND_WAIT_MS)
        request->wait_ms = BOUND_WAIT_MS;
    request->max = (uint32_t)max;
    TRY(body_text(&fields[TASK_ID], BOUND_NAME_BYTES, arena, &task_id, err));
    if (task_id.data && !uuid_parse(task_id, &request->task_id))
        return err_set_field(err, ERR_INVALID, "task_id", "'task_id' must be the id of a task");
    if (task_id.data && (request->max > 1 || request->wait_ms > 0))
        return err_set_field(err, ERR_INVALID, "task_id", "'task_id' names one task, which is "
                             "claimed or refused at once; leave out 'max' and 'wait_ms'");
    return 0;
}

int parse_register(struct str body, struct arena *arena, struct register_request *request,
                   struct err *err)
{
    enum { ID, HOSTNAME, POOL_SIZE, QUEUES, TYPES, CATEGORIES, VERSION, PID, COUNT };
    struct body_field fields[COUNT] = {
        {.name = "id"},    {.name = "hostname"},   {.name = "pool_size"}, {.name = "queues"},
        {.name = "types"}, {.name = "categories"}, {.name = "version"},   {.name = "pid"}};
    struct worker_row *worker = &request->worker;
    struct str object;

    TRY(check_object(body, &object, err));
    worker->pool_size = 1;
    worker->hostname = worker->version = STR("");
    TRY(body_parse(object, fields, COUNT, err));
    TRY(body_text(&fields[ID], BOUND_NAME_BYTES, arena, &worker->id, err));
    if (worker->id.data)
        TRY(body_check_name("id", worker->id, BOUND_NAME_BYTES, err));
    if (str_starts(worker->id, STR(SERVICE_TYPE_PREFIX)))
        return err_set_field(err, ERR_INVALID, "id", "'id' must not begin with '"
                             SERVICE_TYPE_PREFIX "', which stands for services");
    TRY(body_text(&fields[HOSTNAME], BOUND_KEY_BYTES, arena, &worker->hostname, err));
    if (worker->hostname.len) /* the id is made of it */
        TRY(body_check_name("hostname", worker->hostname, BOUND_KEY_BYTES, err));
    TRY(body_text(&fields[VERSION], BOUND_NAME_BYTES, arena, &worker->version, err));
    TRY(body_int(&fields[POOL_SIZE], 1, POOL_SIZE_MAX, &worker->pool_size, err));
    TRY(body_int(&fields[PID], 1, INT32_MAX, &request->pid, err));
    TRY(body_texts(&fields[QUEUES], BOUND_CLAIM_QUEUES, BOUND_NAME_BYTES, false, arena,
                   &request->queues, &request->queues_count, err));
    TRY(body_texts(&fields[TYPES], BOUND_CLAIM_TYPES, BOUND_NAME_BYTES, false, arena,
                   &request->types, &request->types_count, err));
    TRY(body_texts(&fields[CATEGORIES], BOUND_CLAIM_TYPES, BOUND_NAME_BYTES, false, arena,
                   &request->categories, &request->categories_count, err));
    worker->queues = fields[QUEUES].value;
    worker->types = fields[TYPES].value;
    worker->categories = fields[CATEGORIES].value;
    return 0;
}
