/* Requests about what people plan with. See thing.h. One thread. */
#include "cli/plans/thing.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/uuid7.h"
#include "cli/frame/listing.h"
#include "cli/plans/instants.h"

#define SAME_NAME_SHOWN 5
#define NAMES_MAX 1000 /* jobs asked for per page of a list; the rest goes by id */

/* ---- finding ---- */

static int several(struct client *client, const struct thing *thing, struct str items,
                   struct str text)
{
    struct call *call = client->call;
    BUF_AUTO struct buf ids = BUF_INIT(512);
    struct json_iter iter;
    struct str item;

    json_begin(items, &iter);
    while (json_next_element(&iter, &item)) {
        if (ids.len > 0)
            buf_text(&ids, ", ");
        buf_str(&ids, view_member(call, item, "id"));
    }
    (void)err_set(&call->err, ERR_CONFLICT, "several have the name '%.*s'; give the id of one %s: "
                  STR_FMT, text.len > 80 ? 80 : (int)text.len, text.data, thing->word,
                  STR_ARG(buf_view(&ids)));
    return -(int)ERR_CONFLICT;
}

/* The only item of a list. */
static int take_only(struct client *client, const struct thing *thing, struct str reply,
                     struct str text, struct str *id)
{
    struct call *call = client->call;
    struct str items = view_items(reply);
    struct json_iter iter;
    struct str item;

    if (json_count(items) > 1)
        return several(client, thing, items, text);
    json_begin(items, &iter);
    *id = json_next_element(&iter, &item) ? view_member(call, item, "id") : STR_NONE;
    if (id->data)
        return 0;
    return err_set(&call->err, ERR_NOT_FOUND, "there is no %s '%.*s'; 'perdura %s list' shows what "
                   "there is", thing->word, text.len > 100 ? 100 : (int)text.len, text.data,
                   thing->word);
}

/* A schedule goes by the name of its job. */
static int find_of_job(struct client *client, struct str text, struct str *id)
{
    struct str job_id;
    struct str reply = STR_NONE;
    int rc = thing_find(client, &thing_job, text, &job_id);

    if (rc == 0)
        rc = client_get(client, client_path(client->call, thing_job.path, job_id,
                                            "/schedules?limit=5"), &reply);
    if (rc == -ERR_NOT_FOUND)
        return err_set(&client->call->err, ERR_NOT_FOUND, "there is no schedule with this id and "
                       "no job '%.*s'; 'perdura schedule list' shows what there is",
                       text.len > 100 ? 100 : (int)text.len, text.data);
    return rc < 0 ? rc : take_only(client, &thing_schedule, reply, text, id);
}

int thing_find(struct client *client, const struct thing *thing, struct str text,
                 struct str *id)
{
    BUF_AUTO struct buf path = BUF_INIT(8192);
    struct str reply = STR_NONE;
    struct uuid parsed;

    *id = text;
    if (uuid_parse(text, &parsed))
        return 0;
    if (thing == &thing_schedule)
        return find_of_job(client, text, id);
    buf_append(&path, thing->path, strlen(thing->path) - 1);
    buf_format(&path, "?limit=%d&name=", SAME_NAME_SHOWN);
    command_write_escaped(&path, text);
    if (path.failed)
        return err_set(&client->call->err, ERR_NOT_FOUND, "the name is too long for a %s",
                       thing->word);
    TRY(client_get(client, buf_view(&path), &reply));
    return take_only(client, thing, reply, text, id);
}

/* ---- requests ---- */

int thing_request(struct client *client, const char *method, const struct thing *thing,
                    struct str id, const char *after, struct str body, struct str *reply)
{
    TRY(client_call(client, method, client_path(client->call, thing->path, id, after), body,
                    CLIENT_TIMEOUT_MS, reply));
    if (strcmp(method, "DELETE") != 0)
        TRY(client_check_object(client, *reply));
    return 0;
}

int thing_create(struct client *client, const struct thing *thing, struct str body,
                   struct str *reply)
{
    TRY(client_call(client, "POST", str_span(thing->path, strlen(thing->path) - 1), body,
                    CLIENT_TIMEOUT_MS, reply));
    return client_check_object(client, *reply);
}

/* Opens the client and asks for args[0]. */
static int ask_for(struct client *client, struct call *call, const char *method, const char *after,
                   struct str body, struct str *reply)
{
    const struct thing *thing = call->command->about;
    struct str id;

    TRY(client_open(client, call));
    TRY(thing_find(client, thing, call->args[0], &id));
    return thing_request(client, method, thing, id, after, body, reply);
}

/* A person reads it beside the output; a program gets an object per line. */
static void print_deleted(struct call *call, const struct thing *thing, struct str id)
{
    BUF_AUTO struct buf object = BUF_INIT(4096);

    if (!call_given(call, "json")) {
        terminal_line_clean(&call->notes, COLOUR_NONE,
                            arena_format(&call->arena, "deleted %s " STR_FMT, thing->word,
                                         STR_ARG(id)));
        return;
    }
    buf_byte(&object, '{');
    json_write_member_string(&object, "id", id);
    buf_text(&object, ",\"deleted\":true}");
    terminal_json(&call->out, buf_view(&object));
}

int thing_run_delete(struct call *call)
{
    const struct thing *thing = call->command->about;
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;
    struct str id;

    TRY(client_open(&client, call));
    for (uint32_t i = 0; i < call->args_count; i++) {
        TRY(thing_find(&client, thing, call->args[i], &id));
        TRY(thing_request(&client, "DELETE", thing, id, "", STR_NONE, &reply));
        print_deleted(call, thing, id);
    }
    return 0;
}

/* ---- printing ---- */

void thing_print(struct call *call, struct str reply, const struct view_column *columns,
                   uint32_t columns_count)
{
    if (call_given(call, "json"))
        terminal_json(&call->out, reply);
    else
        view_record(call, reply, columns, columns_count);
}

int thing_print_id(struct call *call, struct str reply)
{
    struct str id = view_member(call, reply, "id");

    if (!id.data)
        return err_set(&call->err, ERR_IO, "the server's answer names no id; is it a Perdura "
                       "server?");
    if (call_given(call, "json"))
        terminal_json(&call->out, reply);
    else
        terminal_line_clean(&call->out, COLOUR_NONE, id);
    return 0;
}

/* ---- names ---- */

struct job_name {
    struct str id;
    struct str name;
};

struct job_names {
    struct job_name *seen;
    uint32_t count;
};

/* Each job is asked for once per page. */
static int find_name(struct client *client, struct job_names *names, struct str id,
                     struct str *name)
{
    struct call *call = client->call;
    struct str reply = STR_NONE;
    int rc = 0;

    for (uint32_t i = 0; i < names->count; i++)
        if (str_eq(names->seen[i].id, id)) {
            *name = names->seen[i].name;
            return 0;
        }
    *name = id;
    if (names->count == NAMES_MAX)
        return 0;
    rc = thing_request(client, "GET", &thing_job, id, "", STR_NONE, &reply);
    if (rc == -ERR_NOT_FOUND)
        rc = 0;
    else if (rc == 0 && view_member(call, reply, "name").data)
        *name = view_member(call, reply, "name");
    names->seen[names->count++] = (struct job_name){id, *name};
    return rc;
}

static int name_one(struct client *client, struct job_names *names, struct str object,
                    const char *member, struct buf *out)
{
    struct str id = view_member(client->call, object, member);
    struct str name = STR_NONE;
    int rc = id.data ? find_name(client, names, id, &name) : 0;

    if (json_kind(object) != JSON_OBJECT)
        object = STR("{}");
    buf_append(out, object.data, object.len - 1);
    buf_text(out, json_count(object) ? "," : "");
    json_write_member_string(out, "job", name);
    buf_byte(out, '}');
    return rc;
}

int thing_name_jobs(struct client *client, struct str value, const char *member,
                    struct str *named)
{
    struct call *call = client->call;
    BUF_AUTO struct buf out = BUF_INIT(2 * CLIENT_REPLY_BYTES_MAX);
    struct job_names names = {arena_alloc_array(&call->arena, NAMES_MAX, sizeof *names.seen), 0};
    struct json_iter iter;
    struct str item;
    int rc = 0;

    if (!names.seen) {
        rc = err_no_memory(&call->err);
    } else if (json_kind(value) == JSON_OBJECT) {
        rc = name_one(client, &names, value, member, &out);
    } else {
        buf_byte(&out, '[');
        json_begin(value, &iter);
        while (rc == 0 && json_next_element(&iter, &item)) {
            json_comma(&out);
            rc = name_one(client, &names, item, member, &out);
        }
        buf_byte(&out, ']');
    }
    *named = arena_str(&call->arena, buf_view(&out));
    if (rc == 0 && (out.failed || !named->data))
        rc = err_no_memory(&call->err);
    return rc;
}

/* ---- bodies ---- */

void thing_unset(struct call *call, struct str name, struct buf *body)
{
    const struct flag *flag;

    for (uint32_t i = 0; (flag = command_flag_at(call->command, i)) != NULL; i++)
        if (flag->field && str_is(name, flag->name)) {
            name = str_of(flag->field);
            break;
        }
    json_comma(body);
    json_write_string(body, name);
    buf_text(body, ":null");
}

int thing_write_unset(struct call *call, struct buf *body)
{
    struct str *fields;
    uint32_t count;
    int rc = call_list(call, "unset", &fields, &count);

    for (uint32_t i = 0; rc == 0 && i < count; i++)
        thing_unset(call, fields[i], body);
    return rc;
}

static int check_change(struct call *call, const struct buf *body)
{
    if (body->failed)
        return err_set(&call->err, ERR_TOO_LARGE, "the request is too large to be sent");
    if (body->len > 1)
        return 0;
    return err_set(&call->err, ERR_USAGE, "nothing to change; 'perdura " STR_FMT " --help' lists "
                   "what can be changed", STR_ARG(call->path));
}

void thing_merge(struct call *call, struct str object, struct buf *body)
{
    struct str given = arena_format(&call->arena, STR_FMT "}", STR_ARG(buf_view(body)));
    struct json_member member;
    struct json_iter iter;

    if (!object.data || json_kind(object) != JSON_OBJECT || !given.data)
        return;
    json_begin(object, &iter);
    while (json_next_member(&iter, &member)) {
        if (json_get(given, json_decode_key(member.key, &call->arena)).data)
            continue;
        json_comma(body);
        buf_byte(body, '"');
        buf_str(body, member.key);
        buf_text(body, "\":");
        buf_str(body, member.value);
    }
}

/* ---- whole commands ---- */

int thing_decorate(struct client *client, struct str items, struct str *decorated)
{
    return thing_name_jobs(client, items, client->call->command->about->job_member, decorated);
}

int thing_run_list(struct call *call)
{
    const struct thing *thing = call->command->about;

    return listing_print_decorated(call, str_span(thing->path, strlen(thing->path) - 1),
                                   thing->list_columns, thing->list_count,
                                   thing->job_member ? thing_decorate : NULL);
}

/* With the name of its job, which the reply does not have. */
static int print_one(struct client *client, struct str object)
{
    struct call *call = client->call;
    const struct thing *thing = call->command->about;

    if (thing->job_member && !call_given(call, "json"))
        TRY(thing_decorate(client, object, &object));
    thing_print(call, object, thing->show_columns, thing->show_count);
    return 0;
}

static int act(struct call *call, const char *method, const char *after, struct str body)
{
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;

    TRY(ask_for(&client, call, method, after, body, &reply));
    return print_one(&client, reply);
}

int thing_run_show(struct call *call)
{
    return act(call, "GET", "", STR_NONE);
}

int thing_run_switch(struct call *call)
{
    return act(call, "POST", strcmp(call->command->name, "pause") == 0 ? ":pause" : ":resume",
               STR("{}"));
}

int thing_run_now(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str task = STR_NONE;

    TRY(ask_for(&client, call, "POST", ":run", STR("{}"), &task));
    return thing_print_id(call, task);
}

int thing_run_create(struct call *call)
{
    const struct thing *thing = call->command->about;
    BUF_AUTO struct buf body = BUF_INIT(THING_BODY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;

    TRY(client_open(&client, call));
    buf_byte(&body, '{');
    json_write_member_string(&body, "name", call->args[0]);
    TRY(thing->write(&client, true, STR_NONE, &body));
    buf_byte(&body, '}');
    TRY(thing_create(&client, thing, buf_view(&body), &reply));
    return thing_print_id(call, reply);
}

int thing_run_update(struct call *call)
{
    const struct thing *thing = call->command->about;
    BUF_AUTO struct buf body = BUF_INIT(THING_BODY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;
    struct str id;

    if (thing->off && call_given(call, "active") && call_given(call, thing->off))
        return err_set(&call->err, ERR_USAGE, "give --active or --%s", thing->off);
    TRY(client_open(&client, call));
    if (thing->keeps) {
        TRY(thing_find(&client, thing, call->args[0], &id));
        TRY(thing_request(&client, "GET", thing, id, "", STR_NONE, &reply));
    }
    buf_byte(&body, '{');
    TRY(thing->write(&client, false, reply, &body));
    TRY(check_change(call, &body));
    buf_byte(&body, '}');
    if (!thing->keeps)
        TRY(thing_find(&client, thing, call->args[0], &id));
    TRY(thing_request(&client, "PATCH", thing, id, "", buf_view(&body), &reply));
    return print_one(&client, reply);
}

int thing_run_upcoming(struct call *call)
{
    const struct thing *thing = call->command->about;
    BUF_AUTO struct buf after = BUF_INIT(1024);
    CLIENT_AUTO struct client client = {0};
    struct str object = STR_NONE, reply = STR_NONE, zone = STR_NONE;
    struct daytimes times;
    bool has_times;
    struct str id;

    TRY(client_open(&client, call));
    buf_text(&after, "/upcoming");
    TRY(call_write_query(call, &after));
    buf_byte(&after, '\0');
    TRY(thing_find(&client, thing, call->args[0], &id));
    TRY(thing_request(&client, "GET", thing, id, "", STR_NONE, &object));
    TRY(thing_request(&client, "GET", thing, id, after.data, STR_NONE, &reply));
    has_times = thing->times(call, object, &zone, &times);
    return instants_print_reply(call, reply, zone, has_times ? &times : NULL,
                                call_time_us(call, "from", clock_wall_us()));
}
