/* The task object of a request, member by member: two tables say which members there are, what
 * kind of value each takes, its bounds and where it goes. Unknown members are refused, so that a
 * misspelt one is not silently ignored. Pure, any thread. */
#include "core/callback_events.h"
#include "core/spec/spec_int.h"
#include "core/task/task_fields.h"
#include "core/trace.h"

struct parse {
    struct arena *arena;
    struct task_input *input;
    struct err *err;
    bool has_delay, has_run_at, has_max_attempts, has_hash_input;
};

struct member {
    struct str name;
    int (*read)(struct parse *parse, const struct member *member, struct str value);
    size_t at;       /* offset in struct task_input; by kind */
    int64_t min;     /* numbers */
    int64_t max;     /* numbers; bytes of texts and JSON */
    size_t flag;     /* offset of the bool that says it was given; 0 = none */
};

static void *place(struct parse *parse, size_t offset)
{
    return (char *)parse->input + offset;
}

static int read_text(struct parse *parse, const struct member *member, struct str value)
{
    struct str *to = place(parse, member->at);
    int rc = spec_read_string(value, member->name.data, parse->arena, to, parse->err);

    return rc < 0 ? rc
                  : spec_check_text(*to, (size_t)member->max, member->name.data, parse->err);
}

static int read_queue(struct parse *parse, const struct member *member, struct str value)
{
    struct str *to = place(parse, member->at);
    int rc = spec_read_string(value, member->name.data, parse->arena, to, parse->err);

    parse->input->has_queue = true;
    return rc < 0 ? rc : spec_check_new_queue(*to, parse->err);
}

static int read_type(struct parse *parse, const struct member *member, struct str value)
{
    int rc = read_text(parse, member, value);
    struct str *to = place(parse, member->at);

    return rc < 0 ? rc : spec_check_no_pattern(*to, member->name.data, parse->err);
}

static int read_url(struct parse *parse, const struct member *member, struct str value)
{
    struct str *to = place(parse, member->at);
    int rc = spec_read_string(value, member->name.data, parse->arena, to, parse->err);

    return rc < 0 ? rc : spec_check_url(*to, member->name.data, parse->err);
}

static int read_json(struct parse *parse, const struct member *member, struct str value)
{
    *(struct str *)place(parse, member->at) = value;
    return spec_check_bytes(value, (size_t)member->max, member->name.data, parse->err);
}

static int read_object(struct parse *parse, const struct member *member, struct str value)
{
    if (json_kind(value) != JSON_OBJECT)
        return err_set_field(parse->err, ERR_INVALID, member->name.data,
                             "\"%s\" must be an object", member->name.data);
    return read_json(parse, member, value);
}

static int number_in_bounds(struct parse *parse, const struct member *member, struct str value,
                            int64_t *number)
{
    return spec_read_number(value, member->name.data, member->min, member->max, number,
                            parse->err);
}

static int read_number(struct parse *parse, const struct member *member, struct str value)
{
    TRY(number_in_bounds(parse, member, value, place(parse, member->at)));
    if (member->flag)
        *(bool *)place(parse, member->flag) = true;
    return 0;
}

static int read_delay(struct parse *parse, const struct member *member, struct str value)
{
    parse->has_delay = true;
    return read_number(parse, member, value);
}

static int read_max_attempts(struct parse *parse, const struct member *member, struct str value)
{
    int64_t attempts = 0;
    int rc = number_in_bounds(parse, member, value, &attempts);

    parse->has_max_attempts = true;
    if (rc == 0 && !parse->input->has_max_retries)
        parse->input->spec.retry.max_retries = attempts - 1;
    return rc;
}

static int read_bool(struct parse *parse, const struct member *member, struct str value)
{
    return spec_read_bool(value, member->name.data, place(parse, member->at), parse->err);
}

static int read_hash_input(struct parse *parse, const struct member *member, struct str value)
{
    parse->has_hash_input = true;
    return read_bool(parse, member, value);
}

static const struct {
    const char *word;
    int64_t priority;
} levels[] = {{"low", -10}, {"medium", 0}, {"high", 10}, {"critical", 20}};

static bool level_parse(struct str text, int64_t *priority)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (!str_is(text, levels[i].word))
            continue;
        *priority = levels[i].priority;
        return true;
    }
    return false;
}

bool priority_parse(struct str text, int64_t *priority)
{
    return level_parse(text, priority) ||
           (str_to_int64(text, priority) && *priority >= -BOUND_PRIORITY &&
            *priority <= BOUND_PRIORITY);
}

const char *priority_level(int64_t priority)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (levels[i].priority == priority)
            return levels[i].word;
    return NULL;
}

int spec_read_priority(struct str value, const char *field, struct arena *arena, int64_t *to,
                       struct err *err)
{
    if (json_kind(value) == JSON_STRING) {
        if (level_parse(json_string(value, arena), to))
            return 0;
    } else if (json_int64(value, to) && *to >= -BOUND_PRIORITY && *to <= BOUND_PRIORITY) {
        return 0;
    }
    return err_set_field(err, ERR_INVALID, field,
                         "\"%s\" must be a whole number from %d to %d, or low, medium, high or "
                         "critical",
                         field, -BOUND_PRIORITY, BOUND_PRIORITY);
}

static int read_priority(struct parse *parse, const struct member *member, struct str value)
{
    parse->input->has_priority = true;
    return spec_read_priority(value, member->name.data, parse->arena, &parse->input->priority,
                              parse->err);
}

static int read_run_at(struct parse *parse, const struct member *member, struct str value)
{
    parse->has_run_at = true;
    return spec_read_time(value, member->name.data, parse->arena, place(parse, member->at),
                          parse->err);
}

static int bad_word(struct parse *parse, const struct member *member, const char *words)
{
    return err_set_field(parse->err, ERR_INVALID, member->name.data, "\"%s\" must be %s",
                         member->name.data, words);
}

static int read_retry_policy(struct parse *parse, const struct member *member, struct str value)
{
    struct task_input *input = parse->input;

    input->has_retry_policy = true;
    if (retry_policy_parse(json_string(value, parse->arena), &input->spec.retry.policy))
        return 0;
    return bad_word(parse, member, "polynomial, exponential, linear or fixed");
}

static int read_unique_until(struct parse *parse, const struct member *member, struct str value)
{
    if (unique_until_parse(json_string(value, parse->arena), &parse->input->spec.unique_until))
        return 0;
    return bad_word(parse, member, "forever or ended");
}

static int read_on_unsatisfied(struct parse *parse, const struct member *member, struct str value)
{
    if (on_unsatisfied_parse(json_string(value, parse->arena),
                             &parse->input->spec.on_unsatisfied))
        return 0;
    return bad_word(parse, member, "cancel, fail or run");
}

static int read_traceparent(struct parse *parse, const struct member *member, struct str value)
{
    struct task_spec *spec = &parse->input->spec;
    struct trace_context context;

    TRY(spec_read_string(value, "traceparent", parse->arena, &spec->trace.parent, parse->err));
    if (spec->trace.parent.len <= (size_t)member->max && trace_parse(spec->trace.parent, &context))
        return 0;
    return bad_word(parse, member, "a W3C trace context such as "
                    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
}

static int read_tracestate(struct parse *parse, const struct member *member, struct str value)
{
    struct task_spec *spec = &parse->input->spec;

    TRY(spec_read_string(value, "tracestate", parse->arena, &spec->trace.state, parse->err));
    if (trace_state_valid(spec->trace.state))
        return 0;
    return bad_word(parse, member, "a W3C tracestate: name=value, at most 512 bytes");
}

static int read_tags(struct parse *parse, const struct member *member, struct str value)
{
    (void)member;
    return spec_read_tags(value, parse->arena, parse->input, parse->err);
}

static int read_callback_events(struct parse *parse, const struct member *member,
                                struct str value)
{
    (void)member;
    return callback_events_read(value, parse->arena, &parse->input->spec.callback.events,
                                parse->err);
}

static int read_hash_fields(struct parse *parse, const struct member *member, struct str value)
{
    (void)member;
    return spec_read_hash_fields(value, parse->arena, parse->input, parse->err);
}

static int read_depends_on(struct parse *parse, const struct member *member, struct str value)
{
    (void)member;
    return spec_read_depends_on(value, parse->arena, parse->input, parse->err);
}

#define AT(path) offsetof(struct task_input, path)
#define TEXT(name, path, max) {STR(name), read_text, AT(path), 0, max, 0}
static int read_encrypt_fields(struct parse *parse, const struct member *member, struct str value)
{
    (void)member;
    return spec_read_encrypt_fields(value, parse->arena, parse->input, parse->err);
}

#define NUMBER(name, path, min, max, flag) {STR(name), read_number, AT(path), min, max, flag}
#define SPECIAL(name, read, path, min, max) {STR(name), read, AT(path), min, max, 0}

/* Sorted by name: find_member searches by halves, a test checks it. */
static const struct member members[] = {
    SPECIAL("auto_recovery", read_bool, spec.auto_recovery, 0, 0),
    SPECIAL("callback_events", read_callback_events, spec.callback.events, 0, 0),
    SPECIAL("callback_url", read_url, spec.callback.url, 0, 0),
    TEXT("category", category, BOUND_NAME_BYTES),
    SPECIAL("data", read_json, data, 0, BOUND_DATA_BYTES),
    SPECIAL("delay_ms", read_delay, delay_ms, 0, BOUND_DELAY_MS),
    SPECIAL("depends_on", read_depends_on, depends_on, 0, 0),
    SPECIAL("encrypt", read_bool, spec.seal.encrypt, 0, 0),
    SPECIAL("encrypt_fields", read_encrypt_fields, spec.seal.fields, 0, 0),
    SPECIAL("hash_fields", read_hash_fields, hash_fields, 0, 0),
    SPECIAL("hash_input", read_hash_input, hash_input, 0, 0),
    SPECIAL("max_attempts", read_max_attempts, spec.retry.max_retries, 1, BOUND_RETRIES + 1),
    SPECIAL("metadata", read_object, about.metadata, 0, BOUND_METADATA_BYTES),
    SPECIAL("on_unsatisfied", read_on_unsatisfied, spec.on_unsatisfied, 0, 0),
    SPECIAL("payload", read_json, spec.payload, 0, BOUND_PAYLOAD_BYTES),
    SPECIAL("priority", read_priority, priority, 0, 0),
    SPECIAL("queue", read_queue, spec.queue, 0, 0),
    NUMBER("recovery_priority", spec.recovery_priority, -BOUND_PRIORITY, BOUND_PRIORITY, 0),
    TEXT("ref", spec.origin.ref, BOUND_NAME_BYTES),
    SPECIAL("retry_policy", read_retry_policy, spec.retry.policy, 0, 0),
    SPECIAL("run_at", read_run_at, spec.run_at_us, 0, 0),
    SPECIAL("tags", read_tags, spec.tags, 0, 0),
    SPECIAL("traceparent", read_traceparent, spec.trace.parent, 0, TRACE_PARENT_BYTES_MAX),
    SPECIAL("tracestate", read_tracestate, spec.trace.state, 0, TRACE_STATE_BYTES),
    SPECIAL("type", read_type, spec.type, 0, BOUND_NAME_BYTES),
    SPECIAL("unique_until", read_unique_until, spec.unique_until, 0, 0),
};

/* The plain ones, as the list of fields has them. */
#define GIVEN(flag) AT(flag)
#define ASK_NOT
#define ASK_TEXT(name, path, bytes, flag, value, help) TEXT(#name, path, bytes),
#define ASK_EDIT ASK_TEXT
#define ASK_COUNT(name, path, given, max, flag, help) NUMBER(#name, path, 0, max, given),
#define ASK_MS(name, path, given, min, flag, help) NUMBER(#name, path, min, BOUND_DELAY_MS, given),
#define MEMBER(name, path, kind, flags, empty, words, show, ask) ask

static const struct member plain_members[] = {TASK_FIELDS_ALL(MEMBER)};

static const struct member *find_plain(struct str name)
{
    for (size_t i = 0; i < sizeof plain_members / sizeof *plain_members; i++)
        if (str_eq(name, plain_members[i].name))
            return &plain_members[i];
    return NULL;
}

static const struct member *find_member(struct str name)
{
    size_t low = 0;
    size_t high = sizeof members / sizeof *members;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = str_compare(name, members[middle].name);

        if (order == 0)
            return &members[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return find_plain(name);
}

/* What two members say together. */
static int check_together(struct parse *parse)
{
    struct task_input *input = parse->input;

    if (parse->has_delay && parse->has_run_at)
        return err_set_field(parse->err, ERR_INVALID, "run_at",
                             "give \"delay_ms\" or \"run_at\", not both");
    if (parse->has_max_attempts && input->has_max_retries)
        return err_set_field(parse->err, ERR_INVALID, "max_attempts",
                             "give \"max_retries\" or \"max_attempts\" (one more), not both");
    if (input->spec.trace.state.data && !input->spec.trace.parent.data)
        return err_set_field(parse->err, ERR_INVALID, "tracestate",
                             "\"tracestate\" needs \"traceparent\"; give both");
    if (input->hash_fields_count && parse->has_hash_input && !input->hash_input)
        return err_set_field(parse->err, ERR_INVALID, "hash_input",
                             "\"hash_fields\" asks for a hash and \"hash_input\" forbids it; "
                             "leave one out");
    input->has_max_retries |= parse->has_max_attempts;
    input->no_hash = parse->has_hash_input && !input->hash_input;
    input->hash_input |= input->hash_fields_count > 0;
    return 0;
}

static int parse_object(struct str object, struct parse *parse)
{
    struct json_iter iter;
    struct json_member found;

    spec_init(parse->input);
    if (json_kind(object) != JSON_OBJECT)
        return err_set(parse->err, ERR_INVALID,
                       "a task must be a JSON object such as {\"type\":\"email\"}");
    json_begin(object, &iter);
    while (json_next_member(&iter, &found)) {
        struct str name = json_decode_key(found.key, parse->arena);
        const struct member *member = find_member(name);
        char field[80];

        if (!name.data)
            return spec_no_memory(parse->err);
        if (!member) {
            snprintf(field, sizeof field, STR_FMT, STR_ARG(name));
            return err_set_field(parse->err, ERR_INVALID, field,
                                 "a task has no member \"%s\"; remove it or correct its name",
                                 field);
        }
        if (json_kind(found.value) == JSON_NULL && member->read != read_json)
            continue;
        TRY(member->read(parse, member, found.value));
    }
    return check_together(parse);
}

static int parse_one(struct str object, const struct settings *settings, struct arena *arena,
                     struct task_input *input, struct err *err)
{
    struct parse parse = {.arena = arena, .input = input, .err = err};
    int rc = parse_object(object, &parse);

    return rc < 0 ? rc : spec_finish(input, settings, arena, err);
}

int spec_parse(struct str object, const struct settings *settings, struct arena *arena,
               struct task_input *input, struct err *err)
{
    TRY(parse_one(object, settings, arena, input, err));
    return spec_link_refs(input, 1, arena, err);
}

static int parse_elements(struct str array, const struct settings *settings, struct arena *arena,
                          struct task_input *inputs, struct err *err)
{
    struct err found = {0};
    struct json_iter iter;
    struct str element;
    uint32_t i = 0;

    json_begin(array, &iter);
    while (json_next_element(&iter, &element)) {
        if (parse_one(element, settings, arena, &inputs[i], &found) < 0)
            return err_set_field(err, found.code, found.field, "element %u: %s", i, found.text);
        i++;
    }
    return 0;
}

int spec_parse_all(struct str json, const struct settings *settings, struct arena *arena,
                   struct task_input **inputs, uint32_t *count, bool *is_array, struct err *err)
{
    size_t elements = 1;

    *is_array = json_kind(json) == JSON_ARRAY;
    if (*is_array)
        elements = json_count(json);
    if (elements == 0)
        return err_set(err, ERR_INVALID, "the array is empty; it must hold at least one task");
    if (elements > BOUND_ARRAY)
        return err_set(err, ERR_TOO_LARGE, "the array holds %zu tasks; send at most %d at once",
                       elements, BOUND_ARRAY);
    *count = (uint32_t)elements;
    *inputs = arena_alloc_array(arena, elements, sizeof **inputs);
    if (!*inputs)
        return spec_no_memory(err);
    if (!*is_array)
        return spec_parse(json, settings, arena, *inputs, err);
    TRY(parse_elements(json, settings, arena, *inputs, err));
    return spec_link_refs(*inputs, *count, arena, err);
}
