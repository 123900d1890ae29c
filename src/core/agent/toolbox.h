/* The tools that a task's model may call, how a request lists them, whether a call fits. Pure. */
#ifndef CORE_AGENT_TOOLBOX_H
#define CORE_AGENT_TOOLBOX_H

#include "core/agent/conversation.h"

#define TOOLBOX_MAX 128

struct toolbox {
    const struct tool_rule *tools[TOOLBOX_MAX];
    uint32_t count;
};

/* Those of the agent and of the type, each once. */
void toolbox_fill(struct toolbox *box, const struct agent_settings *settings,
                  const struct agent_rule *agent, struct str type);

/* "tools":[…] of a request, with finalAnswer. */
void toolbox_write(const struct toolbox *box, struct buf *out);

/* The tool of a call, and its arguments as checked JSON. -ERR_INVALID: the sentence is for the
 * model. */
int toolbox_check(const struct toolbox *box, const struct tool_call *call,
                  const struct tool_rule **rule, struct str *arguments, struct err *err);

/* What a tool has written, as the model gets it: valid text of at most TOOL_OUTPUT_BYTES, with a
 * mark where it was cut. total: bytes it wrote. */
#define TOOL_OUTPUT_BYTES ((size_t)64 * 1024)
void tool_output_write(struct str output, uint64_t total, struct buf *out);

#endif
