/* The part of GET /metrics about agents of this node. */
#include "core/agent/agent_figures.h"
#include "server/figures/metrics_int.h"
#include "server/server_int.h"

#define COST_UNIT 1e12 /* costs are trillionths */

static void write_calls(struct buf *out, const struct agent_figures *figures)
{
    static const char *const outcomes[AGENT_OUTCOMES] = {"answered", "limited", "failed",
                                                         "stopped"};

    for (int i = 0; i < AGENT_OUTCOMES; i++) {
        const struct metrics_label labels[] = {{"agent", str_of(figures->agent)},
                                               {"model", str_of(figures->model)},
                                               {"outcome", str_of(outcomes[i])},
                                               {NULL, STR_NONE}};

        if (figures->calls[i])
            metrics_sample(out, "agent_calls_total", labels, figures->calls[i]);
    }
}

static void write_tokens(struct buf *out, const struct agent_figures *figures)
{
    const int64_t tokens[] = {figures->usage.input_tokens, figures->usage.output_tokens};
    static const char *const kinds[] = {"input", "output"};

    for (int i = 0; i < 2; i++) {
        const struct metrics_label labels[] = {{"agent", str_of(figures->agent)},
                                               {"model", str_of(figures->model)},
                                               {"kind", str_of(kinds[i])},
                                               {NULL, STR_NONE}};

        metrics_sample(out, "agent_tokens_total", labels, tokens[i]);
    }
}

static void write_cost(struct buf *out, const struct agent_figures *figures)
{
    const struct metrics_label labels[] = {{"agent", str_of(figures->agent)},
                                           {"model", str_of(figures->model)},
                                           {NULL, STR_NONE}};

    metrics_sample_decimal(out, "agent_cost_total", labels,
                           (double)figures->usage.cost / COST_UNIT);
}

static void write_all(const struct agent_views *views, struct buf *out,
                      void (*write)(struct buf *out, const struct agent_figures *figures))
{
    struct agent_figures figures;

    for (uint32_t i = 0; views->view(views->ctx, i, &figures); i++)
        write(out, &figures);
}

void metrics_write_agents(struct api_call *call)
{
    const struct agent_views *views = call->server->shown.agents;
    struct agent_figures first;

    if (!views || !views->view(views->ctx, 0, &first))
        return;
    metrics_head(&call->out, "agent_calls_total", "counter",
                 "Calls of models by agents, by what came of them.");
    write_all(views, &call->out, write_calls);
    metrics_head(&call->out, "agent_tokens_total", "counter", "Tokens, as the models' APIs say.");
    write_all(views, &call->out, write_tokens);
    metrics_head(&call->out, "agent_cost_total", "counter",
                 "What these tokens cost, by the prices of the configuration.");
    write_all(views, &call->out, write_cost);
}
