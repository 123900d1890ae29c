/* GET /v1/workflows/{id}: tasks that belong together, as a graph: all that carry this workflow_id,
 * or the task with this id, and from there on whatever depends on them, they depend on, they
 * spawned or were spawned by. Tasks are shown in short; clients ask for their payloads one by one.
 * It only reads. Loop thread, but for read_graph (a reader's). */
#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "base/json.h"
#include "core/queue_name.h"
#include "core/render.h"

#define NODES_MAX 1000
#define CHILDREN_CHUNK 100
#define EDGES_MAX 50000 /* looked at, from both ends: about a second, and more cannot be drawn */

struct graph {
    struct api_call *call;
    struct store_reader *reader;
    struct arena *scratch;
    struct uuid ids[NODES_MAX]; /* found, in this order; those before `next` are written */
    uint32_t count;
    uint32_t next;
    uint32_t max;
    uint32_t written;
    uint32_t edges;
    bool cut; /* there is more than max */
};

static void add(struct graph *graph, const struct uuid *id)
{
    if (uuid_is_nil(id))
        return;
    for (uint32_t i = 0; i < graph->count; i++) /* a thousand at most: half a million compares */
        if (uuid_eq(&graph->ids[i], id))
            return;
    if (graph->count == graph->max)
        graph->cut = true;
    else
        graph->ids[graph->count++] = *id;
}

/* All tasks of a filter, a page at a time. */
static int add_listed(struct graph *graph, struct task_filter *filter)
{
    struct task *tasks = NULL;
    uint32_t parts = graph->call->server->store->parts;
    uint32_t count;

    if (parts) {
        filter->before_keys = arena_alloc_array(graph->call->arena, parts,
                                                sizeof *filter->before_keys);
        if (!filter->before_keys)
            return call_no_memory(graph->call);
    }
    do {
        filter->limit = CHILDREN_CHUNK;
        TRY(api_tasks_read_chunk(graph->call, graph->reader, graph->scratch, filter, &tasks,
                                 &count));
        for (uint32_t i = 0; i < count; i++) {
            add(graph, &tasks[i].id);
            api_tasks_pass(filter, &tasks[i]);
        }
        arena_reset(graph->scratch);
    } while (count == filter->limit && !graph->cut);
    return 0;
}

static void write_node(struct graph *graph, const struct task *task,
                       const struct task_dependency *dependencies, uint32_t count)
{
    struct buf *out = &graph->call->out;

    buf_text(out, graph->written++ ? ",{" : "{");
    render_uuid(out, "id", &task->id);
    render_text(out, "name", task->spec.name);
    render_text(out, "type", task->spec.type);
    render_text(out, "queue", queue_name_plain(task->spec.queue));
    render_text(out, "status", str_of(status_word(task->status)));
    render_text(out, "state", task->state);
    render_int(out, "progress", task->progress);
    render_int(out, "version", task->version);
    render_text(out, "workflow_id", task->spec.workflow_id);
    render_uuid(out, "parent_id", &task->spec.origin.parent_id);
    render_time(out, "created_at", task->spec.created_at_us);
    render_time(out, "started_at", task->lease.started_at_us);
    render_time(out, "completed_at", task->completed_at_us);
    json_write_key(out, "depends_on");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        buf_text(out, i ? ",{" : "{");
        render_uuid(out, "task", &dependencies[i].task_id);
        render_text(out, "type", str_of(dependency_word(dependencies[i].kind)));
        buf_byte(out, '}');
    }
    buf_text(out, "]}");
}

/* One task: written, and its relatives found. A relative that was deleted is left out. */
static int visit(struct graph *graph, const struct uuid *id)
{
    const struct store_verbs *verbs = graph->call->server->store->verbs;
    struct err *err = &graph->call->err;
    struct task_dependency *up = NULL;
    struct task_dependency *down = NULL;
    struct task_filter children = {.namespace_name = call_namespace(graph->call),
                                   .parent_id = *id};
    uint32_t up_count = 0;
    uint32_t down_count = 0;
    struct task *task = NULL;

    TRY(verbs->read_task(graph->reader, id, graph->scratch, &task, err));
    if (!task || call_hides(graph->call, task->spec.namespace_name) ||
        call_hides_task(graph->call, task))
        return 0;
    TRY(verbs->read_dependencies(graph->reader, id, graph->scratch, &up, &up_count, err));
    TRY(verbs->read_dependents(graph->reader, id, graph->scratch, &down, &down_count, err));
    write_node(graph, task, up, up_count);
    add(graph, &task->spec.origin.parent_id);
    for (uint32_t i = 0; i < up_count; i++)
        add(graph, &up[i].task_id);
    for (uint32_t i = 0; i < down_count; i++)
        add(graph, &down[i].task_id);
    graph->edges += up_count + down_count;
    arena_reset(graph->scratch);
    return add_listed(graph, &children);
}

static int read_graph(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct graph *graph = call->ctx;
    struct task_filter of_workflow = {.namespace_name = call_namespace(call),
                                      .workflow_id = call->name};
    struct uuid id;

    graph->reader = reader;
    graph->scratch = scratch;
    buf_byte(&call->out, '{');
    render_text(&call->out, "id", call->name);
    buf_text(&call->out, ",\"items\":[");
    TRY(add_listed(graph, &of_workflow));
    if (graph->count == 0 && uuid_parse(call->name, &id))
        add(graph, &id);
    while (graph->next < graph->count && graph->edges < EDGES_MAX) {
        id = graph->ids[graph->next++];
        TRY(visit(graph, &id));
    }
    graph->cut |= graph->next < graph->count;
    if (graph->written == 0)
        return err_set(&call->err, ERR_NOT_FOUND, "no task has this workflow_id or id");
    buf_text(&call->out, "],");
    render_bool(&call->out, "cut", graph->cut);
    buf_byte(&call->out, '}');
    return 0;
}

int api_workflow_get(struct api_call *call)
{
    struct graph *graph = CALL_NEW(call, sizeof *graph);

    graph->call = call;
    TRY(call_limit(call, NODES_MAX, NODES_MAX, &graph->max));
    call_reads_long(call, true);
    return call_read(call, read_graph);
}
