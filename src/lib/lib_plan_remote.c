/* Planning on a server's side: every call is a request of the HTTP API, its reply handed on as it
 * came. Any thread. */
#include "lib/lib_int.h"

#include "base/clock.h"
#include "net/http_client.h"

#define PATH_BYTES_MAX 8192 /* two names and a dozen filters, escaped */

static const char *const folders[] = {[CATALOG_CATEGORY] = "categories",
                                      [CATALOG_JOB] = "jobs",
                                      [CATALOG_SCHEDULE] = "schedules",
                                      [CATALOG_RECURRING] = "recurring",
                                      [CATALOG_DEPENDENCY] = "dependencies"};

/* The folder of the kind, beneath the job where there is one, and the thing in it. */
static void write_place(const struct plan_call *call, struct buf *path)
{
    buf_text(path, "/v1/");
    if (call->job.data) {
        buf_text(path, "jobs/");
        http_client_escape(path, call->job);
        buf_byte(path, '/');
    }
    buf_text(path, folders[call->kind]);
    if (call->id.data) {
        buf_byte(path, '/');
        http_client_escape(path, call->id);
    }
}

/* Filters of a list as a query; job_id of dependencies is in the path already. */
static int write_filters(const struct plan_call *call, struct arena *arena, struct buf *path,
                         struct err *err)
{
    struct json_member member;
    struct json_iter iter;
    char before = '?';

    json_begin(call->json, &iter);
    while (json_next_member(&iter, &member)) {
        struct str key = json_decode_key(member.key, arena);
        struct str value = member.value;

        if (json_kind(value) == JSON_STRING)
            value = json_string(value, arena);
        TRY_MEMORY(key.data && value.data);
        if (json_kind(member.value) == JSON_NULL || (call->job.data && str_is(key, "job_id")))
            continue;
        buf_byte(path, before);
        http_client_escape(path, key);
        buf_byte(path, '=');
        http_client_escape(path, value);
        before = '&';
    }
    return 0;
}

static void write_wish(const struct plan_call *call, struct buf *path)
{
    char text[CLOCK_TEXT_BYTES];

    buf_format(path, "/upcoming?count=%lld", (long long)call->count);
    if (call->from_us == 0)
        return;
    clock_format(call->from_us, text);
    buf_text(path, "&from=");
    buf_text(path, text);
}

int lib_remote_plan(struct pd *pd, const struct plan_call *call, struct arena *arena,
                    struct str *reply, struct err *err)
{
    static const char *const methods[] = {
        [PLAN_CREATE] = "POST",   [PLAN_GET] = "GET",  [PLAN_LIST] = "GET", [PLAN_UPDATE] = "PATCH",
        [PLAN_DELETE] = "DELETE", [PLAN_RUN] = "POST", [PLAN_NEXT] = "GET"};
    bool with_body = call->op == PLAN_CREATE || call->op == PLAN_UPDATE || call->op == PLAN_RUN;
    BUF_AUTO struct buf path = BUF_INIT(PATH_BYTES_MAX);

    write_place(call, &path);
    if (call->op == PLAN_LIST)
        TRY(write_filters(call, arena, &path, err));
    else if (call->op == PLAN_NEXT)
        write_wish(call, &path);
    else if (call->op == PLAN_RUN)
        buf_text(&path, ":run");
    buf_append(&path, "", 1);
    if (path.failed)
        return err_set(err, ERR_INVALID, "the names or filters are too long");
    return lib_remote_request(pd, methods[call->op], path.data, with_body ? call->json : STR_NONE,
                              arena, reply, err);
}
