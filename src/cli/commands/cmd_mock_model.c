/* perdura mock-model: a chat API that answers by a script, for trying out and testing agents. */
#include "cli/frame/command.h"
#include "cli/mock/mock_server.h"

#define SCRIPT_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define PORT 8089

static const struct flag flags[] = {
    {.name = "script", .type = FLAG_TEXT, .value = "FILE",
     .help = "what it answers, as JSON; - reads stdin"},
    {.name = "port", .type = FLAG_INT, .value = "N", .fallback = "8089", .min = 0, .max = 65535,
     .help = "port on 127.0.0.1; 0 = any free one, which is printed"},
    {0}};

static int run_mock_model(struct call *call)
{
    struct mock_script script = {.lines = NULL};
    struct str text;
    int rc;

    if (!call_given(call, "script"))
        return err_set(&call->err, ERR_USAGE, "give it a script: --script FILE");
    TRY(call_read_file(call, call_text(call, "script"), SCRIPT_BYTES_MAX, &text));
    rc = mock_script_read(&script, text, &call->err);
    if (rc == 0)
        rc = mock_server_run(&script, call_int(call, "port", PORT), call->out.file, &call->err);
    mock_script_deinit(&script);
    return rc;
}

const struct command command_mock_model = {
    .name = "mock-model",
    .summary = "Run a scripted language model, to try out agents",
    .details = "Serves an OpenAI-compatible chat API on 127.0.0.1. The script is "
               "{\"lines\":[…]}; the first line that matches a request answers it. A line "
               "matches by 'when', a text in the last message, 'turn', the number of earlier "
               "answers, and 'times', how often it may be used. It answers with 'text', "
               "'tools' ([{\"name\",\"arguments\"}]) or 'final', which calls finalAnswer "
               "('finished': false: more steps follow). Faults: 'status' with 'error' and "
               "'retry_after', 'delay_ms', 'cut', 'stall', 'raw' (any body), 'stream': false. "
               "'tokens' is [input, output]. With \"key\" beside the lines requests need this "
               "API key.",
    .example = "perdura mock-model --script script.json",
    .flags = flags,
    .run = run_mock_model};
