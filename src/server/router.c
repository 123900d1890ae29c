/* The table of routes and how a path finds its way into it. Help, metrics, 405 and the check of
 * openapi.json all come from this table. It is searched from its start: some 80 rows of short
 * literals cost less than a request's head; those that are asked for most stand first.
 * Pure: the handlers are only named. */
#include "server/router.h"

#include "net/url.h"
#include "server/api.h"
#include "server/catalog_call.h"
#include "server/routes/api_namespaces.h"
#include "server/routes/api_tasks.h"
#include "server/routes/api_inboxes.h"
#include "server/routes/api_services.h"

#define SEGMENTS_MAX 8

#define LIST "limit", "cursor"
#define TASK_FILTERS                                                                              \
    "status", "type", "queue", "tag", "user_id", "external_id", "context_key", "job_id",          \
        "schedule_id", "workflow_id", "parent_id", "correlation_id", "created_after",             \
        "created_before"

/* A row: method, path, handler, the right it needs, what it does, the handler's argument, and the
 * query parameters it knows (NULL = none). A row without a right does not compile. */
#define OPEN {.kind = RIGHT_NONE}
#define ANYONE {.kind = RIGHT_ANYONE}
#define SCOPE(name) {.kind = RIGHT_SCOPE, .scope = SCOPE_##name}
#define EVERYWHERE(name) {.kind = RIGHT_EVERYWHERE, .scope = SCOPE_##name}
#define OWN(name) {.kind = RIGHT_OWN, .scope = SCOPE_##name}
#define ROUTE(verb, path, handler, right, summary_text, argument, ...)                            \
    {.method = HTTP_##verb, .pattern = path, .handle = handler, .needs = right,                    \
     .summary = summary_text, .what = argument, .parameters = {__VA_ARGS__}},

const struct route routes[] = {
    ROUTE(POST, "/v1/tasks", api_tasks_enqueue, SCOPE(TASKS_ENQUEUE),
          "Enqueue a task or an array of tasks", 0, NULL)
    ROUTE(GET, "/v1/tasks", api_tasks_list, SCOPE(TASKS_READ), "List tasks, newest first", 0,
          LIST, TASK_FILTERS, "order", "q")
    ROUTE(DELETE, "/v1/tasks", api_tasks_purge, SCOPE(TASKS_DELETE),
          "Remove all ended tasks of a user", 0, "user_id")
    ROUTE(POST, "/v1/tasks:cancel", api_tasks_control, SCOPE(TASKS_CONTROL),
          "Cancel all matching tasks", CONTROL_CANCEL, LIST, TASK_FILTERS, "dry_run", "all")
    ROUTE(POST, "/v1/tasks:retry", api_tasks_control, SCOPE(TASKS_CONTROL),
          "Retry all matching tasks", CONTROL_RETRY, LIST, TASK_FILTERS, "dry_run", "all")
    ROUTE(GET, "/v1/workflows/{id}", api_workflow_get, SCOPE(TASKS_READ),
          "Tasks that belong together, with their dependencies", 0, "limit")
    ROUTE(GET, "/v1/tasks/{id}", api_task_get, OWN(TASKS_READ),
          "One task with its result, or as it was", 0, "at")
    ROUTE(PATCH, "/v1/tasks/{id}", api_task_control, SCOPE(TASKS_CONTROL),
          "Change the remarks on a task", CONTROL_UPDATE, NULL)
    ROUTE(DELETE, "/v1/tasks/{id}", api_task_control, SCOPE(TASKS_DELETE),
          "Delete a task with its events, logs and checkpoints", CONTROL_DELETE, NULL)
    ROUTE(POST, "/v1/tasks/{id}:cancel", api_task_control, SCOPE(TASKS_CONTROL), "Cancel a task",
          CONTROL_CANCEL, NULL)
    ROUTE(POST, "/v1/tasks/{id}:retry", api_task_control, SCOPE(TASKS_CONTROL),
          "Run an ended or orphaned task again", CONTROL_RETRY, NULL)
    ROUTE(POST, "/v1/tasks/{id}:pause", api_task_control, SCOPE(TASKS_CONTROL), "Pause a task",
          CONTROL_PAUSE, NULL)
    ROUTE(POST, "/v1/tasks/{id}:resume", api_task_control, SCOPE(TASKS_CONTROL),
          "Resume a paused task", CONTROL_RESUME, NULL)
    ROUTE(POST, "/v1/tasks/{id}:prioritize", api_task_control, SCOPE(TASKS_CONTROL),
          "Change the priority of a task", CONTROL_PRIORITIZE, NULL)
    ROUTE(POST, "/v1/tasks/{id}:recover", api_task_control, SCOPE(TASKS_CONTROL),
          "Recover an orphaned or partial task", CONTROL_RECOVER, NULL)
    ROUTE(POST, "/v1/tasks/{id}:fork", api_task_fork, SCOPE(TASKS_CONTROL),
          "A new task that continues from a checkpoint of this one", 0, NULL)
    ROUTE(GET, "/v1/tasks/{id}/events", api_task_part, OWN(TASKS_READ),
          "Events of a task, newest first", TASK_EVENTS, LIST)
    ROUTE(GET, "/v1/tasks/{id}/executions", api_task_part, OWN(TASKS_READ),
          "Executions of a task, newest first", TASK_EXECUTIONS, LIST)
    ROUTE(GET, "/v1/tasks/{id}/checkpoints", api_task_part, OWN(TASKS_READ),
          "Checkpoints of a task, newest first", TASK_CHECKPOINTS, LIST)
    ROUTE(GET, "/v1/tasks/{id}/logs", api_task_logs, OWN(TASKS_READ),
          "Log lines of a task, oldest first", 0, LIST, "level", "after", "before", "q",
          "context")
    ROUTE(GET, "/v1/tasks/{id}/result", api_task_result, OWN(TASKS_READ), "The result of a task",
          0, NULL)
    ROUTE(GET, "/v1/tasks/{id}/why", api_task_why, OWN(TASKS_READ),
          "Why a task does not run, in one sentence", 0, NULL)
    ROUTE(GET, "/v1/tasks/{id}/wait", api_task_wait, OWN(TASKS_READ),
          "Wait until a task has ended", 0, "timeout_ms")
    ROUTE(POST, "/v1/workers", api_workers_register, SCOPE(WORK), "Register a worker", 0, NULL)
    ROUTE(GET, "/v1/workers", api_workers_list, SCOPE(METRICS_READ), "List workers", 0, LIST)
    ROUTE(GET, "/v1/workers/{id}", api_worker_get, SCOPE(METRICS_READ), "One worker", 0, NULL)
    ROUTE(DELETE, "/v1/workers/{id}", api_worker_leave, SCOPE(WORK),
          "Leave; its tasks are released", 0, NULL)
    ROUTE(POST, "/v1/workers/{id}:heartbeat", api_worker_heartbeat, SCOPE(WORK),
          "Renew a worker's leases", 0, NULL)
    ROUTE(POST, "/v1/workers/{id}:claim", api_worker_claim, SCOPE(WORK),
          "Claim tasks; waits for some if asked to", 0, NULL)
    ROUTE(POST, "/v1/workers/{id}:report", api_worker_report, SCOPE(WORK), "Report on tasks", 0,
          NULL)
    ROUTE(GET, "/v1/queues", api_queues_list, SCOPE(METRICS_READ), "List queues", 0, LIST)
    ROUTE(GET, "/v1/queues/{name}", api_queue_get, SCOPE(METRICS_READ), "One queue", 0, NULL)
    ROUTE(PATCH, "/v1/queues/{name}", api_queue_change, SCOPE(QUEUES_WRITE),
          "Change limits and order of a queue", QUEUE_CHANGE, NULL)
    ROUTE(DELETE, "/v1/queues/{name}", api_queue_change, SCOPE(QUEUES_WRITE),
          "Delete a queue that holds no task", QUEUE_REMOVE, NULL)
    ROUTE(POST, "/v1/queues/{name}:pause", api_queue_change, SCOPE(QUEUES_WRITE),
          "Stop handing out the tasks of a queue", QUEUE_PAUSE, NULL)
    ROUTE(POST, "/v1/queues/{name}:resume", api_queue_change, SCOPE(QUEUES_WRITE),
          "Hand out the tasks of a queue again", QUEUE_RESUME, NULL)
    ROUTE(GET, "/v1/namespaces", api_namespaces_list, ANYONE, "List namespaces", 0, LIST)
    ROUTE(POST, "/v1/namespaces", api_namespace_create, EVERYWHERE(ACCESS_WRITE),
          "Make a namespace", 0, NULL)
    ROUTE(GET, "/v1/namespaces/{name}", api_namespace_get, ANYONE, "One namespace", 0, NULL)
    ROUTE(PATCH, "/v1/namespaces/{name}", api_namespace_update, EVERYWHERE(ACCESS_WRITE),
          "Change a namespace", 0, NULL)
    ROUTE(DELETE, "/v1/namespaces/{name}", api_namespace_delete, EVERYWHERE(ACCESS_WRITE),
          "Delete a namespace with all that is in it", 0, "purge")
    ROUTE(GET, "/v1/categories", api_plan_list, SCOPE(PLANS_READ), "List categories",
          CATALOG_CATEGORY, LIST, "name", "is_active")
    ROUTE(POST, "/v1/categories", api_plan_create, SCOPE(PLANS_WRITE), "Make a category",
          CATALOG_CATEGORY, NULL)
    ROUTE(GET, "/v1/categories/{id}", api_plan_get, SCOPE(PLANS_READ), "One category",
          CATALOG_CATEGORY, NULL)
    ROUTE(PATCH, "/v1/categories/{id}", api_plan_update, SCOPE(PLANS_WRITE), "Change a category",
          CATALOG_CATEGORY, NULL)
    ROUTE(DELETE, "/v1/categories/{id}", api_plan_delete, SCOPE(PLANS_WRITE),
          "Delete a category that no job uses", CATALOG_CATEGORY, NULL)
    ROUTE(GET, "/v1/jobs", api_plan_list, SCOPE(PLANS_READ), "List jobs, newest first",
          CATALOG_JOB, LIST, "name", "category", "is_active", "with_deleted", "target_service")
    ROUTE(POST, "/v1/jobs", api_plan_create, SCOPE(PLANS_WRITE), "Make a job", CATALOG_JOB, NULL)
    ROUTE(GET, "/v1/jobs/{id}", api_plan_get, SCOPE(PLANS_READ),
          "One job with the values in force", CATALOG_JOB, "with_deleted")
    ROUTE(PATCH, "/v1/jobs/{id}", api_plan_update, SCOPE(PLANS_WRITE), "Change a job",
          CATALOG_JOB, NULL)
    ROUTE(DELETE, "/v1/jobs/{id}", api_plan_delete, SCOPE(PLANS_WRITE),
          "Delete a job with its schedules", CATALOG_JOB, NULL)
    ROUTE(POST, "/v1/jobs/{id}:run", api_plan_run, SCOPE(PLANS_RUN), "Run a job now",
          CATALOG_JOB, NULL)
    ROUTE(GET, "/v1/jobs/{id}/schedules", api_plan_list_of_job, SCOPE(PLANS_READ),
          "List the schedules of a job", CATALOG_SCHEDULE, LIST, "schedule_type", "is_active",
          "has_error", "next_before")
    ROUTE(POST, "/v1/jobs/{id}/schedules", api_plan_create_of_job, SCOPE(PLANS_WRITE),
          "Make a schedule of a job", CATALOG_SCHEDULE, NULL)
    ROUTE(GET, "/v1/jobs/{id}/dependencies", api_plan_list_of_job, SCOPE(PLANS_READ),
          "List what a job waits for or is started by", CATALOG_DEPENDENCY, LIST, "side")
    ROUTE(POST, "/v1/jobs/{id}/dependencies", api_plan_create_of_job, SCOPE(PLANS_WRITE),
          "Make a job depend on another", CATALOG_DEPENDENCY, NULL)
    ROUTE(DELETE, "/v1/jobs/{id}/dependencies/{dependency_id}", api_dependency_delete,
          SCOPE(PLANS_WRITE), "Delete a dependency of a job", CATALOG_DEPENDENCY, NULL)
    ROUTE(GET, "/v1/jobs/{id}/stats", api_job_stats, SCOPE(PLANS_READ),
          "How the runs of a job went", CATALOG_JOB, "since", "with_deleted")
    ROUTE(GET, "/v1/schedules", api_plan_list, SCOPE(PLANS_READ), "List schedules, newest first",
          CATALOG_SCHEDULE, LIST, "job_id", "schedule_type", "is_active", "has_error",
          "next_before")
    ROUTE(POST, "/v1/schedules", api_plan_create, SCOPE(PLANS_WRITE), "Make a schedule",
          CATALOG_SCHEDULE, NULL)
    ROUTE(POST, "/v1/schedules:preview", api_plan_preview, SCOPE(PLANS_READ),
          "When a schedule would fire, without saving it", CATALOG_SCHEDULE, NULL)
    ROUTE(GET, "/v1/schedules/{id}", api_plan_get, SCOPE(PLANS_READ), "One schedule",
          CATALOG_SCHEDULE, NULL)
    ROUTE(PATCH, "/v1/schedules/{id}", api_plan_update, SCOPE(PLANS_WRITE), "Change a schedule",
          CATALOG_SCHEDULE, NULL)
    ROUTE(DELETE, "/v1/schedules/{id}", api_plan_delete, SCOPE(PLANS_WRITE), "Delete a schedule",
          CATALOG_SCHEDULE, NULL)
    ROUTE(POST, "/v1/schedules/{id}:pause", api_plan_pause, SCOPE(PLANS_WRITE),
          "Pause a schedule", CATALOG_SCHEDULE, NULL)
    ROUTE(POST, "/v1/schedules/{id}:resume", api_plan_resume, SCOPE(PLANS_WRITE),
          "Resume a schedule", CATALOG_SCHEDULE, NULL)
    ROUTE(POST, "/v1/schedules/{id}:run", api_plan_run, SCOPE(PLANS_RUN),
          "Run the job of a schedule now", CATALOG_SCHEDULE, NULL)
    ROUTE(GET, "/v1/schedules/{id}/upcoming", api_plan_upcoming, SCOPE(PLANS_READ),
          "When a schedule fires next", CATALOG_SCHEDULE, "count", "from")
    ROUTE(GET, "/v1/recurring", api_plan_list, SCOPE(PLANS_READ),
          "List recurring patterns, newest first", CATALOG_RECURRING, LIST, "name",
          "template_job_id", "is_active", "has_error", "next_before")
    ROUTE(POST, "/v1/recurring", api_plan_create, SCOPE(PLANS_WRITE), "Make a recurring pattern",
          CATALOG_RECURRING, NULL)
    ROUTE(POST, "/v1/recurring:preview", api_plan_preview, SCOPE(PLANS_READ),
          "When a pattern would fire, without saving it", CATALOG_RECURRING, "count", "from")
    ROUTE(GET, "/v1/recurring/{id}", api_plan_get, SCOPE(PLANS_READ), "One recurring pattern",
          CATALOG_RECURRING, NULL)
    ROUTE(PATCH, "/v1/recurring/{id}", api_plan_update, SCOPE(PLANS_WRITE),
          "Change a recurring pattern", CATALOG_RECURRING, NULL)
    ROUTE(DELETE, "/v1/recurring/{id}", api_plan_delete, SCOPE(PLANS_WRITE),
          "Delete a recurring pattern", CATALOG_RECURRING, NULL)
    ROUTE(POST, "/v1/recurring/{id}:pause", api_plan_pause, SCOPE(PLANS_WRITE),
          "Pause a pattern", CATALOG_RECURRING, NULL)
    ROUTE(POST, "/v1/recurring/{id}:resume", api_plan_resume, SCOPE(PLANS_WRITE),
          "Resume a pattern", CATALOG_RECURRING, NULL)
    ROUTE(POST, "/v1/recurring/{id}:run", api_plan_run, SCOPE(PLANS_RUN),
          "Run the job of a pattern now", CATALOG_RECURRING, NULL)
    ROUTE(GET, "/v1/recurring/{id}/upcoming", api_plan_upcoming, SCOPE(PLANS_READ),
          "When a pattern fires next", CATALOG_RECURRING, "count", "from")
    ROUTE(GET, "/v1/executions", api_executions_list, SCOPE(TASKS_READ),
          "List executions, newest first", 0, LIST, "job_id", "schedule_id", "status", "after",
          "before")
    ROUTE(GET, "/v1/executions/{id}", api_execution_get, SCOPE(TASKS_READ), "One execution", 0,
          NULL)
    ROUTE(GET, "/v1/executions/{id}/logs", api_execution_logs, SCOPE(TASKS_READ),
          "Log lines of an execution, oldest first", 0, LIST, "level", "after", "before", "q",
          "context")
    ROUTE(GET, "/v1/forecast", api_forecast, SCOPE(PLANS_READ), "What will fire, and when", 0,
          "from", "to", "tz", "limit", "job", "fold")
    ROUTE(GET, "/v1/recovery", api_recovery_list, SCOPE(TASKS_READ),
          "The recovery queue, newest first", 0, LIST, "status", "method", "task_id")
    ROUTE(POST, "/v1/recovery", api_recovery_put, SCOPE(TASKS_CONTROL), "Recover a task", 0,
          NULL)
    ROUTE(GET, "/v1/recovery/{id}", api_recovery_get, SCOPE(TASKS_READ),
          "One entry of the recovery queue", 0, NULL)
    ROUTE(GET, "/v1/recovery/candidates", api_recovery_candidates, SCOPE(TASKS_READ),
          "Tasks that can be recovered, the most important first", 0, LIST, "auto_recovery")
    ROUTE(POST, "/v1/recovery/validate", api_recovery_validate, SCOPE(TASKS_READ),
          "Whether a task can be recovered, and why not", 0, NULL)
    ROUTE(GET, "/v1/stats", api_stats, SCOPE(METRICS_READ), "Counters of the whole server", 0,
          NULL)
    ROUTE(GET, "/v1/stats/history", api_stats_history, SCOPE(METRICS_READ),
          "What the queues did in the last hours", 0, "window", "open")
    ROUTE(GET, "/v1/services", api_services, SCOPE(METRICS_READ),
          "Target services and their health", 0, LIST)
    ROUTE(GET, "/v1/services/{name}", api_service_get, SCOPE(METRICS_READ), "One target service",
          0, NULL)
    ROUTE(GET, "/v1/inboxes", api_inboxes, SCOPE(METRICS_READ),
          "Tables of other databases whose rows become tasks", 0, LIST)
    ROUTE(GET, "/v1/brokers", api_brokers, SCOPE(METRICS_READ),
          "Queues of brokers that this node consumes", 0, LIST)
    ROUTE(POST, "/v1/completions/{id}", api_completion, OPEN,
          "Say how a call that was taken with 202 goes or has ended", 0, NULL)
    ROUTE(GET, "/v1/identity/jwks.json", api_jwks, OPEN,
          "Keys that sign the Perdura-Identity of calls", 0, NULL)
    ROUTE(GET, "/v1/stream", api_stream, SCOPE(TASKS_READ),
          "Changes of tasks as server-sent events", 0, "queue", "type", "task_id", "stats")
    ROUTE(GET, "/v1/backup", api_backup_place, EVERYWHERE(ADMIN),
          "Where backups go, and what is copied", 0, NULL)
    ROUTE(POST, "/v1/backup", api_backup, EVERYWHERE(ADMIN),
          "Write a backup of the store into backup_dir", 0, NULL)
    ROUTE(GET, "/v1/audit", api_audit_list, SCOPE(AUDIT_READ),
          "Who changed what, and what was refused, newest first", 0, LIST, "principal", "action",
          "object_kind", "object_id", "outcome", "after", "before")
    ROUTE(POST, "/v1/tokens", api_token_create, SCOPE(ACCESS_WRITE), "Make an API token",
          ACCESS_CREATE, NULL)
    ROUTE(GET, "/v1/tokens", api_tokens_list, SCOPE(ACCESS_WRITE), "List API tokens, newest first",
          0, LIST)
    ROUTE(GET, "/v1/tokens/{id}", api_token_get, SCOPE(ACCESS_WRITE), "One API token", 0, NULL)
    ROUTE(DELETE, "/v1/tokens/{id}", api_token_revoke, SCOPE(ACCESS_WRITE),
          "Revoke an API token", 0, NULL)
    ROUTE(POST, "/v1/tokens/{id}:rotate", api_token_rotate, SCOPE(ACCESS_WRITE),
          "Give an API token a new secret", ACCESS_ROTATE, NULL)
    ROUTE(GET, "/v1/keys", api_keys, EVERYWHERE(ACCESS_WRITE),
          "The keys that encrypt what is stored, by id", KEYS_LIST, NULL)
    ROUTE(POST, "/v1/keys:rotate", api_keys, EVERYWHERE(ACCESS_WRITE),
          "Wrap data keys again, with the current key", KEYS_ROTATE, NULL)
    ROUTE(POST, "/v1/keys:destroy", api_keys, EVERYWHERE(ACCESS_WRITE),
          "Destroy the data keys of a user or a namespace", KEYS_DESTROY, NULL)
    ROUTE(GET, "/v1/whoami", api_whoami, ANYONE, "Who asks, and what that allows", 0, NULL)
    ROUTE(GET, "/metrics", api_metrics, SCOPE(METRICS_READ), "Metrics for Prometheus", 0, NULL)
    ROUTE(GET, "/healthz", api_healthz, OPEN, "Is the process alive", 0, NULL)
    ROUTE(GET, "/readyz", api_readyz, OPEN, "Can it take work", 0, NULL)
    ROUTE(GET, "/openapi.json", api_openapi, ANYONE, "This description", 0, NULL)
    ROUTE(GET, "/", api_index, OPEN, "The dashboard", 0, NULL)
    ROUTE(GET, "/assets/{name}", api_asset, OPEN, "A file of the dashboard", 0, NULL)
    {.method = HTTP_OTHER},
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

/* What tells most rows apart at a glance: the words in front of the first name. Most begin with
 * "/v1/", so what is behind that is looked at first. */
static bool may_match(const char *pattern, struct str path)
{
    const size_t skipped = sizeof "/v1/" - 1;
    size_t i = path.len > skipped && pattern[1] == 'v' ? skipped : 0;

    while (i < path.len && pattern[i] && pattern[i] == path.data[i])
        i++;
    return pattern[i] == '{' || (pattern[i] == '\0' && i == path.len);
}

static enum match match_route(const struct route *route, struct str path,
                              const struct str *segments, uint32_t count,
                              struct str names[ROUTE_NAMES_MAX])
{
    return may_match(route->pattern, path) ? match_path(route->pattern, segments, count, names)
                                           : MATCH_NONE;
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

/* Of all routes that match as well as the best one. */
static void find_allowed(struct str path, const struct str *segments, uint32_t count,
                         enum match best, char allow[ROUTER_ALLOW_BYTES])
{
    struct str names[ROUTE_NAMES_MAX];

    for (const struct route *at = routes; at->pattern && best != MATCH_NONE; at++)
        if (match_route(at, path, segments, count, names) == best)
            add_allowed(allow, at->method);
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
        enum match match = match_route(at, path, segments, count, found);

        if (match == MATCH_NONE || match < best)
            continue;
        if (match > best) { /* a word or a verb beats a name that looks like it */
            best = match;
            *route = NULL;
        }
        if (method_fits(method, at->method)) {
            *route = at;
            memcpy(raw, found, sizeof raw);
        }
    }
    if (*route)
        return decode_names(raw, arena, names, err);
    find_allowed(path, segments, count, best, allow);
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
