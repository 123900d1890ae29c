#include "cli/mock/mock_script.h"

#include "base/json.h"

#define LINES_MAX 10000
#define PIECE_BYTES 24 /* of a text in a stream */

/* ---- reading ---- */

static int take_number(struct str line, const char *key, int64_t least, int64_t *number,
                       struct err *err)
{
    struct str value = json_get(line, str_of(key));

    if (value.data && (!json_int64(value, number) || *number < least))
        return err_set(err, ERR_INVALID, "'%s' of the script must be a whole number from %lld", key,
                       (long long)least);
    return 0;
}

static int check_keys(struct str line, struct err *err)
{
    static const char *const known[] = {"when", "turn", "times", "text", "tools", "final",
                                        "finished", "status", "error", "retry_after", "delay_ms",
                                        "cut", "stall", "stream", "tokens", "raw"};
    struct json_member member;
    struct json_iter iter;

    json_begin(line, &iter);
    while (json_next_member(&iter, &member)) {
        bool found = false;

        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found |= json_key_is(member.key, str_of(known[i]));
        if (!found)
            return err_set(err, ERR_INVALID, "the script has an unknown key '" STR_FMT "'; "
                           "'perdura mock-model --help' lists them",
                           STR_ARG(str_cut(member.key, 60)));
    }
    return 0;
}

static int read_line(struct mock_script *script, struct str json, struct err *err)
{
    struct mock_line *line = &script->lines[script->count];
    struct str when;

    if (json_kind(json) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "every line of the script must be an object");
    TRY(check_keys(json, err));
    *line = (struct mock_line){.json = json, .turn = -1, .status = 200};
    when = json_get(json, STR("when"));
    line->when = when.data ? json_string(when, &script->arena) : STR_NONE;
    line->cut = str_is(json_get(json, STR("cut")), "true");
    line->stall = str_is(json_get(json, STR("stall")), "true");
    line->stream = !str_is(json_get(json, STR("stream")), "false");
    TRY(take_number(json, "turn", 0, &line->turn, err));
    TRY(take_number(json, "times", 0, &line->times, err));
    TRY(take_number(json, "status", 100, &line->status, err));
    TRY(take_number(json, "retry_after", 0, &line->retry_after, err));
    TRY(take_number(json, "delay_ms", 0, &line->delay_ms, err));
    script->count++;
    return 0;
}

int mock_script_read(struct mock_script *script, struct str text, struct err *err)
{
    struct str lines, key, line;
    struct json_iter iter;

    *script = (struct mock_script){.arena = ARENA_INIT(0)};
    text = arena_str(&script->arena, text);
    TRY_MEMORY(text.data);
    TRY(json_check(text, &text, err));
    lines = json_kind(text) == JSON_OBJECT ? json_get(text, STR("lines")) : STR_NONE;
    if (!lines.data || json_kind(lines) != JSON_ARRAY || json_count(lines) > LINES_MAX)
        return err_set(err, ERR_INVALID, "the script must be {\"lines\":[…]}");
    key = json_get(text, STR("key"));
    script->key = key.data ? json_string(key, &script->arena) : STR_NONE;
    script->lines = TRY_MEMORY(arena_alloc_array(&script->arena, json_count(lines) + 1,
                                                 sizeof *script->lines));
    json_begin(lines, &iter);
    while (json_next_element(&iter, &line))
        TRY(read_line(script, line, err));
    return 0;
}

void mock_script_deinit(struct mock_script *script)
{
    arena_deinit(&script->arena);
}

/* ---- matching ---- */

struct mock_line *mock_script_match(struct mock_script *script, struct str messages, int64_t *turn,
                                    struct arena *arena)
{
    struct str message, content = STR("");
    struct json_iter iter;

    *turn = 0;
    json_begin(messages, &iter);
    while (json_next_element(&iter, &message)) {
        struct str value = json_get(message, STR("content"));

        *turn += str_is(json_get(message, STR("role")), "\"assistant\"");
        content = value.data && json_kind(value) == JSON_STRING ? json_string(value, arena)
                                                                : STR("");
    }
    for (uint32_t i = 0; i < script->count; i++) {
        struct mock_line *line = &script->lines[i];

        if ((line->times && line->used >= line->times) || (line->turn >= 0 && line->turn != *turn))
            continue;
        if (line->when.len && !memmem(content.data, content.len, line->when.data, line->when.len))
            continue;
        line->used++;
        return line;
    }
    return NULL;
}

/* ---- answering ---- */

static struct str text_in(struct str line, const char *key, struct arena *arena)
{
    struct str value = json_get(line, str_of(key));

    if (!value.data)
        return STR_NONE;
    return json_kind(value) == JSON_STRING ? json_string(value, arena) : value;
}

static void write_usage(struct str line, struct buf *out)
{
    struct str tokens = json_get(line, STR("tokens")), one;
    int64_t numbers[2] = {100, 20};
    struct json_iter iter;
    size_t at = 0;

    if (tokens.data && json_kind(tokens) == JSON_ARRAY) {
        json_begin(tokens, &iter);
        while (at < 2 && json_next_element(&iter, &one))
            if (!json_int64(one, &numbers[at++]))
                break;
    }
    buf_format(out, "\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,"
               "\"total_tokens\":%lld}", (long long)numbers[0], (long long)numbers[1],
               (long long)(numbers[0] + numbers[1]));
}

/* What the line makes the model call: `tools`, or `final` as finalAnswer. */
struct calls {
    struct arena *arena;
    struct str list;
    struct str final;
    struct json_iter iter;
    bool ended;
};

static struct calls calls_of(struct str line, struct arena *arena)
{
    struct calls calls = {.arena = arena, .list = json_get(line, STR("tools"))};
    struct str final = json_get(line, STR("final"));
    BUF_AUTO struct buf out = BUF_INIT(1 << 20);

    if (!calls.list.data || json_kind(calls.list) != JSON_ARRAY)
        calls.list = STR("[]");
    if (final.data) {
        buf_text(&out, "{\"answer\":");
        buf_str(&out, final);
        buf_format(&out, ",\"taskFinished\":%s}",
                   str_is(json_get(line, STR("finished")), "false") ? "false" : "true");
        calls.final = arena_str(arena, buf_view(&out));
    }
    json_begin(calls.list, &calls.iter);
    return calls;
}

static bool next_call(struct calls *calls, struct str *name, struct str *arguments)
{
    struct str item;

    if (json_next_element(&calls->iter, &item)) {
        *name = text_in(item, "name", calls->arena);
        *arguments = text_in(item, "arguments", calls->arena);
        return true;
    }
    if (!calls->final.data || calls->ended)
        return false;
    calls->ended = true;
    *name = STR("finalAnswer");
    *arguments = calls->final;
    return true;
}

static void write_whole(struct str line, int64_t turn, struct arena *arena, struct buf *out)
{
    struct calls calls = calls_of(line, arena);
    struct str name, arguments;
    int number = 0;

    buf_format(out, "{\"id\":\"mock-%lld\",\"object\":\"chat.completion\",\"model\":\"mock\","
               "\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"message\":"
               "{\"role\":\"assistant\",", (long long)turn);
    json_write_member_string(out, "content", text_in(line, "text", arena));
    while (next_call(&calls, &name, &arguments)) {
        buf_text(out, number ? "," : ",\"tool_calls\":[");
        buf_format(out, "{\"id\":\"call_%lld_%d\",\"type\":\"function\",\"function\":{",
                   (long long)turn, number++);
        json_write_member_string(out, "name", name);
        buf_byte(out, ',');
        json_write_member_string(out, "arguments", arguments);
        buf_text(out, "}}");
    }
    buf_text(out, number ? "]}}]," : "}}],");
    write_usage(line, out);
    buf_byte(out, '}');
}

static void write_event(struct buf *out, struct str delta)
{
    buf_text(out, "data: {\"choices\":[{\"index\":0,\"delta\":");
    buf_str(out, delta);
    buf_text(out, "}]}\n\n");
}

static void write_pieces(struct buf *out, struct str text, const char *before, const char *after)
{
    while (text.len) {
        struct str piece = str_cut(text, PIECE_BYTES);
        BUF_AUTO struct buf delta = BUF_INIT(4096);

        buf_text(&delta, before);
        json_write_string(&delta, piece);
        buf_text(&delta, after);
        write_event(out, buf_view(&delta));
        text = str_span(text.data + piece.len, text.len - piece.len);
    }
}

static void write_stream(struct str line, int64_t turn, struct arena *arena, struct buf *out)
{
    struct calls calls = calls_of(line, arena);
    struct str name, arguments, text = text_in(line, "text", arena);
    int number = 0;

    if (text.data)
        write_pieces(out, text, "{\"content\":", "}");
    while (next_call(&calls, &name, &arguments)) {
        BUF_AUTO struct buf first = BUF_INIT(65536);
        char before[96];

        buf_format(&first, "{\"tool_calls\":[{\"index\":%d,\"id\":\"call_%lld_%d\",\"type\":"
                   "\"function\",\"function\":{", number, (long long)turn, number);
        json_write_member_string(&first, "name", name);
        buf_text(&first, ",\"arguments\":\"\"}}]}");
        write_event(out, buf_view(&first));
        snprintf(before, sizeof before, "{\"tool_calls\":[{\"index\":%d,\"function\":{"
                 "\"arguments\":", number++);
        write_pieces(out, arguments, before, "}}]}");
    }
    buf_text(out, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
                  "data: {\"choices\":[],");
    write_usage(line, out);
    buf_text(out, "}\n\ndata: [DONE]\n\n");
}

void mock_answer_write(const struct mock_line *line, int64_t turn, bool stream, struct arena *arena,
                       struct buf *out)
{
    struct str raw = text_in(line->json, "raw", arena), error = text_in(line->json, "error", arena);

    if (raw.data) {
        buf_str(out, raw);
    } else if (line->status >= 300) {
        buf_text(out, "{\"error\":{");
        json_write_member_string(out, "message", error.data ? error : STR("as the script says"));
        buf_text(out, "}}");
    } else if (stream) {
        write_stream(line->json, turn, arena, out);
    } else {
        write_whole(line->json, turn, arena, out);
    }
}
