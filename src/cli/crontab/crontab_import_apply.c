/* Bringing a server's jobs in line with a crontab. Jobs that an import made before are found by
 * their names; what is as the line says is left alone, so that doing it again changes nothing, and
 * what was cut short is completed. See crontab_import.h. One thread. */
#include "cli/crontab/crontab_import.h"

#include "base/json.h"
#include "cli/plans/thing.h"
#include "core/bounds.h"

#define PAGES_MAX 1000

struct known_job {
    struct str name;
    struct str id;
    struct str payload; /* canonical */
    bool wanted;
};

struct known_jobs {
    struct known_job *jobs;
    uint32_t count;
    uint32_t cap;
};

/* ---- what is there ---- */

static struct str canonical(struct arena *arena, struct str json)
{
    BUF_AUTO struct buf out = BUF_INIT(16 * CRONTAB_BYTES_MAX);
    struct str copy = STR_NONE;

    if (json.data && json_canonical(json, &out, NULL) == 0)
        copy = arena_str(arena, buf_view(&out));
    return copy;
}

static int keep_job(struct import *import, struct known_jobs *known, struct str job,
                    struct arena *kept)
{
    struct call *call = import->call;
    struct known_job *jobs;

    if (known->count == known->cap) {
        known->cap = known->cap ? known->cap * 2 : 64;
        jobs = arena_alloc_array(kept, known->cap, sizeof *jobs);
        if (!jobs)
            return err_no_memory(&call->err);
        if (known->count)
            memcpy(jobs, known->jobs, known->count * sizeof *jobs);
        known->jobs = jobs;
    }
    known->jobs[known->count++] =
        (struct known_job){.name = arena_str(kept, view_member(call, job, "name")),
                           .id = arena_str(kept, view_member(call, job, "id")),
                           .payload = canonical(kept, json_get(job, STR("payload")))};
    return 0;
}

static int keep_page(struct import *import, struct known_jobs *known, struct str reply,
                     struct arena *kept)
{
    struct json_iter iter;
    struct str item;

    json_begin(view_items(reply), &iter);
    while (json_next_element(&iter, &item))
        if (str_starts(view_member(import->call, item, "name"), import->prefix))
            TRY(keep_job(import, known, item, kept));
    return 0;
}

/* All jobs whose names begin like those of this crontab, page by page: each page has its own
 * memory. */
static int load_known(struct import *import, struct client *client, struct known_jobs *known)
{
    struct call *call = import->call;
    struct arena kept = call->arena;
    BUF_AUTO struct buf path = BUF_INIT(65536);
    struct str cursor = STR_NONE;
    uint32_t pages = 0;
    int rc = 0;

    call->arena = ARENA_INIT(4 * CLIENT_REPLY_BYTES_MAX);
    do {
        struct str reply = STR_NONE;

        buf_reset(&path);
        buf_format(&path, "/v1/jobs?limit=%d", BOUND_LIST_LIMIT);
        if (cursor.len > 0)
            buf_text(&path, "&cursor=");
        command_write_escaped(&path, cursor);
        arena_reset(&call->arena);
        rc = client_get(client, buf_view(&path), &reply);
        if (rc == 0)
            rc = keep_page(import, known, reply, &kept);
        cursor = view_member(call, reply.data ? reply : STR("{}"), "next_cursor");
    } while (rc == 0 && cursor.len > 0 && ++pages < PAGES_MAX);
    arena_deinit(&call->arena);
    call->arena = kept;
    return rc;
}

static struct known_job *find_known(struct known_jobs *known, struct str name)
{
    for (uint32_t i = 0; i < known->count; i++)
        if (str_eq(known->jobs[i].name, name))
            return &known->jobs[i];
    return NULL;
}

/* ---- requests of one line ---- */

static void write_schedule(struct import *import, const struct import_line *planned, bool is_new,
                           struct buf *out)
{
    struct call *call = import->call;

    buf_byte(out, '{');
    if (planned->line->every_s > 0)
        buf_format(out, "\"schedule_type\":\"interval\",\"interval_seconds\":%lld",
                   (long long)planned->line->every_s);
    else
        buf_text(out, "\"schedule_type\":\"cron\",");
    if (planned->line->every_s == 0)
        json_write_member_string(out, "cron_expression", planned->line->expression);
    json_write_member_string(out, "timezone", planned->timezone);
    buf_format(out, ",\"jitter_ms\":%lld", (long long)planned->jitter_ms);
    if (!is_new)
        buf_text(out, planned->line->every_s ? ",\"cron_expression\":null"
                                             : ",\"interval_seconds\":null");
    if (is_new && call_given(call, "misfire"))
        json_write_member_string(out, "misfire", call_given_text(call, "misfire"));
    if (is_new && call_given(call, "overlap"))
        json_write_member_string(out, "overlap", call_given_text(call, "overlap"));
    buf_byte(out, '}');
}

static bool int_is(struct str object, const char *member, int64_t expected)
{
    struct str value = json_get(object, str_of(member));
    int64_t number = 0;

    return (!value.data || json_kind(value) == JSON_NULL || json_int64(value, &number)) &&
           number == expected;
}

static bool schedule_is(struct call *call, struct str schedule, const struct import_line *planned)
{
    const struct crontab_line *line = planned->line;

    return str_eq(view_member(call, schedule, "timezone"), planned->timezone) &&
           int_is(schedule, "jitter_ms", planned->jitter_ms) &&
           int_is(schedule, "interval_seconds", line->every_s) &&
           (line->every_s > 0 ||
            str_eq(view_member(call, schedule, "cron_expression"), line->expression));
}

/* The schedule of a line: one that is as it should be, else the job's oldest, else a new one. */
static int put_schedule(struct import *import, struct client *client, struct import_line *planned,
                        bool *changed)
{
    struct call *call = import->call;
    BUF_AUTO struct buf body = BUF_INIT(65536);
    struct str schedule = STR_NONE;
    struct str reply = STR_NONE;
    struct json_iter iter;
    struct str item;
    int rc = thing_request(client, "GET", &thing_job, planned->job_id, "/schedules?limit=1000",
                           STR_NONE, &reply);

    json_begin(view_items(reply), &iter);
    while (rc == 0 && json_next_element(&iter, &item)) {
        schedule = item;
        if (schedule_is(call, item, planned))
            return rc;
    }
    *changed = true;
    write_schedule(import, planned, !schedule.data, &body);
    if (rc == 0 && schedule.data)
        rc = thing_request(client, "PATCH", &thing_schedule, view_member(call, schedule, "id"), "",
                           buf_view(&body), &reply);
    else if (rc == 0)
        rc = thing_request(client, "POST", &thing_job, planned->job_id, "/schedules",
                           buf_view(&body), &reply);
    return rc;
}

static int create_job(struct import *import, struct client *client, struct import_line *planned)
{
    struct call *call = import->call;
    BUF_AUTO struct buf body = BUF_INIT(16 * CRONTAB_BYTES_MAX);
    struct str reply = STR_NONE;
    struct str queue = call_given_text(call, "queue");
    int rc;

    buf_byte(&body, '{');
    json_write_member_string(&body, "name", planned->name);
    buf_text(&body, ",\"task_type\":\"" IMPORT_TASK_TYPE "\",\"max_retries\":0,");
    json_write_member_string(&body, "description",
                             arena_format(&call->arena, "from the crontab " STR_FMT,
                                          STR_ARG(import->label)));
    buf_format(&body, ",\"timeout_seconds\":%lld",
               (long long)call_duration_ms(call, "timeout", 0) / 1000);
    if (queue.data)
        json_write_member_string(&body, "queue", queue);
    buf_text(&body, ",\"payload\":");
    buf_str(&body, planned->payload);
    buf_byte(&body, '}');
    rc = body.failed ? err_set(&call->err, ERR_TOO_LARGE, "the line is too long")
                     : thing_create(client, &thing_job, buf_view(&body), &reply);
    if (rc == 0)
        planned->job_id = view_member(call, reply, "id");
    return rc;
}

static int update_job(struct client *client, const struct import_line *planned)
{
    BUF_AUTO struct buf body = BUF_INIT(16 * CRONTAB_BYTES_MAX);
    struct str reply = STR_NONE;

    buf_text(&body, "{\"payload\":");
    buf_str(&body, planned->payload);
    buf_byte(&body, '}');
    return thing_request(client, "PATCH", &thing_job, planned->job_id, "", buf_view(&body), &reply);
}

static int apply_line(struct import *import, struct client *client, struct known_job *known,
                      struct import_line *planned)
{
    struct call *call = import->call;
    bool changed = false;

    if (known) {
        known->wanted = true;
        planned->job_id = known->id;
        if (!str_eq(known->payload, canonical(&call->arena, planned->payload))) {
            changed = true;
            TRY(update_job(client, planned));
        }
    } else {
        TRY(create_job(import, client, planned));
    }
    TRY(put_schedule(import, client, planned, &changed));
    planned->result = !known ? IMPORT_TAKEN : changed ? IMPORT_CHANGED : IMPORT_THERE;
    return 0;
}

/* What the server refuses of one line says nothing about the others. */
static bool is_refusal(int rc)
{
    return rc == -ERR_INVALID || rc == -ERR_CONFLICT || rc == -ERR_TOO_LARGE ||
           rc == -ERR_MALFORMED || rc == -ERR_NOT_FOUND;
}

/* ---- what is gone ---- */

static int settle_gone(struct import *import, struct client *client, struct known_jobs *known,
                       bool prune)
{
    struct call *call = import->call;
    struct str reply = STR_NONE;

    import->gone = arena_alloc_array(&call->arena, known->count + 1, sizeof *import->gone);
    if (!import->gone)
        return err_no_memory(&call->err);
    for (uint32_t i = 0; i < known->count; i++) {
        struct known_job *job = &known->jobs[i];

        if (job->wanted)
            continue;
        if (prune)
            TRY(thing_request(client, "DELETE", &thing_job, job->id, "", STR_NONE, &reply));
        import->gone[import->gone_count++] = (struct import_gone){job->name, job->id, prune};
    }
    return 0;
}

int import_apply(struct import *import, struct client *client, bool prune)
{
    struct call *call = import->call;
    struct known_jobs known = {0};
    int rc = load_known(import, client, &known);

    for (uint32_t i = 0; i < import->count && rc == 0; i++) {
        struct import_line *planned = &import->lines[i];

        if (planned->result != IMPORT_PLANNED)
            continue;
        rc = apply_line(import, client, find_known(&known, planned->name), planned);
        if (is_refusal(rc)) {
            planned->result = IMPORT_REFUSED;
            planned->note = arena_str(&call->arena, str_of(call->err.text));
            rc = 0;
        }
    }
    return rc < 0 ? rc : settle_gone(import, client, &known, prune);
}
