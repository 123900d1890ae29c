/* Conversations: messages, what they used, and what comes next. */
#include "core/agent/conversation.h"

#include "base/hash.h"
#include "base/json.h"

#define TRIMMED "[left out to make room]"
#define KEPT_RESULTS 4 /* the newest results of tools are never left out */

void conversation_init(struct conversation *conversation, struct arena *arena)
{
    *conversation = (struct conversation){.arena = arena, .step = 1};
}

/* ---- messages ---- */

static int grow(struct conversation *conversation, struct err *err)
{
    uint32_t cap = conversation->messages_cap ? conversation->messages_cap * 2 : 32;
    struct str *messages;

    if (conversation->messages_count < conversation->messages_cap)
        return 0;
    if (conversation->messages_count >= CONVERSATION_MESSAGES_MAX)
        return err_set(err, ERR_TOO_LARGE, "the conversation has more than %d messages",
                       CONVERSATION_MESSAGES_MAX);
    messages = TRY_MEMORY(arena_alloc_array(conversation->arena, cap, sizeof *messages));
    if (conversation->messages_count)
        memcpy(messages, conversation->messages,
               conversation->messages_count * sizeof *messages);
    conversation->messages = messages;
    conversation->messages_cap = cap;
    return 0;
}

static int push(struct conversation *conversation, struct str json, struct err *err)
{
    TRY(grow(conversation, err));
    json = arena_str(conversation->arena, json);
    TRY_MEMORY(json.data);
    conversation->messages[conversation->messages_count++] = json;
    conversation->bytes += json.len + 1;
    return 0;
}

static int push_buf(struct conversation *conversation, struct buf *out, struct err *err)
{
    if (out->failed)
        return err_set(err, ERR_TOO_LARGE, "a message of the conversation is too large");
    return push(conversation, buf_view(out), err);
}

int conversation_add(struct conversation *conversation, const char *role, struct str text,
                     struct err *err)
{
    BUF_AUTO struct buf out = BUF_INIT(2 * MODEL_ANSWER_BYTES_MAX);

    buf_format(&out, "{\"role\":\"%s\",", role);
    json_write_member_string(&out, "content", text);
    buf_byte(&out, '}');
    conversation->calls_count = 0; /* what was answered before is over */
    conversation->text = STR_NONE;
    return push_buf(conversation, &out, err);
}

static void write_call(struct buf *out, const struct tool_call *call)
{
    json_comma(out);
    buf_byte(out, '{');
    json_write_member_string(out, "id", call->id);
    buf_text(out, ",\"type\":\"function\",\"function\":{");
    json_write_member_string(out, "name", call->name);
    buf_byte(out, ',');
    json_write_member_string(out, "arguments", call->arguments);
    buf_text(out, "}}");
}

static int set_calls(struct conversation *conversation, const struct model_answer *answer,
                     struct err *err)
{
    conversation->calls_count = answer->calls_count;
    conversation->text = answer->calls_count ? STR_NONE : answer->content;
    conversation->calls = TRY_MEMORY(arena_alloc_array(
        conversation->arena, answer->calls_count + 1, sizeof *conversation->calls));
    for (uint32_t i = 0; i < answer->calls_count; i++)
        conversation->calls[i] = (struct pending_call){.call = answer->calls[i]};
    return 0;
}

int conversation_add_answer(struct conversation *conversation, const struct model_answer *answer,
                            struct err *err)
{
    BUF_AUTO struct buf out = BUF_INIT(8 * MODEL_ANSWER_BYTES_MAX);

    buf_text(&out, "{\"role\":\"assistant\",");
    json_write_member_string(&out, "content", answer->content);
    if (answer->calls_count) {
        buf_text(&out, ",\"tool_calls\":[");
        for (uint32_t i = 0; i < answer->calls_count; i++)
            write_call(&out, &answer->calls[i]);
        buf_byte(&out, ']');
        conversation->nudged = false;
    }
    buf_byte(&out, '}');
    TRY(push_buf(conversation, &out, err));
    return set_calls(conversation, answer, err);
}

int conversation_add_result(struct conversation *conversation, uint32_t call, struct str text,
                            struct err *err)
{
    BUF_AUTO struct buf out = BUF_INIT(2 * MODEL_ANSWER_BYTES_MAX);

    buf_text(&out, "{\"role\":\"tool\",");
    json_write_member_string(&out, "tool_call_id", conversation->calls[call].call.id);
    buf_byte(&out, ',');
    json_write_member_string(&out, "content", text);
    buf_byte(&out, '}');
    TRY(push_buf(conversation, &out, err));
    conversation->calls[call].has_result = true;
    return 0;
}

static bool role_is(struct str message, const char *quoted)
{
    return str_is(json_get(message, STR("role")), quoted);
}

static int trim_one(struct conversation *conversation, struct str *message, struct err *err)
{
    struct str id = json_get(*message, STR("tool_call_id"));
    struct str less = arena_format(conversation->arena,
                                   "{\"role\":\"tool\",\"tool_call_id\":" STR_FMT
                                   ",\"content\":\"" TRIMMED "\"}", STR_ARG(id));

    TRY_MEMORY(less.data);
    if (less.len >= message->len)
        return 0;
    conversation->bytes -= message->len - less.len;
    *message = less;
    return 0;
}

int conversation_trim(struct conversation *conversation, size_t bytes_max, struct err *err)
{
    uint32_t results = 0;

    for (uint32_t i = 0; i < conversation->messages_count; i++)
        results += role_is(conversation->messages[i], "\"tool\"");
    for (uint32_t i = 0; i < conversation->messages_count && conversation->bytes > bytes_max &&
                         results > KEPT_RESULTS; i++) {
        if (!role_is(conversation->messages[i], "\"tool\""))
            continue;
        results--;
        TRY(trim_one(conversation, &conversation->messages[i], err));
    }
    if (conversation->bytes > bytes_max)
        return err_set(err, ERR_TOO_LARGE, "the conversation is larger than %zu KiB, the most a "
                       "checkpoint may have", bytes_max / 1024);
    return 0;
}

/* ---- checkpoints ---- */

void conversation_write_messages(const struct conversation *conversation, struct buf *out)
{
    buf_text(out, "\"messages\":[");
    for (uint32_t i = 0; i < conversation->messages_count; i++) {
        if (i)
            buf_byte(out, ',');
        buf_str(out, conversation->messages[i]);
    }
    buf_byte(out, ']');
}

static void write_numbers(const struct agent_usage *usage, struct buf *out)
{
    buf_format(out, "{\"calls\":%lld,\"input_tokens\":%lld,\"output_tokens\":%lld,"
               "\"cost\":%lld,\"time_ms\":%lld}", (long long)usage->calls,
               (long long)usage->input_tokens, (long long)usage->output_tokens,
               (long long)usage->cost, (long long)usage->time_ms);
}

void conversation_write(const struct conversation *conversation, struct buf *out)
{
    const struct agent_budget *raised = &conversation->raised;
    bool any = false;

    buf_format(out, "{\"conversation\":1,\"step\":%lld,\"nudged\":%s,\"warned\":%s,"
               "\"resumed\":%lld",
               (long long)conversation->step, conversation->nudged ? "true" : "false",
               conversation->warned ? "true" : "false", (long long)conversation->resumed);
    buf_text(out, ",\"used\":");
    write_numbers(&conversation->usage, out);
    buf_format(out, ",\"raised\":{\"calls\":%lld,\"tokens\":%lld,\"cost\":%lld,\"time_ms\":%lld}",
               (long long)raised->calls, (long long)raised->tokens, (long long)raised->cost,
               (long long)raised->time_ms);
    buf_text(out, ",\"begun\":[");
    for (uint32_t i = 0; i < conversation->calls_count; i++) {
        const struct pending_call *call = &conversation->calls[i];

        if (!call->begun || call->has_result)
            continue;
        if (any)
            buf_byte(out, ',');
        json_write_string(out, call->call.id);
        any = true;
    }
    buf_text(out, "],");
    conversation_write_messages(conversation, out);
    buf_byte(out, '}');
}

static int64_t number_in(struct str object, const char *key)
{
    struct str value = object.data ? json_get(object, str_of(key)) : STR_NONE;
    int64_t number = 0;

    return value.data && json_int64(value, &number) && number > 0 ? number : 0;
}

static int read_last_answer(struct conversation *conversation, struct str message,
                            struct err *err)
{
    BUF_AUTO struct buf out = BUF_INIT(2 * CONVERSATION_BYTES_MAX);
    struct model_answer answer;

    /* It was written by us: the same reader as for the model's own words. */
    buf_text(&out, "{\"choices\":[{\"message\":");
    buf_str(&out, message);
    buf_text(&out, "}]}");
    if (out.failed ||
        model_answer_parse(arena_str(conversation->arena, buf_view(&out)), conversation->arena,
                           &answer, err) < 0)
        return err_set(err, ERR_INVALID, "the checkpoint holds no conversation");
    return set_calls(conversation, &answer, err);
}

static void note_result(struct conversation *conversation, struct str message)
{
    struct str id = json_string(json_get(message, STR("tool_call_id")), conversation->arena);

    for (uint32_t i = 0; i < conversation->calls_count; i++)
        if (str_eq(conversation->calls[i].call.id, id))
            conversation->calls[i].has_result = true;
}

static int read_message(struct conversation *conversation, struct str message, struct err *err)
{
    struct str role = json_kind(message) == JSON_OBJECT ? json_get(message, STR("role"))
                                                        : STR_NONE;

    TRY(push(conversation, message, err));
    if (str_is(role, "\"assistant\""))
        return read_last_answer(conversation, message, err);
    if (str_is(role, "\"tool\"")) {
        note_result(conversation, message);
        return 0;
    }
    if (!str_is(role, "\"user\"") && !str_is(role, "\"system\""))
        return err_set(err, ERR_INVALID, "the checkpoint holds no conversation");
    conversation->calls_count = 0; /* what was answered before is over */
    conversation->text = STR_NONE;
    return 0;
}

static void read_begun(struct conversation *conversation, struct str begun)
{
    struct json_iter iter;
    struct str id;

    if (!begun.data || json_kind(begun) != JSON_ARRAY)
        return;
    json_begin(begun, &iter);
    while (json_next_element(&iter, &id)) {
        struct str text = json_string(id, conversation->arena);

        for (uint32_t i = 0; i < conversation->calls_count; i++)
            if (str_eq(conversation->calls[i].call.id, text))
                conversation->calls[i].begun = true;
    }
}

int conversation_load(struct conversation *conversation, struct str state, struct err *err)
{
    struct str version, messages, used, raised, message;
    struct json_iter iter;
    int64_t number = 0;

    if (json_check_ours(state, &state, NULL) < 0 || json_kind(state) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "the checkpoint holds no conversation");
    version = json_get(state, STR("conversation"));
    messages = json_get(state, STR("messages"));
    if (!version.data || !json_int64(version, &number) || number != 1 || !messages.data ||
        json_kind(messages) != JSON_ARRAY)
        return err_set(err, ERR_INVALID, "the checkpoint holds no conversation");
    json_begin(messages, &iter);
    while (json_next_element(&iter, &message))
        TRY(read_message(conversation, message, err));
    read_begun(conversation, json_get(state, STR("begun")));
    used = json_get(state, STR("used"));
    raised = json_get(state, STR("raised"));
    conversation->usage = (struct agent_usage){
        number_in(used, "calls"), number_in(used, "input_tokens"),
        number_in(used, "output_tokens"), number_in(used, "cost"), number_in(used, "time_ms")};
    conversation->raised = (struct agent_budget){
        number_in(raised, "calls"), number_in(raised, "tokens"), number_in(raised, "cost"),
        number_in(raised, "time_ms")};
    conversation->step = number_in(state, "step");
    conversation->resumed = number_in(state, "resumed");
    conversation->nudged = str_is(json_get(state, STR("nudged")), "true");
    conversation->warned = str_is(json_get(state, STR("warned")), "true");
    return conversation->arena->failed ? err_no_memory(err) : 0;
}

int conversation_write_digest(const struct conversation *conversation, struct str agent,
                              struct str question, struct buf *out, struct err *err)
{
    struct hash_state *state = TRY_MEMORY(hash_sha256_begin());
    const struct agent_usage *used = &conversation->usage;
    uint8_t hash[HASH_BYTES];
    char hex[HASH_HEX_BYTES + 1];

    for (uint32_t i = 0; i < conversation->messages_count; i++) {
        hash_sha256_add(state, conversation->messages[i]);
        hash_sha256_add(state, STR("\n"));
    }
    if (hash_sha256_end(state, hash) < 0)
        return err_no_memory(err);
    hash_hex(hash, sizeof hash, hex);
    buf_byte(out, '{');
    json_write_member_string(out, "agent", agent);
    buf_format(out, ",\"messages\":%u,\"sha256\":\"%s\",\"step\":%lld,\"calls\":%lld,"
               "\"input_tokens\":%lld,\"output_tokens\":%lld,\"cost\":%lld.%06lld,"
               "\"time_ms\":%lld", conversation->messages_count, hex,
               (long long)conversation->step, (long long)used->calls,
               (long long)used->input_tokens, (long long)used->output_tokens,
               (long long)(used->cost / 1000000000000), (long long)(used->cost / 1000000 % 1000000),
               (long long)used->time_ms);
    if (question.data) {
        buf_byte(out, ',');
        json_write_member_string(out, "question", question);
    }
    buf_byte(out, '}');
    return out->failed ? err_no_memory(err) : 0;
}

/* ---- what comes next ---- */

int64_t conversation_final(const struct conversation *conversation)
{
    for (uint32_t i = 0; i < conversation->calls_count; i++)
        if (str_is(conversation->calls[i].call.name, FINAL_ANSWER) &&
            !conversation->calls[i].has_result)
            return i;
    return -1;
}

enum conversation_next conversation_next(const struct conversation *conversation)
{
    bool is_final = false;

    for (uint32_t i = 0; i < conversation->calls_count; i++) {
        const struct pending_call *call = &conversation->calls[i];

        if (call->has_result)
            continue;
        if (!str_is(call->call.name, FINAL_ANSWER))
            return NEXT_TOOLS;
        is_final = true;
    }
    if (is_final)
        return NEXT_FINAL;
    if (conversation->text.data)
        return conversation->nudged ? NEXT_TEXT_ENDS : NEXT_NUDGE;
    return NEXT_MODEL;
}

int conversation_final_read(const struct tool_call *call, struct arena *arena, struct str *answer,
                            bool *finished, struct err *err)
{
    struct str arguments, done;

    if (json_check(call->arguments, &arguments, NULL) < 0 || json_kind(arguments) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "the arguments of " FINAL_ANSWER " are no JSON object");
    *answer = json_get(arguments, STR("answer"));
    done = json_get(arguments, STR("taskFinished"));
    if (!answer->data)
        return err_set(err, ERR_INVALID, FINAL_ANSWER " needs 'answer'");
    if (!done.data || (json_kind(done) != JSON_TRUE && json_kind(done) != JSON_FALSE))
        return err_set(err, ERR_INVALID, FINAL_ANSWER " needs 'taskFinished', true or false");
    *finished = json_kind(done) == JSON_TRUE;
    *answer = arena_str(arena, *answer);
    return answer->data ? 0 : err_no_memory(err);
}

/* ---- what people said ---- */

static int64_t amount_in(struct str object, const char *key)
{
    struct str value = json_get(object, str_of(key));
    double number;

    if (!value.data || !json_double(value, &number) || number <= 0 || number > 1e9)
        return 0;
    return (int64_t)(number * 1000000 + 0.5);
}

static int64_t duration_in(struct str object, const char *key, struct arena *arena)
{
    struct str value = json_get(object, str_of(key));
    int64_t ms = 0;

    if (!value.data || json_kind(value) != JSON_STRING ||
        !str_to_duration_ms(json_string(value, arena), &ms))
        return 0;
    return ms;
}

enum resume_decision conversation_resume(struct conversation *conversation, struct str resume)
{
    struct str budget, decision;
    int64_t event;

    if (!resume.data || json_kind(resume) != JSON_OBJECT)
        return RESUME_NONE;
    event = number_in(resume, "event");
    if (event <= conversation->resumed)
        return RESUME_NONE;
    conversation->resumed = event;
    budget = json_get(resume, STR("budget"));
    if (budget.data && json_kind(budget) == JSON_OBJECT) {
        struct agent_budget more = {number_in(budget, "calls"), number_in(budget, "tokens"),
                                    amount_in(budget, "cost"),
                                    duration_in(budget, "time", conversation->arena)};

        conversation->raised = budget_with(&conversation->raised, &more);
        conversation->warned = false;
    }
    decision = json_get(resume, STR("decision"));
    return str_is(decision, "\"retry\"")  ? RESUME_RETRY
           : str_is(decision, "\"skip\"") ? RESUME_SKIP
           : str_is(decision, "\"fail\"") ? RESUME_FAIL
                                          : RESUME_NONE;
}
