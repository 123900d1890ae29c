/* perdura job depend, undepend: which jobs wait for which, or are started by their end. One
 * thread. */
#include "base/json.h"
#include "cli/plans/job_commands.h"

static const struct view_column columns[] = {
    {"DEPENDS ON", "/job", VIEW_TEXT},
    {"TYPE", "/dependency_type", VIEW_TEXT},
    {"MODE", "/mode|/dependency_config/mode", VIEW_TEXT},
    {"WITHIN", "/dependency_config/within_ms", VIEW_DURATION},
    {"ID", "/id", VIEW_ID},
};

static const struct view_column dependents_columns[] = {
    {"NEEDED BY", "/job", VIEW_TEXT},
    {"TYPE", "/dependency_type", VIEW_TEXT},
    {"MODE", "/mode|/dependency_config/mode", VIEW_TEXT},
    {"WITHIN", "/dependency_config/within_ms", VIEW_DURATION},
    {"ID", "/id", VIEW_ID},
};

/* Those of a list in which `member` is the job: a list may show both sides. */
static int find_dependencies(struct client *client, struct str job_id, const char *query,
                             const char *member, struct str *own)
{
    struct call *call = client->call;
    BUF_AUTO struct buf out = BUF_INIT(CLIENT_REPLY_BYTES_MAX);
    struct str reply = STR_NONE;
    struct json_iter iter;
    struct str item;

    TRY(thing_request(client, "GET", &thing_job, job_id, query, STR_NONE, &reply));
    buf_byte(&out, '[');
    json_begin(view_items(reply), &iter);
    while (json_next_element(&iter, &item)) {
        if (!str_eq(view_member(call, item, member), job_id))
            continue;
        json_comma(&out);
        buf_str(&out, item);
    }
    buf_byte(&out, ']');
    *own = arena_str(&call->arena, buf_view(&out));
    return 0;
}

static int own_dependencies(struct client *client, struct str job_id, struct str *own)
{
    return find_dependencies(client, job_id, "/dependencies?limit=1000", "job_id", own);
}

static int print_side(struct client *client, struct str items, const char *member,
                      const struct view_column *shown, uint32_t shown_count)
{
    struct call *call = client->call;

    if (json_count(items) == 0)
        return 0;
    TRY(thing_name_jobs(client, items, member, &items));
    fputc('\n', call->out.file);
    view_table(call, items, shown, shown_count);
    return 0;
}

int job_print_dependencies(struct client *client, struct str job_id)
{
    struct str items = STR_NONE;

    TRY(own_dependencies(client, job_id, &items));
    TRY(print_side(client, items, "depends_on_job_id", columns, COUNT(columns)));
    TRY(find_dependencies(client, job_id, "/dependencies?limit=1000&side=dependents",
                          "depends_on_job_id", &items));
    return print_side(client, items, "job_id", dependents_columns, COUNT(dependents_columns));
}

/* The two jobs a command speaks of. */
static int find_both(struct call *call, struct client *client, struct str *job_id,
                     struct str *on_id)
{
    if (!call_given(call, "on"))
        return err_set(&call->err, ERR_USAGE, "--on is missing; which job does '" STR_FMT
                       "' depend on?", STR_ARG(call->args[0]));
    TRY(client_open(client, call));
    TRY(thing_find(client, &thing_job, call->args[0], job_id));
    return thing_find(client, &thing_job, call_given_text(call, "on"), on_id);
}

static int run_depend(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(THING_BODY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;
    struct str job_id, on_id;

    if (call_given(call, "trigger") && call_given(call, "within"))
        return err_set(&call->err, ERR_USAGE, "--within is for jobs that wait; leave it out with "
                       "--trigger");
    TRY(find_both(call, &client, &job_id, &on_id));
    buf_byte(&body, '{');
    json_write_member_string(&body, "depends_on_job_id", on_id);
    json_write_member_string(&body, "dependency_type", call_text(call, "type"));
    buf_format(&body, ",\"dependency_config\":{\"mode\":\"%s\"",
               call_given(call, "trigger") ? "trigger" : "gate");
    if (call_given(call, "within"))
        buf_format(&body, ",\"within_ms\":%lld",
                   (long long)call_duration_ms(call, "within", 0));
    buf_text(&body, "}}");
    TRY(thing_request(&client, "POST", &thing_job, job_id, "/dependencies", buf_view(&body),
                      &reply));
    return thing_print_id(call, reply);
}

static int delete_one(struct client *client, struct str job_id, struct str dependency)
{
    struct call *call = client->call;
    struct str id = view_member(call, dependency, "id");
    struct str after = client_path(call, "/dependencies/", id, "");
    struct str reply = STR_NONE;
    const char *text = arena_cstr(&call->arena, after);

    TRY(thing_request(client, "DELETE", &thing_job, job_id, text ? text : "/dependencies/",
                      STR_NONE, &reply));
    terminal_line_clean(&call->notes, COLOUR_NONE,
                        arena_format(&call->arena, "deleted dependency " STR_FMT,
                                     STR_ARG(id)));
    return 0;
}

static int run_undepend(struct call *call)
{
    struct str kind = call_given_text(call, "type");
    CLIENT_AUTO struct client client = {0};
    struct str items = STR("[]");
    struct str job_id, on_id, item;
    struct json_iter iter;
    uint32_t found = 0;
    int rc = find_both(call, &client, &job_id, &on_id);

    if (rc == 0)
        rc = own_dependencies(&client, job_id, &items);
    json_begin(items, &iter);
    while (rc == 0 && json_next_element(&iter, &item)) {
        if (!str_eq(view_member(call, item, "depends_on_job_id"), on_id) ||
            (kind.data && !str_eq(view_member(call, item, "dependency_type"), kind)))
            continue;
        rc = delete_one(&client, job_id, item);
        found++;
    }
    if (rc == 0 && found == 0)
        rc = err_set(&call->err, ERR_NOT_FOUND, "'" STR_FMT "' does not depend on '" STR_FMT
                     "'%s; 'perdura job show' says what it depends on", STR_ARG(call->args[0]),
                     STR_ARG(call_given_text(call, "on")), kind.data ? " in this way" : "");
    return rc;
}

#define ON_FLAG {.name = "on", .type = FLAG_TEXT, .value = "OTHER", .help = "the other job"}

static const struct flag depend_flags[] = {
    ON_FLAG,
    {.name = "type", .type = FLAG_WORD, .value = "TYPE", .choices = "success|completion|failure",
     .fallback = "success", .help = "how the other's run must end"},
    {.name = "trigger", .type = FLAG_BOOL,
     .help = "a run of the other job, when it ends, starts a run of this one"},
    {.name = "within", .type = FLAG_DURATION, .value = "D",
     .help = "ignore an end longer ago than this"},
    {0}};

static const struct flag undepend_flags[] = {
    ON_FLAG,
    {.name = "type", .type = FLAG_WORD, .value = "TYPE", .choices = "success|completion|failure",
     .help = "only the dependency of this type"},
    {0}};

const struct command job_depend = {
    .name = "depend", .summary = "Make a job wait for another, or start when the other ends",
    .arguments = "JOB",
    .details = "A run of JOB waits until no run of the other is open and the last one ended as "
               "required. With --trigger the other job's end starts a run. Cycles are refused.",
    .example = "perdura job depend report --on import\n"
               "perdura job depend alert --on import --type failure --trigger",
    .flags = depend_flags, CLIENT_COMMAND(1, 1, run_depend)};

const struct command job_undepend = {
    .name = "undepend", .summary = "Remove a dependency of a job on another", .arguments = "JOB",
    .example = "perdura job undepend report --on import", .flags = undepend_flags,
    .groups = FLAGS_CLIENT, .args_min = 1, .args_max = 1, .run = run_undepend};
