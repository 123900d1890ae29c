/* The table of routes and how a path finds its way into it. Help, metrics, 405 and the check of
 * openapi.json all come from this table. It is searched from its start: some 80 rows of short
 * literals cost less than a request's head; those that are asked for most stand first.
 * Pure: the handlers are only named. */
#include "server/router.h"

#include "net/url.h"
#include "server/api.h"
#include "server/catalog_call.h"
#include "server/routes/api_tasks.h"

#define SEGMENTS_MAX 8

#define LIST "limit", "cursor"
#define TASK_FILTERS                                                                              \
    "status", "type", "queue", "tag", "user_id", "external_id", "context_key", "job_id",          \
        "schedule_id", "workflow_id", "parent_id", "correlation_id", "created_after",             \
        "created_before"

const struct route routes[] = {
    {HTTP_POST, "/v1/tasks", api_tasks_enqueue, "Enqueue a task or an array of tasks", {0}, 0},
    {HTTP_GET, "/v1/tasks", api_tasks_list, "List tasks, newest first",
     {LIST, TASK_FILTERS, "order", "q"}, 0},
    {HTTP_DELETE, "/v1/tasks", api_tasks_purge, "Remove all ended tasks of a user", {"user_id"}, 0},
    {HTTP_POST, "/v1/tasks:cancel", api_tasks_control, "Cancel all matching tasks",
     {LIST, TASK_FILTERS, "dry_run", "all"}, CONTROL_CANCEL},
    {HTTP_POST, "/v1/tasks:retry", api_tasks_control, "Retry all matching tasks",
     {LIST, TASK_FILTERS, "dry_run", "all"}, CONTROL_RETRY},
    {HTTP_GET, "/v1/workflows/{id}", api_workflow_get,
     "Tasks that belong together, with their dependencies", {"limit"}, 0},
    {HTTP_GET, "/v1/tasks/{id}", api_task_get, "One task with its result, or as it was", {"at"}, 0},
    {HTTP_PATCH, "/v1/tasks/{id}", api_task_control, "Change what people say about a task",
     {0}, CONTROL_UPDATE},
    {HTTP_DELETE, "/v1/tasks/{id}", api_task_control,
     "Delete a task with its events, logs and checkpoints", {0}, CONTROL_DELETE},
    {HTTP_POST, "/v1/tasks/{id}:cancel", api_task_control, "Cancel a task", {0}, CONTROL_CANCEL},
    {HTTP_POST, "/v1/tasks/{id}:retry", api_task_control, "Run an ended or orphaned task again",
     {0}, CONTROL_RETRY},
    {HTTP_POST, "/v1/tasks/{id}:pause", api_task_control, "Pause a task", {0}, CONTROL_PAUSE},
    {HTTP_POST, "/v1/tasks/{id}:resume", api_task_control, "Resume a paused task",
     {0}, CONTROL_RESUME},
    {HTTP_POST, "/v1/tasks/{id}:prioritize", api_task_control, "Change the priority of a task",
     {0}, CONTROL_PRIORITIZE},
    {HTTP_POST, "/v1/tasks/{id}:recover", api_task_control, "Recover an orphaned or partial task",
     {0}, CONTROL_RECOVER},
    {HTTP_POST, "/v1/tasks/{id}:fork", api_task_fork,
     "A new task that continues from a checkpoint of this one", {0}, 0},
    {HTTP_GET, "/v1/tasks/{id}/events", api_task_part, "Events of a task, newest first",
     {LIST}, TASK_EVENTS},
    {HTTP_GET, "/v1/tasks/{id}/executions", api_task_part, "Executions of a task, newest first",
     {LIST}, TASK_EXECUTIONS},
    {HTTP_GET, "/v1/tasks/{id}/checkpoints", api_task_part, "Checkpoints of a task, newest first",
     {LIST}, TASK_CHECKPOINTS},
    {HTTP_GET, "/v1/tasks/{id}/logs", api_task_logs, "Log lines of a task, oldest first",
     {LIST, "level", "after", "before", "q", "context"}, 0},
    {HTTP_GET, "/v1/tasks/{id}/result", api_task_result, "The result of a task", {0}, 0},
    {HTTP_GET, "/v1/tasks/{id}/why", api_task_why, "Why a task does not run, in one sentence",
     {0}, 0},
    {HTTP_GET, "/v1/tasks/{id}/wait", api_task_wait, "Wait until a task has ended",
     {"timeout_ms"}, 0},
    {HTTP_POST, "/v1/workers", api_workers_register, "Register a worker", {0}, 0},
    {HTTP_GET, "/v1/workers", api_workers_list, "List workers", {LIST}, 0},
    {HTTP_GET, "/v1/workers/{id}", api_worker_get, "One worker", {0}, 0},
    {HTTP_DELETE, "/v1/workers/{id}", api_worker_leave, "Leave; its tasks are released", {0}, 0},
    {HTTP_POST, "/v1/workers/{id}:heartbeat", api_worker_heartbeat, "Renew a worker's leases",
     {0}, 0},
    {HTTP_POST, "/v1/workers/{id}:claim", api_worker_claim,
     "Claim tasks; waits for some if asked to", {0}, 0},
    {HTTP_POST, "/v1/workers/{id}:report", api_worker_report, "Report on tasks", {0}, 0},
    {HTTP_GET, "/v1/queues", api_queues_list, "List queues", {LIST}, 0},
    {HTTP_GET, "/v1/queues/{name}", api_queue_get, "One queue", {0}, 0},
    {HTTP_PATCH, "/v1/queues/{name}", api_queue_change, "Change limits and order of a queue",
     {0}, QUEUE_CHANGE},
    {HTTP_DELETE, "/v1/queues/{name}", api_queue_change, "Delete a queue that holds no task",
     {0}, QUEUE_REMOVE},
    {HTTP_POST, "/v1/queues/{name}:pause", api_queue_change,
     "Stop handing out the tasks of a queue", {0}, QUEUE_PAUSE},
    {HTTP_POST, "/v1/queues/{name}:resume", api_queue_change, "Hand out the tasks of a queue again",
     {0}, QUEUE_RESUME},
    {HTTP_GET, "/v1/categories", api_plan_list, "List categories",
     {LIST, "name", "is_active"}, CATALOG_CATEGORY},
    {HTTP_POST, "/v1/categories", api_plan_create, "Make a category", {0}, CATALOG_CATEGORY},
    {HTTP_GET, "/v1/categories/{id}", api_plan_get, "One category", {0}, CATALOG_CATEGORY},
    {HTTP_PATCH, "/v1/categories/{id}", api_plan_update, "Change a category",
     {0}, CATALOG_CATEGORY},
    {HTTP_DELETE, "/v1/categories/{id}", api_plan_delete, "Delete a category that no job uses",
     {0}, CATALOG_CATEGORY},
    {HTTP_GET, "/v1/jobs", api_plan_list, "List jobs, newest first",
     {LIST, "name", "category", "is_active", "with_deleted"}, CATALOG_JOB},
    {HTTP_POST, "/v1/jobs", api_plan_create, "Make a job", {0}, CATALOG_JOB},
    {HTTP_GET, "/v1/jobs/{id}", api_plan_get, "One job with the values in force",
     {"with_deleted"}, CATALOG_JOB},
    {HTTP_PATCH, "/v1/jobs/{id}", api_plan_update, "Change a job", {0}, CATALOG_JOB},
    {HTTP_DELETE, "/v1/jobs/{id}", api_plan_delete, "Delete a job with its schedules",
     {0}, CATALOG_JOB},
    {HTTP_POST, "/v1/jobs/{id}:run", api_plan_run, "Run a job now", {0}, CATALOG_JOB},
    {HTTP_GET, "/v1/jobs/{id}/schedules", api_plan_list_of_job, "List the schedules of a job",
     {LIST, "schedule_type", "is_active", "has_error", "next_before"}, CATALOG_SCHEDULE},
    {HTTP_POST, "/v1/jobs/{id}/schedules", api_plan_create_of_job, "Make a schedule of a job",
     {0}, CATALOG_SCHEDULE},
    {HTTP_GET, "/v1/jobs/{id}/dependencies", api_plan_list_of_job,
     "List what a job waits for or is started by", {LIST, "side"}, CATALOG_DEPENDENCY},
    {HTTP_POST, "/v1/jobs/{id}/dependencies", api_plan_create_of_job,
     "Make a job depend on another", {0}, CATALOG_DEPENDENCY},
    {HTTP_DELETE, "/v1/jobs/{id}/dependencies/{dependency_id}", api_dependency_delete,
     "Delete a dependency of a job", {0}, CATALOG_DEPENDENCY},
    {HTTP_GET, "/v1/jobs/{id}/stats", api_job_stats, "How the runs of a job went",
     {"since", "with_deleted"}, CATALOG_JOB},
    {HTTP_GET, "/v1/schedules", api_plan_list, "List schedules, newest first",
     {LIST, "job_id", "schedule_type", "is_active", "has_error", "next_before"}, CATALOG_SCHEDULE},
    {HTTP_POST, "/v1/schedules", api_plan_create, "Make a schedule", {0}, CATALOG_SCHEDULE},
    {HTTP_POST, "/v1/schedules:preview", api_plan_preview,
     "When a schedule would fire, without saving it", {0}, CATALOG_SCHEDULE},
    {HTTP_GET, "/v1/schedules/{id}", api_plan_get, "One schedule", {0}, CATALOG_SCHEDULE},
    {HTTP_PATCH, "/v1/schedules/{id}", api_plan_update, "Change a schedule", {0}, CATALOG_SCHEDULE},
    {HTTP_DELETE, "/v1/schedules/{id}", api_plan_delete, "Delete a schedule",
     {0}, CATALOG_SCHEDULE},
    {HTTP_POST, "/v1/schedules/{id}:pause", api_plan_pause, "Pause a schedule",
     {0}, CATALOG_SCHEDULE},
    {HTTP_POST, "/v1/schedules/{id}:resume", api_plan_resume, "Resume a schedule",
     {0}, CATALOG_SCHEDULE},
    {HTTP_POST, "/v1/schedules/{id}:run", api_plan_run, "Run the job of a schedule now",
     {0}, CATALOG_SCHEDULE},
    {HTTP_GET, "/v1/schedules/{id}/upcoming", api_plan_upcoming, "When a schedule fires next",
     {"count", "from"}, CATALOG_SCHEDULE},
    {HTTP_GET, "/v1/recurring", api_plan_list, "List recurring patterns, newest first",
     {LIST, "name", "template_job_id", "is_active", "has_error", "next_before"}, CATALOG_RECURRING},
    {HTTP_POST, "/v1/recurring", api_plan_create, "Make a recurring pattern",
     {0}, CATALOG_RECURRING},
    {HTTP_POST, "/v1/recurring:preview", api_plan_preview,
     "When a pattern would fire, without saving it", {"count", "from"}, CATALOG_RECURRING},
    {HTTP_GET, "/v1/recurring/{id}", api_plan_get, "One recurring pattern", {0}, CATALOG_RECURRING},
    {HTTP_PATCH, "/v1/recurring/{id}", api_plan_update, "Change a recurring pattern",
     {0}, CATALOG_RECURRING},
    {HTTP_DELETE, "/v1/recurring/{id}", api_plan_delete, "Delete a recurring pattern",
     {0}, CATALOG_RECURRING},
    {HTTP_POST, "/v1/recurring/{id}:pause", api_plan_pause, "Pause a pattern",
     {0}, CATALOG_RECURRING},
    {HTTP_POST, "/v1/recurring/{id}:resume", api_plan_resume, "Resume a pattern",
     {0}, CATALOG_RECURRING},
    {HTTP_POST, "/v1/recurring/{id}:run", api_plan_run, "Run the job of a pattern now",
     {0}, CATALOG_RECURRING},
    {HTTP_GET, "/v1/recurring/{id}/upcoming", api_plan_upcoming, "When a pattern fires next",
     {"count", "from"}, CATALOG_RECURRING},
    {HTTP_GET, "/v1/executions", api_executions_list, "List executions, newest first",
     {LIST, "job_id", "schedule_id", "status", "after", "before"}, 0},
    {HTTP_GET, "/v1/executions/{id}", api_execution_get, "One execution", {0}, 0},
    {HTTP_GET, "/v1/executions/{id}/logs", api_execution_logs,
     "Log lines of an execution, oldest first", {LIST, "level", "after", "before", "q", "context"},
      0},
    {HTTP_GET, "/v1/forecast", api_forecast, "What will fire, and when",
     {"from", "to", "tz", "limit", "job", "fold"}, 0},
    {HTTP_GET, "/v1/recovery", api_recovery_list, "The recovery queue, newest first",
     {LIST, "status", "method", "task_id"}, 0},
    {HTTP_POST, "/v1/recovery", api_recovery_put, "Recover a task", {0}, 0},
    {HTTP_GET, "/v1/recovery/{id}", api_recovery_get, "One entry of the recovery queue", {0}, 0},
    {HTTP_GET, "/v1/recovery/candidates", api_recovery_candidates,
     "Tasks that can be recovered, the most important first", {LIST, "auto_recovery"}, 0},
    {HTTP_POST, "/v1/recovery/validate", api_recovery_validate,
     "Whether a task can be recovered, and why not", {0}, 0},
    {HTTP_GET, "/v1/stats", api_stats, "Counters of the whole server", {0}, 0},
    {HTTP_GET, "/v1/stats/history", api_stats_history, "What the queues did in the last hours",
     {"window", "open"}, 0},
    {HTTP_GET, "/v1/services", api_services, "Target services and their health", {LIST}, 0},
    {HTTP_GET, "/v1/stream", api_stream, "Changes of tasks as server-sent events",
     {"queue", "type", "task_id", "stats"}, 0},
    {HTTP_GET, "/v1/backup", api_backup_place, "Where backups go, and what is copied", {0}, 0},
    {HTTP_POST, "/v1/backup", api_backup, "Write a backup of the store into backup_dir", {0}, 0},
    {HTTP_GET, "/metrics", api_metrics, "Metrics for Prometheus", {0}, 0},
    {HTTP_GET, "/healthz", api_healthz, "Is the process alive", {0}, 0},
    {HTTP_GET, "/readyz", api_readyz, "Can it take work", {0}, 0},
    {HTTP_GET, "/openapi.json", api_openapi, "This description", {0}, 0},
    {HTTP_GET, "/", api_index, "The dashboard", {0}, 0},
    {HTTP_GET, "/assets/{name}", api_asset, "A file of the dashboard", {0}, 0},
    {HTTP_OTHER, NULL, NULL, NULL, {0}, 0},
};

uint32_t routes_count(void)
{
    _Static_assert(sizeof routes / sizeof routes[0] - 1 <= ROUTES_MAX, "raise ROUTES_MAX");
    return sizeof routes / sizeof routes[0] - 1;
}

const char *router_method_word(enum http_method method)
{
    static const char *const words[] = {
        [HTTP_OTHER] = "OTHER", [HTTP_GET] = "GET",   [HTTP_POST] = "POST",
        [HTTP_PATCH] = "PATCH", [HTTP_PUT] = "PUT",   [HTTP_DELETE] = "DELETE",
        [HTTP_HEAD] = "HEAD",   [HTTP_OPTIONS] = "OPTIONS"};

    return words[method];
}

enum match { MATCH_NONE, MATCH_NAME, MATCH_PLAIN, MATCH_VERB }; /* by the last segment */

/* One segment against one of the pattern. *name is what the braces stand for, still raw. */
static enum match match_segment(struct str pattern, struct str segment, struct str *name)
{
    const char *close;
    struct str suffix;

    if (pattern.len == 0 || pattern.data[0] != '{')
        return str_eq(pattern, segment) ? MATCH_PLAIN : MATCH_NONE;
    close = memchr(pattern.data, '}', pattern.len);
    ASSERT(close);
    suffix = str_span(close + 1, pattern.len - (size_t)(close + 1 - pattern.data));
    if (segment.len <= suffix.len ||
        memcmp(segment.data + segment.len - suffix.len, suffix.data, suffix.len) != 0)
        return MATCH_NONE;
    *name = str_span(segment.data, segment.len - suffix.len);
    return suffix.len ? MATCH_VERB : MATCH_NAME;
}

static enum match match_path(const char *pattern, const struct str *segments, uint32_t count,
                             struct str names[ROUTE_NAMES_MAX])
{
    struct str rest = str_of(pattern);
    struct str piece;
    enum match last = MATCH_NONE;
    uint32_t i = 0;
    uint32_t named = 0;

    for (; url_next_segment(&rest, &piece); i++) {
        struct str name = STR_NONE;

        last = i < count ? match_segment(piece, segments[i], &name) : MATCH_NONE;
        if (last == MATCH_NONE)
            return MATCH_NONE;
        ASSERT(!name.data || named < ROUTE_NAMES_MAX);
        if (name.data)
            names[named++] = name;
    }
    return i == count ? last : MATCH_NONE;
}

static void add_allowed(char allow[ROUTER_ALLOW_BYTES], enum http_method method)
{
    size_t len = strlen(allow);

    snprintf(allow + len, ROUTER_ALLOW_BYTES - len, "%s%s%s", len ? ", " : "",
             router_method_word(method), method == HTTP_GET ? ", HEAD" : "");
}

static bool split(struct str path, struct str segments[SEGMENTS_MAX], uint32_t *count)
{
    *count = 0;
    while (*count < SEGMENTS_MAX && url_next_segment(&path, &segments[*count]))
        (*count)++;
    return *count < SEGMENTS_MAX;
}

/* What tells most rows apart at a glance: the letter behind "/v1/". */
static bool may_match(const char *pattern, struct str path)
{
    return path.len < sizeof "/v1/" || strncmp(pattern, "/v1/", sizeof "/v1/" - 1) != 0 ||
           pattern[sizeof "/v1/" - 1] == path.data[sizeof "/v1/" - 1];
}

static bool method_fits(enum http_method method, enum http_method of_route)
{
    return method == of_route || (method == HTTP_HEAD && of_route == HTTP_GET);
}

/* An unknown verb is an unknown path, not a wrong method on a name with a colon. */
static bool looks_like_verb(enum http_method method, struct str last)
{
    return method == HTTP_POST && memchr(last.data, ':', last.len) != NULL;
}

static int decode_names(const struct str raw[ROUTE_NAMES_MAX], struct arena *arena,
                        struct str names[ROUTE_NAMES_MAX], struct err *err)
{
    for (int i = 0; i < ROUTE_NAMES_MAX && raw[i].data; i++)
        TRY(url_decode_segment(raw[i], arena, &names[i], err));
    return 0;
}

int router_find(enum http_method method, struct str path, struct arena *arena,
                const struct route **route, struct str names[ROUTE_NAMES_MAX],
                char allow[ROUTER_ALLOW_BYTES], struct err *err)
{
    struct str segments[SEGMENTS_MAX];
    struct str raw[ROUTE_NAMES_MAX] = {STR_NONE};
    enum match best = MATCH_NONE;
    uint32_t count;

    *route = NULL;
    memset(names, 0, ROUTE_NAMES_MAX * sizeof *names);
    allow[0] = '\0';
    if (!split(path, segments, &count))
        count = 0;
    for (const struct route *at = routes; at->pattern && count; at++) {
        struct str found[ROUTE_NAMES_MAX] = {STR_NONE};
        enum match match = may_match(at->pattern, path)
                               ? match_path(at->pattern, segments, count, found) : MATCH_NONE;

        if (match == MATCH_NONE || match < best)
            continue;
        if (match > best) { /* a word or a verb beats a name that looks like it */
            best = match;
            *route = NULL;
            allow[0] = '\0';
        }
        add_allowed(allow, at->method);
        if (method_fits(method, at->method)) {
            *route = at;
            memcpy(raw, found, sizeof raw);
        }
    }
    if (*route)
        return decode_names(raw, arena, names, err);
    if (best == MATCH_NONE || (best != MATCH_VERB && looks_like_verb(method, segments[count - 1])))
        return err_set(err, ERR_NOT_FOUND, "there is nothing at this path; see /openapi.json");
    return err_set(err, ERR_METHOD, "this path does not take %s; it takes %s",
                   router_method_word(method), allow);
}

static int parameter_index(const struct route *route, struct str name)
{
    for (int i = 0; i < ROUTE_PARAMETERS_MAX && route->parameters[i]; i++)
        if (str_is(name, route->parameters[i]))
            return i;
    return -1;
}

int router_query(const struct route *route, struct str query, struct arena *arena,
                 struct str values[ROUTE_PARAMETERS_MAX], struct err *err)
{
    struct url_query it = url_query_of(query);
    struct str name, value;
    char field[sizeof err->field];
    int rc;

    while ((rc = url_query_next(&it, arena, &name, &value, err)) > 0) {
        int i = parameter_index(route, name);

        snprintf(field, sizeof field, STR_FMT, STR_ARG(name));
        if (i < 0)
            return err_set_field(err, ERR_INVALID, field, "there is no parameter '%s' here",
                                 field);
        if (values[i].data)
            return err_set_field(err, ERR_INVALID, field, "the parameter '%s' is given twice",
                                 field);
        /* "queue=" would mean all queues, and a name was meant. Clients begin with "cursor=". */
        if (str_empty(value) && !str_is(name, "cursor"))
            return err_set_field(err, ERR_INVALID, field,
                                 "'%s' is empty; leave it out if it does not matter", field);
        values[i] = value.data ? value : STR("");
    }
    return rc;
}
