/* From the public spec to what the engine takes: straight into an input where it is plain, as a
 * JSON object for the parser and for servers otherwise. So there is one place that knows the rules
 * of lists, refs and URLs, and still no text in between for the common case. Pure, any thread. */
#include "lib/lib_int.h"

#include "base/clock.h"
#include "core/task/search.h"
#include "core/task/task_fields.h"

int lib_check_text(const char *text, const char *field, struct str *to, struct err *err)
{
    *to = str_of(text);
    if (text && !str_is_utf8(*to))
        return err_set_field(err, ERR_INVALID, field, "'%s' is not UTF-8", field);
    return 0;
}

int lib_check_json(const char *text, size_t len, const char *field, struct str *to,
                   struct err *err)
{
    struct err cause = {0};

    *to = text ? str_span(text, len ? len : strlen(text)) : STR_NONE;
    if (!text || json_check(*to, to, &cause) == 0)
        return 0;
    return err_set_field(err, cause.code, field, "'%s' is not JSON: %.300s", field, cause.text);
}

int lib_parse_id(const char *text, struct uuid *id, struct err *err)
{
    if (text && uuid_parse(str_of(text), id))
        return 0;
    return err_set(err, ERR_INVALID, "'%.100s' is not the id of a task", text ? text : "");
}

/* ---- straight ---- */

struct text_field {
    size_t from; /* in struct pd_task_spec */
    size_t to;   /* in struct task_input; SIZE_MAX = only the parser takes it */
    size_t max;
    const char *name;
};

#define TEXT(name, path, max) \
    {offsetof(struct pd_task_spec, name), offsetof(struct task_input, path), max, #name}
#define PARSED(name) {offsetof(struct pd_task_spec, name), SIZE_MAX, 0, #name}

/* The plain fields of the list: its texts, and further down its numbers. */
#define ASK_NOT
#define ASK_TEXT(name, path, bytes, flag, value, help) TEXT(name, path, bytes),
#define ASK_EDIT ASK_TEXT
#define ASK_COUNT(name, path, given, max, flag, help)
#define ASK_MS(name, path, given, min, flag, help)
#define PLAIN(name, path, kind, flags, empty, words, show, ask) ask

static const struct text_field texts[] = {
    TEXT(type, spec.type, BOUND_NAME_BYTES),
    TEXT(queue, spec.queue, BOUND_NAME_BYTES),
    PARSED(ref),
    PARSED(callback_url),
    PARSED(category),
    PARSED(traceparent),
    PARSED(tracestate),
    TASK_FIELDS_ALL(PLAIN)
};

struct number_field {
    size_t from;
    size_t to;
    size_t flag; /* of the input: it was given; 0 = none */
    int64_t max;
    bool has_none; /* PD_NONE stands for 0 */
    const char *name;
};

#define NUMBER(name, path, flag, max, has_none) \
    {offsetof(struct pd_task_spec, name), offsetof(struct task_input, path), flag, max, has_none, \
     #name}
#undef ASK_TEXT
#undef ASK_COUNT
#undef ASK_MS
#define GIVEN(flag) offsetof(struct task_input, flag)
#define ASK_TEXT(name, path, bytes, flag, value, help)
#define ASK_COUNT(name, path, given, max, flag, help) NUMBER(name, path, given, max, true),
#define ASK_MS(name, path, given, min, flag, help)                                                 \
    NUMBER(name, path, given, BOUND_DELAY_MS, (min) == 0),

static const struct number_field numbers[] = {
    NUMBER(delay_ms, delay_ms, 0, BOUND_DELAY_MS, false),
    TASK_FIELDS_ALL(PLAIN)
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *text_of(const struct pd_task_spec *spec, const struct text_field *field)
{
    return *(const char *const *)(const void *)((const char *)spec + field->from);
}

static int64_t number_of(const struct pd_task_spec *spec, const struct number_field *field)
{
    return *(const int64_t *)(const void *)((const char *)spec + field->from);
}

/* Visible ASCII; the parser decides about what looks like a pattern. */
static bool is_plain(struct str text, size_t max)
{
    if (text.len == 0 || text.len > max || search_is_pattern(text))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < 0x20 || text.data[i] >= 0x7F)
            return false;
    return true;
}

static bool plain_texts(const struct pd_task_spec *spec, struct task_input *input)
{
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *text = text_of(spec, &texts[i]);

        if (!text)
            continue;
        if (texts[i].to == SIZE_MAX || !is_plain(str_of(text), texts[i].max))
            return false;
        *(struct str *)(void *)((char *)input + texts[i].to) = str_of(text);
    }
    return spec->type != NULL;
}

static bool plain_numbers(const struct pd_task_spec *spec, struct task_input *input)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const struct number_field *field = &numbers[i];
        int64_t number = number_of(spec, field);

        if (number == 0)
            continue;
        if (number == PD_NONE && field->has_none)
            number = 0;
        if (number < 0 || number > field->max)
            return false;
        *(int64_t *)(void *)((char *)input + field->to) = number;
        if (field->flag)
            *(bool *)((char *)input + field->flag) = true;
    }
    if (spec->priority < -BOUND_PRIORITY || spec->priority > BOUND_PRIORITY ||
        spec->run_at_us < 0 || spec->run_at_us > CLOCK_MAX_US ||
        (spec->run_at_us && spec->delay_ms))
        return false;
    input->priority = spec->priority;
    input->has_priority = spec->priority != 0;
    input->spec.run_at_us = spec->run_at_us;
    return true;
}

int lib_plain_input(const struct pd_task_spec *spec, struct task_input *input, struct err *err)
{
    spec_init(input);
    if (spec->tags_count || spec->hash_fields_count || spec->depends_on_count ||
        spec->encrypt_fields_count || spec->callback_events_count ||
        spec->retry_policy > PD_RETRY_FIXED || spec->unique_until > PD_UNIQUE_ENDED ||
        spec->on_unsatisfied > PD_UNSATISFIED_RUN || !plain_texts(spec, input) ||
        !plain_numbers(spec, input))
        return 0;
    TRY(lib_check_json(spec->payload, spec->payload_len, "payload", &input->spec.payload, err));
    TRY(lib_check_json(spec->data, 0, "data", &input->data, err));
    TRY(lib_check_json(spec->metadata, 0, "metadata", &input->about.metadata, err));
    if (input->about.metadata.data && json_kind(input->about.metadata) != JSON_OBJECT)
        return 0;
    if (spec->retry_policy) {
        input->spec.retry.policy = (enum retry_policy)(spec->retry_policy - 1);
        input->has_retry_policy = true;
    }
    input->spec.unique_until = (enum unique_until)spec->unique_until;
    input->spec.on_unsatisfied = (enum on_unsatisfied)spec->on_unsatisfied;
    input->hash_input = spec->hash_input > 0;
    input->no_hash = spec->hash_input < 0;
    input->spec.seal.encrypt = spec->encrypt != 0;
    return 1;
}

/* ---- as JSON ---- */

static const char *const dependency_words[] = {"success", "completion", "failure"};

static void begin_member(struct buf *out, const char *key)
{
    json_write_key(out, key);
}

static int write_text(struct buf *out, const char *key, const char *text, struct err *err)
{
    struct str checked;

    if (!text)
        return 0;
    TRY(lib_check_text(text, key, &checked, err));
    begin_member(out, key);
    json_write_string(out, checked);
    return 0;
}

static int write_json(struct buf *out, const char *key, const char *text, size_t len,
                      struct err *err)
{
    struct str checked;

    if (!text)
        return 0;
    TRY(lib_check_json(text, len, key, &checked, err));
    begin_member(out, key);
    buf_str(out, checked);
    return 0;
}

static void write_int(struct buf *out, const char *key, int64_t value)
{
    begin_member(out, key);
    buf_int(out, value);
}

static int write_word(struct buf *out, const char *key, const char *const *words, size_t count,
                      unsigned at, struct err *err)
{
    if (at >= count)
        return err_set_field(err, ERR_INVALID, key, "'%s' has a value that is none of its kind",
                             key);
    begin_member(out, key);
    json_write_string(out, str_of(words[at]));
    return 0;
}

static int write_list(struct buf *out, const char *key, const char *const *list, size_t count,
                      struct err *err)
{
    struct str checked;

    if (count == 0)
        return 0;
    begin_member(out, key);
    buf_byte(out, '[');
    for (size_t i = 0; i < count; i++) {
        TRY(lib_check_text(list[i] ? list[i] : "", key, &checked, err));
        json_comma(out);
        json_write_string(out, checked);
    }
    buf_byte(out, ']');
    return 0;
}

static int write_dependencies(struct buf *out, const struct pd_task_spec *spec, struct err *err)
{
    if (spec->depends_on_count == 0)
        return 0;
    begin_member(out, "depends_on");
    buf_byte(out, '[');
    for (size_t i = 0; i < spec->depends_on_count; i++) {
        const struct pd_dependency *dependency = &spec->depends_on[i];

        buf_text(out, i ? ",{" : "{");
        TRY(write_text(out, "task", dependency->task, err));
        TRY(write_text(out, "ref", dependency->ref, err));
        TRY(write_word(out, "type", dependency_words, COUNT(dependency_words),
                       (unsigned)dependency->kind, err));
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
    return 0;
}

static void write_numbers(struct buf *out, const struct pd_task_spec *spec)
{
    char time[CLOCK_TEXT_BYTES];

    for (size_t i = 0; i < COUNT(numbers); i++) {
        int64_t number = number_of(spec, &numbers[i]);

        if (number == 0)
            continue;
        write_int(out, numbers[i].name, number == PD_NONE && numbers[i].has_none ? 0 : number);
    }
    if (spec->priority)
        write_int(out, "priority", spec->priority);
    if (spec->run_at_us) {
        clock_format(spec->run_at_us, time);
        begin_member(out, "run_at");
        json_write_string(out, str_of(time));
    }
    if (spec->hash_input) {
        begin_member(out, "hash_input");
        buf_text(out, spec->hash_input > 0 ? "true" : "false");
    }
    if (spec->encrypt) {
        begin_member(out, "encrypt");
        buf_text(out, "true");
    }
}

static int write_words(struct buf *out, const struct pd_task_spec *spec, struct err *err)
{
    static const char *const policies[] = {"polynomial", "exponential", "linear", "fixed"};
    static const char *const uniques[] = {"forever", "ended"};
    static const char *const unsatisfied[] = {"cancel", "fail", "run"};

    if (spec->retry_policy)
        TRY(write_word(out, "retry_policy", policies, COUNT(policies),
                       (unsigned)spec->retry_policy - 1, err));
    if (spec->unique_until)
        TRY(write_word(out, "unique_until", uniques, COUNT(uniques), (unsigned)spec->unique_until,
                       err));
    if (spec->on_unsatisfied)
        TRY(write_word(out, "on_unsatisfied", unsatisfied, COUNT(unsatisfied),
                       (unsigned)spec->on_unsatisfied, err));
    return 0;
}

static int write_spec(struct buf *out, const struct pd_task_spec *spec, struct err *err)
{
    buf_byte(out, '{');
    for (size_t i = 0; i < COUNT(texts); i++)
        TRY(write_text(out, texts[i].name, text_of(spec, &texts[i]), err));
    TRY(write_json(out, "payload", spec->payload, spec->payload_len, err));
    TRY(write_json(out, "data", spec->data, 0, err));
    TRY(write_json(out, "metadata", spec->metadata, 0, err));
    TRY(write_list(out, "tags", spec->tags, spec->tags_count, err));
    TRY(write_list(out, "hash_fields", spec->hash_fields, spec->hash_fields_count, err));
    TRY(write_list(out, "encrypt_fields", spec->encrypt_fields, spec->encrypt_fields_count, err));
    TRY(write_list(out, "callback_events", spec->callback_events, spec->callback_events_count,
                   err));
    TRY(write_dependencies(out, spec, err));
    TRY(write_words(out, spec, err));
    write_numbers(out, spec);
    buf_byte(out, '}');
    return 0;
}

int lib_write_specs(struct buf *out, const struct pd_task_spec *specs, uint32_t count,
                    struct err *err)
{
    struct err cause = {0};

    if (count == 1)
        TRY(write_spec(out, specs, err));
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        buf_byte(out, i ? ',' : '[');
        if (write_spec(out, &specs[i], &cause) < 0)
            return err_set_field(err, cause.code, cause.field, "element %u: %.400s", i, cause.text);
    }
    if (count > 1)
        buf_byte(out, ']');
    if (out->failed)
        return err_set(err, ERR_TOO_LARGE, "the tasks are larger than %zu bytes together; enqueue "
                       "fewer at once", out->max_bytes);
    return 0;
}
