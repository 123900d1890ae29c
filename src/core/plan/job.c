/* Decisions about jobs: the task of a run, overlap, gates, and cycles among jobs (F-H11). The graph
 * is searched breadth first over its sorted edges, without recursion: a chain may be as long as
 * there are jobs. Pure; any thread. */
#include "core/plan/job.h"

#include "core/service/service_url.h"
#include "core/spec/spec_int.h"

/* ---- what a run is ---- */

static bool says(int64_t value_of_handler)
{
    return value_of_handler >= 0;
}

void category_fill(const struct category *category, const struct category_rules *rules,
                   const struct settings *settings, struct task_input *input)
{
    const struct handler_rule *handler =
        settings ? settings_handler(settings, input->spec.type) : NULL;
    struct task_spec *spec = &input->spec;

    spec->category_id = category->id;
    if (!input->has_timeout && !(handler && says(handler->timeout_ms)))
        spec->timeout_ms = category->default_timeout_s * 1000;
    if (!input->has_max_retries && !(handler && says(handler->max_retries)))
        spec->retry.max_retries = category->default_max_retries;
    if (!input->has_priority && !input->ruled_priority)
        input->priority = category->default_priority;
    if (!input->has_queue && rules->queue.data && str_is(spec->queue, TASK_DEFAULT_QUEUE))
        spec->queue = rules->queue;
}

static void take_values(const struct job *job, struct task_input *input)
{
    struct task_spec *spec = &input->spec;

    input->has_priority = job->has_priority;
    if (job->has_priority)
        input->priority = job->priority;
    input->has_timeout = job->has_timeout;
    if (job->has_timeout)
        spec->timeout_ms = job->timeout_s * 1000;
    input->has_max_retries = job->has_max_retries;
    if (job->has_max_retries)
        spec->retry.max_retries = job->max_retries;
    input->has_queue = job->queue.data != NULL;
    if (job->queue.data)
        spec->queue = job->queue;
}

/* The category's service is for jobs that say what to call there: others may have handlers. */
static struct str service_of(const struct job *job, const struct category_rules *rules)
{
    return job->target_service.data || !job->target_method.data ? job->target_service
                                                                : rules->service;
}

/* A target needs no handler: its type says whom to call. */
static int take_type(const struct job *job, const struct category_rules *rules,
                     struct arena *arena, struct str *type, struct err *err)
{
    struct str service = service_of(job, rules);

    if (job->target_method.data && !service.data)
        return err_set_field(err, ERR_INVALID, "target_method",
                             "\"target_method\" needs a \"target_service\" that has it, or a "
                             "category whose configuration names one as \"service\"");
    *type = service.data ? service_type(service, job->target_method, arena)
            : job->task_type.data ? job->task_type : job->name;
    return type->data ? 0 : err_no_memory(err);
}

int job_task_input(const struct job *job, const struct category *category,
                   const struct schedule *schedule, struct str payload,
                   const struct settings *settings, struct arena *arena, struct task_input *input,
                   struct err *err)
{
    struct task_spec *spec = &input->spec;
    struct category_rules rules;

    spec_init(input);
    spec->namespace_name = job->namespace_name;
    TRY(category_rules_read(category->configuration, arena, &rules, err));
    TRY(take_type(job, &rules, arena, &spec->type, err));
    spec->name = job->name;
    spec->payload = payload.data ? payload : job->payload;
    spec->callback.url = job->callback_url;
    spec->callback.events = job->callback_events;
    spec->origin.job_id = job->id;
    if (schedule) {
        spec->origin.schedule_id = schedule->id;
        if (schedule->callback_url.data)
            spec->callback.url = schedule->callback_url;
        if (schedule->callback_events.data)
            spec->callback.events = schedule->callback_events;
    }
    take_values(job, input);
    input->no_hash = true;
    TRY(spec_finish(input, settings, arena, err));
    category_fill(category, &rules, settings, input);
    return 0;
}

/* Who said it, in the order they are asked. */
static const char *says_who(bool job, bool between, const char *between_word)
{
    return job ? "job" : between ? between_word : "category";
}

int job_values_read(const struct job *job, const struct category *category,
                    const struct settings *settings, struct arena *arena,
                    struct job_values *values, struct err *err)
{
    struct job bare = *job;
    struct category_rules rules;
    struct task_input input;
    const struct handler_rule *handler;

    TRY(category_rules_read(category->configuration, arena, &rules, err));
    bare.callback_url = bare.payload = STR_NONE; /* no business of theirs */
    TRY(job_task_input(&bare, category, NULL, STR_NONE, settings, arena, &input, err));
    handler = settings ? settings_handler(settings, input.spec.type) : NULL;
    *values = (struct job_values){
        .queue = input.spec.queue,
        .target_service = service_of(job, &rules),
        .priority = input.priority,
        .max_retries = input.spec.retry.max_retries,
        .timeout_ms = input.spec.timeout_ms,
        .queue_from = says_who(job->queue.data, str_is(input.spec.queue, TASK_DEFAULT_QUEUE),
                               "default"),
        .priority_from = says_who(job->has_priority, input.ruled_priority, "rule"),
        .max_retries_from = says_who(job->has_max_retries,
                                     handler && says(handler->max_retries), "handler"),
        .timeout_from = says_who(job->has_timeout, handler && says(handler->timeout_ms),
                                 "handler")};
    return 0;
}

/* ---- whether it may run ---- */

enum overlap_move overlap_decide(enum overlap overlap, uint32_t open_runs)
{
    static const enum overlap_move moves[OVERLAP_COUNT] = {
        [OVERLAP_ALLOW] = OVERLAP_RUN,
        [OVERLAP_SKIP] = OVERLAP_PASS,
        [OVERLAP_QUEUE] = OVERLAP_WAIT,
        [OVERLAP_REPLACE] = OVERLAP_CANCEL_OPEN,
    };

    return open_runs ? moves[overlap] : OVERLAP_RUN;
}

bool job_gate_open(const struct job_dependency *gate, const struct job *job, uint32_t open_runs,
                   int64_t now_us)
{
    if (open_runs || job->last_status == STATUS_NONE)
        return false;
    if (!dependency_met(gate->kind, job->last_status))
        return false;
    return !gate->within_ms || now_us - job->last_ended_at_us <= gate->within_ms * 1000;
}

/* ---- who depends on whom ---- */

static int compare_edges(const void *left, const void *right)
{
    const struct job_dependency *a = *(const struct job_dependency *const *)left;
    const struct job_dependency *b = *(const struct job_dependency *const *)right;

    return memcmp(&a->job_id, &b->job_id, sizeof a->job_id);
}

/* Edges sorted by who depends; a step is an edge on the way, known by its place. */
struct search {
    const struct job_dependency **edges;
    uint32_t count;
    uint32_t *came_from; /* the step before; itself = the first */
    uint32_t *steps;     /* in the order they were reached */
    uint32_t reached;
    bool *left;          /* by the place of a job's first edge: its edges were reached */
};

static int search_init(struct search *search, const struct job_dependency *edges, uint32_t count,
                       struct arena *arena, struct err *err)
{
    *search = (struct search){.count = count};
    search->edges = arena_alloc_array(arena, count, sizeof *search->edges);
    search->came_from = arena_alloc_array(arena, count, sizeof *search->came_from);
    search->steps = arena_alloc_array(arena, count, sizeof *search->steps);
    search->left = arena_alloc_array(arena, count, sizeof *search->left);
    if (!search->edges || !search->came_from || !search->steps || !search->left)
        return spec_no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        search->edges[i] = &edges[i];
    if (count)
        qsort(search->edges, count, sizeof *search->edges, compare_edges);
    return 0;
}

/* The place of the first edge of a job, or count when it has none. */
static uint32_t first_edge(const struct search *search, const struct uuid *job_id)
{
    uint32_t low = 0, high = search->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (memcmp(&search->edges[middle]->job_id, job_id, sizeof *job_id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < search->count && uuid_eq(&search->edges[low]->job_id, job_id) ? low
                                                                               : search->count;
}

/* Reaches what a job depends on, once. from is the step that led to it; count = none did. */
static void leave_job(struct search *search, const struct uuid *job_id, uint32_t from)
{
    uint32_t at = first_edge(search, job_id);

    if (at == search->count || search->left[at])
        return;
    search->left[at] = true;
    for (; at < search->count && uuid_eq(&search->edges[at]->job_id, job_id); at++) {
        search->came_from[at] = from == search->count ? at : from;
        search->steps[search->reached++] = at;
    }
}

/* From job_id over the new edge and the steps up to the last one, back to job_id. */
static int tell_path(const struct search *search, uint32_t last, const struct uuid *job_id,
                     struct arena *arena, struct uuid **path, uint32_t *path_count,
                     struct err *err)
{
    uint32_t steps = 1;

    for (uint32_t at = last; search->came_from[at] != at; at = search->came_from[at])
        steps++;
    *path_count = steps + 2;
    *path = arena_alloc_array(arena, *path_count, sizeof **path);
    if (!*path)
        return spec_no_memory(err);
    (*path)[0] = *job_id;
    for (uint32_t at = last;; at = search->came_from[at]) {
        (*path)[steps + 1] = search->edges[at]->depends_on_job_id;
        (*path)[steps--] = search->edges[at]->job_id;
        if (search->came_from[at] == at)
            return 1;
    }
}

int job_graph_cycle(const struct job_dependency *edges, uint32_t count, const struct uuid *job_id,
                    const struct uuid *depends_on_job_id, struct arena *arena, struct uuid **path,
                    uint32_t *path_count, struct err *err)
{
    struct search search;
    int rc;

    *path = NULL;
    *path_count = 0;
    if (uuid_eq(job_id, depends_on_job_id)) {
        *path = arena_alloc_array(arena, 2, sizeof **path);
        if (!*path)
            return spec_no_memory(err);
        (*path)[0] = (*path)[1] = *job_id;
        *path_count = 2;
        return 1;
    }
    rc = search_init(&search, edges, count, arena, err);
    if (rc < 0)
        return rc;
    leave_job(&search, depends_on_job_id, count);
    for (uint32_t i = 0; i < search.reached; i++) {
        uint32_t at = search.steps[i];

        if (uuid_eq(&search.edges[at]->depends_on_job_id, job_id))
            return tell_path(&search, at, job_id, arena, path, path_count, err);
        leave_job(&search, &search.edges[at]->depends_on_job_id, at);
    }
    return 0;
}
