/* The table of routes and how a path finds its way into it. Help, metrics, 405 and the check of
 * openapi.json all come from this table. It is searched from its start: some 40 rows of short
 * literals cost less than a request's head. Pure: the handlers are only named. */
#include "server/router.h"

#include "net/url.h"
#include "server/api.h"

#define SEGMENTS_MAX 8

#define LIST "limit", "cursor"

const struct route routes[] = {
    {HTTP_POST, "/v1/tasks", api_tasks_enqueue, "Enqueue a task or an array of tasks", {0}},
    {HTTP_GET, "/v1/tasks", api_tasks_list, "List tasks, newest first",
     {LIST, "status", "type", "queue", "tag", "user_id", "external_id", "context_key", "job_id",
      "schedule_id", "workflow_id", "parent_id", "correlation_id", "created_after",
      "created_before"}},
    {HTTP_DELETE, "/v1/tasks", api_tasks_purge, "Remove all ended tasks of a user", {"user_id"}},
    {HTTP_GET, "/v1/tasks/{id}", api_task_get, "One task with its result", {0}},
    {HTTP_DELETE, "/v1/tasks/{id}", api_task_delete, "Delete a task and all that belongs to it",
     {0}},
    {HTTP_POST, "/v1/tasks/{id}:cancel", api_task_cancel, "Cancel a task", {0}},
    {HTTP_POST, "/v1/tasks/{id}:retry", api_task_retry, "Run an ended or orphaned task again",
     {0}},
    {HTTP_POST, "/v1/tasks/{id}:pause", api_task_pause, "Pause a task", {0}},
    {HTTP_POST, "/v1/tasks/{id}:resume", api_task_resume, "Let a paused task go on", {0}},
    {HTTP_POST, "/v1/tasks/{id}:prioritize", api_task_prioritize, "Change the priority of a task",
     {0}},
    {HTTP_POST, "/v1/tasks/{id}:recover", api_task_recover, "Recover an orphaned or partial task",
     {0}},
    {HTTP_GET, "/v1/tasks/{id}/events", api_task_events, "Events of a task, newest first",
     {LIST}},
    {HTTP_GET, "/v1/tasks/{id}/executions", api_task_executions,
     "Executions of a task, newest first", {LIST}},
    {HTTP_GET, "/v1/tasks/{id}/checkpoints", api_task_checkpoints,
     "Checkpoints of a task, newest first", {LIST}},
    {HTTP_GET, "/v1/tasks/{id}/logs", api_task_logs, "Log lines of a task, oldest first",
     {LIST, "level", "after", "before", "q", "context"}},
    {HTTP_GET, "/v1/tasks/{id}/result", api_task_result, "The result of a task", {0}},
    {HTTP_GET, "/v1/tasks/{id}/wait", api_task_wait, "Wait until a task has ended",
     {"timeout_ms"}},
    {HTTP_POST, "/v1/workers", api_workers_register, "Register a worker", {0}},
    {HTTP_GET, "/v1/workers", api_workers_list, "List workers", {LIST}},
    {HTTP_GET, "/v1/workers/{id}", api_worker_get, "One worker", {0}},
    {HTTP_DELETE, "/v1/workers/{id}", api_worker_leave, "Leave; its tasks are given back", {0}},
    {HTTP_POST, "/v1/workers/{id}:heartbeat", api_worker_heartbeat, "Renew a worker's leases",
     {0}},
    {HTTP_POST, "/v1/workers/{id}:claim", api_worker_claim, "Claim tasks, waiting for some", {0}},
    {HTTP_POST, "/v1/workers/{id}:report", api_worker_report, "Report on tasks", {0}},
    {HTTP_GET, "/v1/queues", api_queues_list, "List queues", {LIST}},
    {HTTP_GET, "/v1/queues/{name}", api_queue_get, "One queue", {0}},
    {HTTP_PATCH, "/v1/queues/{name}", api_queue_patch, "Change limits and order of a queue", {0}},
    {HTTP_POST, "/v1/queues/{name}:pause", api_queue_pause, "Hand out no more tasks of a queue",
     {0}},
    {HTTP_POST, "/v1/queues/{name}:resume", api_queue_resume, "Hand out tasks of a queue again",
     {0}},
    {HTTP_GET, "/v1/stats", api_stats, "Counters of the whole server", {0}},
    {HTTP_GET, "/v1/services", api_services, "Target services and their health", {LIST}},
    {HTTP_GET, "/v1/stream", api_stream, "Changes of tasks as server-sent events",
     {"queue", "type", "task_id"}},
    {HTTP_POST, "/v1/backup", api_backup, "Write a backup of the store to a file", {0}},
    {HTTP_GET, "/metrics", api_metrics, "Metrics for Prometheus", {0}},
    {HTTP_GET, "/healthz", api_healthz, "Is the process alive", {0}},
    {HTTP_GET, "/readyz", api_readyz, "Can it take work", {0}},
    {HTTP_GET, "/openapi.json", api_openapi, "This description", {0}},
    {HTTP_GET, "/", api_index, "The start page", {0}},
    {HTTP_OTHER, NULL, NULL, NULL, {0}},
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

enum match { MATCH_NONE, MATCH_PLAIN, MATCH_VERB };

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
    return suffix.len ? MATCH_VERB : MATCH_PLAIN;
}

static enum match match_path(const char *pattern, const struct str *segments, uint32_t count,
                             struct str *name)
{
    struct str rest = str_of(pattern);
    struct str piece;
    enum match best = MATCH_PLAIN;
    uint32_t i = 0;

    for (; url_next_segment(&rest, &piece); i++) {
        enum match match = i < count ? match_segment(piece, segments[i], name) : MATCH_NONE;

        if (match == MATCH_NONE)
            return MATCH_NONE;
        if (match == MATCH_VERB)
            best = MATCH_VERB;
    }
    return i == count ? best : MATCH_NONE;
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

static bool method_fits(enum http_method method, enum http_method of_route)
{
    return method == of_route || (method == HTTP_HEAD && of_route == HTTP_GET);
}

/* An unknown verb is an unknown path, not a wrong method on a name with a colon. */
static bool looks_like_verb(enum http_method method, struct str last)
{
    return method == HTTP_POST && memchr(last.data, ':', last.len) != NULL;
}

int router_find(enum http_method method, struct str path, struct arena *arena,
                const struct route **route, struct str *name, char allow[ROUTER_ALLOW_BYTES],
                struct err *err)
{
    struct str segments[SEGMENTS_MAX];
    enum match best = MATCH_NONE;
    struct str raw_name = STR_NONE;
    uint32_t count;

    *route = NULL;
    *name = STR_NONE;
    allow[0] = '\0';
    if (!split(path, segments, &count))
        count = 0;
    for (const struct route *at = routes; at->pattern && count; at++) {
        struct str found = STR_NONE;
        enum match match = match_path(at->pattern, segments, count, &found);

        if (match == MATCH_NONE || match < best)
            continue;
        if (match > best) { /* a verb beats a name that happens to end in it */
            best = match;
            *route = NULL;
            allow[0] = '\0';
        }
        add_allowed(allow, at->method);
        if (method_fits(method, at->method)) {
            *route = at;
            raw_name = found;
        }
    }
    if (*route)
        return raw_name.data ? url_decode_segment(raw_name, arena, name, err) : 0;
    if (best == MATCH_NONE || (best == MATCH_PLAIN && looks_like_verb(method, segments[count - 1])))
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
        values[i] = value.data ? value : STR("");
    }
    return rc;
}
