/* Tools of tasks. */
#include "core/agent/toolbox.h"

#include "core/agent/schema.h"

static void add(struct toolbox *box, const struct tool_rule *rule)
{
    for (uint32_t i = 0; i < box->count; i++)
        if (box->tools[i] == rule)
            return;
    if (rule && box->count < TOOLBOX_MAX)
        box->tools[box->count++] = rule;
}

void toolbox_fill(struct toolbox *box, const struct agent_settings *settings,
                  const struct agent_rule *agent, struct str type)
{
    const struct agent_type *entry = agent_type_of(agent, type);

    box->count = 0;
    for (uint32_t i = 0; i < agent->tools_count; i++)
        add(box, agent_tool(settings, agent->tools[i]));
    for (uint32_t i = 0; entry && i < entry->tools_count; i++)
        add(box, agent_tool(settings, entry->tools[i]));
}

static void write_tool(struct buf *out, struct str name, struct str description,
                       struct str parameters)
{
    buf_text(out, "{\"type\":\"function\",\"function\":{");
    json_write_member_string(out, "name", name);
    buf_byte(out, ',');
    json_write_member_string(out, "description", description.data ? description : STR(""));
    buf_text(out, ",\"parameters\":");
    buf_str(out, parameters);
    buf_text(out, "}}");
}

void toolbox_write(const struct toolbox *box, struct buf *out)
{
    buf_text(out, "\"tools\":[");
    for (uint32_t i = 0; i < box->count; i++) {
        const struct tool_rule *rule = box->tools[i];

        write_tool(out, rule->name, rule->description,
                   rule->parameters.data ? rule->parameters
                                         : STR("{\"type\":\"object\",\"properties\":{}}"));
        buf_byte(out, ',');
    }
    write_tool(out, STR(FINAL_ANSWER),
               STR("Ends this step. Call it with your answer. taskFinished is true when the task "
                   "is done and false when more steps are needed."),
               STR("{\"type\":\"object\",\"properties\":{\"answer\":{\"type\":\"string\","
                   "\"description\":\"the answer, or what was done so far\"},\"taskFinished\":"
                   "{\"type\":\"boolean\"}},\"required\":[\"answer\",\"taskFinished\"]}"));
    buf_byte(out, ']');
}

int toolbox_check(const struct toolbox *box, const struct tool_call *call,
                  const struct tool_rule **rule, struct str *arguments, struct err *err)
{
    struct err why = {0};

    *rule = NULL;
    for (uint32_t i = 0; i < box->count && !*rule; i++)
        if (str_eq(box->tools[i]->name, call->name))
            *rule = box->tools[i];
    if (!*rule)
        return err_set(err, ERR_INVALID, "there is no tool '" STR_FMT "'",
                       STR_ARG(str_cut(call->name, 64)));
    if (json_check(call->arguments.len ? call->arguments : STR("{}"), arguments, &why) < 0)
        return err_set(err, ERR_INVALID, "the arguments are no valid JSON: %s", why.text);
    if (json_kind(*arguments) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "the arguments must be a JSON object");
    return (*rule)->parameters.data ? schema_validate((*rule)->parameters, *arguments, err) : 0;
}

/* Control characters other than tabs and line ends go; what is no UTF-8 becomes U+FFFD. */
void tool_output_write(struct str output, uint64_t total, struct buf *out)
{
    size_t at = 0, start = out->len;

    while (at < output.len && out->len - start < TOOL_OUTPUT_BYTES) {
        size_t step = str_utf8_step(output.data + at, output.len - at);
        unsigned char byte = (unsigned char)output.data[at];

        if (step == 0)
            buf_text(out, "\xEF\xBF\xBD");
        else if (byte >= ' ' ? byte != 127 : byte == '\t' || byte == '\n')
            buf_append(out, output.data + at, step);
        at += step ? step : 1;
    }
    if (at < total)
        buf_format(out, "\n[output cut: %llu of %llu bytes are here]", (unsigned long long)at,
                   (unsigned long long)total);
}
