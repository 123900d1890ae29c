/* Reads what chat APIs answer. */
#include "core/agent/model_answer.h"

#include "base/json.h"

#define ERROR_BYTES_MAX 300
#define WAIT_FIRST_MS 1000
#define WAIT_MS_MAX (60 * 1000)
#define RETRY_AFTER_S_MAX 3600
#define ID_BYTES_MAX 128
#define NAME_BYTES_MAX 128

static int not_an_answer(struct err *err, const char *why)
{
    return err_set(err, ERR_INVALID, "the answer of the model cannot be used: %s", why);
}

static struct str text_of(struct str value, struct arena *arena)
{
    return value.data && json_kind(value) == JSON_STRING ? json_string(value, arena) : STR_NONE;
}

static struct str first_choice(struct str body)
{
    struct str choices = json_kind(body) == JSON_OBJECT ? json_get(body, STR("choices")) : STR_NONE;
    struct json_iter iter;
    struct str choice = STR_NONE;

    if (!choices.data || json_kind(choices) != JSON_ARRAY)
        return STR_NONE;
    json_begin(choices, &iter);
    return json_next_element(&iter, &choice) && json_kind(choice) == JSON_OBJECT ? choice
                                                                                  : STR_NONE;
}

static void read_usage(struct str body, int64_t *input, int64_t *output)
{
    struct str usage = json_get(body, STR("usage"));
    struct str value;

    if (!usage.data || json_kind(usage) != JSON_OBJECT)
        return;
    value = json_get(usage, STR("prompt_tokens"));
    if (value.data && json_int64(value, input) && *input < 0)
        *input = 0;
    value = json_get(usage, STR("completion_tokens"));
    if (value.data && json_int64(value, output) && *output < 0)
        *output = 0;
}

/* Arguments are JSON in a string; some servers send the object itself. */
static struct str arguments_of(struct str function, struct arena *arena)
{
    struct str value = json_get(function, STR("arguments"));

    if (!value.data || json_kind(value) == JSON_NULL)
        return STR("{}");
    return json_kind(value) == JSON_STRING ? json_string(value, arena) : value;
}

static bool is_taken(const struct tool_call *calls, uint32_t count, struct str id)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(calls[i].id, id))
            return true;
    return false;
}

/* The id says which result belongs to which call: one that is missing, too long or given twice is
 * replaced. */
static struct str usable_id(struct model_answer *answer, struct str id, struct arena *arena)
{
    uint32_t number = answer->calls_count;

    if (id.len && id.len <= ID_BYTES_MAX && !is_taken(answer->calls, number, id))
        return id;
    do
        id = arena_format(arena, "call_%u", ++number);
    while (id.data && is_taken(answer->calls, answer->calls_count, id));
    return id;
}

static int add_call(struct model_answer *answer, struct str id, struct str name,
                    struct str arguments, struct arena *arena, struct err *err)
{
    struct tool_call *call;

    if (answer->calls_count == MODEL_CALLS_MAX)
        return not_an_answer(err, "more than 256 tool calls");
    if (!answer->calls)
        answer->calls = TRY_MEMORY(
            arena_alloc_array(arena, MODEL_CALLS_MAX, sizeof *answer->calls));
    call = &answer->calls[answer->calls_count];
    call->id = usable_id(answer, id, arena);
    call->name = str_cut(name.data ? name : STR(""), NAME_BYTES_MAX);
    call->arguments = arguments.data ? arguments : STR("");
    TRY_MEMORY(call->id.data);
    answer->calls_count++;
    return 0;
}

static int read_calls(struct str list, struct arena *arena, struct model_answer *answer,
                      struct err *err)
{
    struct json_iter iter;
    struct str item;

    if (!list.data || json_kind(list) != JSON_ARRAY)
        return 0;
    json_begin(list, &iter);
    while (json_next_element(&iter, &item)) {
        struct str function = json_kind(item) == JSON_OBJECT ? json_get(item, STR("function"))
                                                             : STR_NONE;

        if (!function.data || json_kind(function) != JSON_OBJECT)
            return not_an_answer(err, "a tool call without a function");
        TRY(add_call(answer, text_of(json_get(item, STR("id")), arena),
                     text_of(json_get(function, STR("name")), arena),
                     arguments_of(function, arena), arena, err));
    }
    return 0;
}

int model_answer_parse(struct str body, struct arena *arena, struct model_answer *answer,
                       struct err *err)
{
    struct str choice, message;

    *answer = (struct model_answer){.content = STR_NONE};
    if (body.len > MODEL_ANSWER_BYTES_MAX)
        return not_an_answer(err, "larger than 4 MiB");
    if (json_check(body, &body, NULL) < 0)
        return not_an_answer(err, "no JSON");
    choice = first_choice(body);
    message = choice.data ? json_get(choice, STR("message")) : STR_NONE;
    if (!message.data || json_kind(message) != JSON_OBJECT)
        return not_an_answer(err, "no message in choices");
    answer->content = text_of(json_get(message, STR("content")), arena);
    read_usage(body, &answer->input_tokens, &answer->output_tokens);
    TRY(read_calls(json_get(message, STR("tool_calls")), arena, answer, err));
    if (!answer->calls_count && str_empty(answer->content))
        return not_an_answer(err, "neither text nor a tool call");
    return arena->failed ? err_no_memory(err) : 0;
}

struct str model_error_text(struct str body, struct arena *arena)
{
    struct str error, text;

    if (json_check(body, &body, NULL) < 0 || json_kind(body) != JSON_OBJECT)
        return STR_NONE;
    error = json_get(body, STR("error"));
    if (error.data && json_kind(error) == JSON_OBJECT)
        error = json_get(error, STR("message"));
    text = text_of(error.data ? error : json_get(body, STR("message")), arena);
    return str_empty(text) ? STR_NONE : str_cut(text, ERROR_BYTES_MAX);
}

/* ---- streams ---- */

void model_stream_init(struct model_stream *stream, struct arena *arena)
{
    *stream = (struct model_stream){.arena = arena,
                                    .line = BUF_INIT(MODEL_ANSWER_BYTES_MAX),
                                    .content = BUF_INIT(MODEL_ANSWER_BYTES_MAX)};
}

void model_stream_deinit(struct model_stream *stream)
{
    for (uint32_t i = 0; i < stream->calls_count; i++)
        buf_deinit(&stream->calls[i].arguments);
    buf_deinit(&stream->line);
    buf_deinit(&stream->content);
}

/* The call that a piece belongs to: by its index, where it has none by its place. */
static struct model_stream_call *stream_call(struct model_stream *stream, struct str piece)
{
    struct str value = json_get(piece, STR("index"));
    int64_t index = stream->calls_count;
    struct model_stream_call *call;

    if (value.data && !json_int64(value, &index))
        return NULL;
    if (index < 0 || index >= MODEL_CALLS_MAX || index > stream->calls_count)
        return NULL;
    if (!stream->calls)
        stream->calls = arena_alloc_array(stream->arena, MODEL_CALLS_MAX, sizeof *stream->calls);
    if (!stream->calls)
        return NULL;
    call = &stream->calls[index];
    if (index == stream->calls_count) {
        *call = (struct model_stream_call){.arguments = BUF_INIT(MODEL_ANSWER_BYTES_MAX)};
        stream->calls_count++;
    }
    return call;
}

/* Pieces live as long as the line; what is kept is copied. */
static void keep(struct model_stream *stream, struct str value, struct str *to)
{
    struct str text = text_of(value, stream->arena);

    if (!str_empty(text) && !to->data)
        *to = arena_str(stream->arena, str_cut(text, ID_BYTES_MAX));
}

static int take_piece(struct model_stream *stream, struct str piece)
{
    struct str function = json_kind(piece) == JSON_OBJECT ? json_get(piece, STR("function"))
                                                          : STR_NONE;
    struct model_stream_call *call;
    struct str arguments;

    if (!function.data || json_kind(function) != JSON_OBJECT)
        return not_an_answer(&stream->err, "a tool call without a function");
    call = stream_call(stream, piece);
    if (!call)
        return not_an_answer(&stream->err, "pieces of tool calls out of order");
    keep(stream, json_get(piece, STR("id")), &call->id);
    keep(stream, json_get(function, STR("name")), &call->name);
    arguments = json_get(function, STR("arguments"));
    if (arguments.data && json_kind(arguments) == JSON_STRING)
        buf_str(&call->arguments, json_string(arguments, stream->arena));
    else if (arguments.data && json_kind(arguments) == JSON_OBJECT)
        buf_str(&call->arguments, arguments);
    return call->arguments.failed ? not_an_answer(&stream->err, "larger than 4 MiB") : 0;
}

static int take_delta(struct model_stream *stream, struct str delta)
{
    struct str content = text_of(json_get(delta, STR("content")), stream->arena);
    struct str calls = json_get(delta, STR("tool_calls"));
    struct json_iter iter;
    struct str piece;

    if (content.data) {
        stream->has_content = true;
        buf_str(&stream->content, content);
    }
    if (!calls.data || json_kind(calls) != JSON_ARRAY)
        return 0;
    json_begin(calls, &iter);
    while (json_next_element(&iter, &piece))
        TRY(take_piece(stream, piece));
    return 0;
}

static int take_event(struct model_stream *stream, struct str data)
{
    struct str choice, delta, reason;

    if (str_is(data, "[DONE]")) {
        stream->over = true;
        return 0;
    }
    if (json_check(data, &data, NULL) < 0 || json_kind(data) != JSON_OBJECT)
        return not_an_answer(&stream->err, "an event of the stream is no JSON object");
    if (json_get(data, STR("error")).data)
        return not_an_answer(&stream->err, "the stream ended with an error");
    read_usage(data, &stream->input_tokens, &stream->output_tokens);
    choice = first_choice(data);
    if (!choice.data)
        return 0; /* the last one may have the usage only */
    stream->has_choice = true;
    reason = json_get(choice, STR("finish_reason"));
    stream->over |= reason.data && json_kind(reason) == JSON_STRING;
    delta = json_get(choice, STR("delta"));
    return delta.data && json_kind(delta) == JSON_OBJECT ? take_delta(stream, delta) : 0;
}

static int take_line(struct model_stream *stream, struct str line)
{
    if (line.len && line.data[line.len - 1] == '\r')
        line.len--;
    if (!str_starts(line, STR("data:")))
        return 0; /* a comment, or a field that says nothing here */
    line = str_span(line.data + 5, line.len - 5);
    if (line.len && line.data[0] == ' ')
        line = str_span(line.data + 1, line.len - 1);
    return take_event(stream, line);
}

int model_stream_feed(struct model_stream *stream, struct str bytes)
{
    stream->bytes += bytes.len;
    if (stream->err.code == ERR_NONE && stream->bytes > 4 * (size_t)MODEL_ANSWER_BYTES_MAX)
        not_an_answer(&stream->err, "a stream larger than 16 MiB");
    while (bytes.len && stream->err.code == ERR_NONE) {
        const char *end = memchr(bytes.data, '\n', bytes.len);
        size_t len = end ? (size_t)(end - bytes.data) : bytes.len;

        buf_append(&stream->line, bytes.data, len);
        bytes = str_span(bytes.data + len, bytes.len - len);
        if (stream->line.failed)
            return not_an_answer(&stream->err, "an event larger than 4 MiB");
        if (!end)
            break;
        bytes = str_span(bytes.data + 1, bytes.len - 1);
        take_line(stream, buf_view(&stream->line));
        buf_reset(&stream->line);
    }
    if (stream->err.code == ERR_NONE && (stream->arena->failed || stream->content.failed))
        err_no_memory(&stream->err);
    return -(int)stream->err.code;
}

int model_stream_answer(struct model_stream *stream, struct model_answer *answer,
                        struct err *err)
{
    *answer = (struct model_answer){.input_tokens = stream->input_tokens,
                                    .output_tokens = stream->output_tokens};
    if (stream->err.code == ERR_NONE && stream->line.len) {
        take_line(stream, buf_view(&stream->line));
        buf_reset(&stream->line);
    }
    if (stream->err.code != ERR_NONE) {
        *err = stream->err;
        return -(int)err->code;
    }
    if (!stream->over)
        return not_an_answer(err, "its stream was cut");
    for (uint32_t i = 0; i < stream->calls_count; i++) {
        struct str arguments = buf_view(&stream->calls[i].arguments);

        TRY(add_call(answer, stream->calls[i].id, stream->calls[i].name,
                     arguments.len ? arena_str(stream->arena, arguments) : STR("{}"),
                     stream->arena, err));
    }
    if (stream->has_content && stream->content.len)
        answer->content = arena_str(stream->arena, buf_view(&stream->content));
    if (stream->arena->failed)
        return err_no_memory(err);
    if (!answer->calls_count && str_empty(answer->content))
        return not_an_answer(err, "neither text nor a tool call");
    return 0;
}

/* ---- statuses ---- */

enum model_end model_judge_status(int status, bool asks_wait)
{
    if (status >= 200 && status <= 299)
        return MODEL_ANSWERED;
    if (status == 429 || (status == 503 && asks_wait))
        return MODEL_WAIT;
    return status == 408 || status == 425 || status >= 500 ? MODEL_AGAIN : MODEL_REFUSED;
}

int64_t model_wait_ms(int64_t retry_after_s, uint32_t waits)
{
    int64_t wait_ms = WAIT_FIRST_MS;

    if (retry_after_s > 0)
        return (retry_after_s < RETRY_AFTER_S_MAX ? retry_after_s : RETRY_AFTER_S_MAX) * 1000;
    while (waits-- && wait_ms < WAIT_MS_MAX)
        wait_ms *= 2;
    return wait_ms < WAIT_MS_MAX ? wait_ms : WAIT_MS_MAX;
}
