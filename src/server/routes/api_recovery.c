/* /v1/recovery: the recovery queue (B4), what discovery finds (B5), and whether a task can be
 * recovered (B6). The engine decides what is allowed. Loop thread, but for the read_
 * functions. */
#include "server/api.h"
#include "server/body.h"
#include "server/door/door.h"
#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"
#include "store/recovery_store.h"

#define CURSOR_ENTRY 'r'
#define CURSOR_CANDIDATE 'c'
#define CURSOR_BYTES 32            /* of a candidate; an entry has its id only */
#define CHUNK 50                   /* rows that are read at once where some are passed over */
#define LOOK_US INT64_C(300000)    /* at rows of other users; the cursor continues */
#define TASK_BYTES_MAX ((size_t)16 * 1024 * 1024)

static const struct recovery_verbs *verbs_of(const struct api_call *call)
{
    return call->server->store->verbs->recovery;
}

static void begin_list(struct api_call *call)
{
    buf_text(&call->out, "{\"items\":[");
}

/* The cursor is the bytes of what was shown last. */
static int end_list(struct api_call *call, char kind, const uint8_t *bytes, size_t len, bool more)
{
    buf_byte(&call->out, ']');
    call_write_cursor_bytes(&call->out, kind, bytes, len, more);
    buf_byte(&call->out, '}');
    return 0;
}

/* ---- pages ---- */

/* A page of a list whose rows belong to tasks. Rows of other users are passed over, for a while,
 * and the cursor is the row that was shown last: whether there is a next page, and where it begins,
 * must not tell of them. */
struct recovery_page {
    uint32_t left;   /* to be shown */
    uint32_t chunk;  /* rows that are read at once */
    int64_t end_us;  /* of passing over rows */
    bool more, next; /* there may be more; there is one more to be shown */
    uint8_t looked[CURSOR_BYTES], shown[CURSOR_BYTES];
};

static struct recovery_page begin_page(const struct api_call *call, uint32_t limit)
{
    bool limited = call_has_user(call);

    return (struct recovery_page){.left = limit, .chunk = limited ? CHUNK : limit, .more = true,
                                  .end_us = limited ? clock_boot_us() + LOOK_US : 0};
}

/* Notes the row with this cursor; whether it is to be written. */
static bool page_shows(struct recovery_page *page, bool hides, const uint8_t *cursor)
{
    page->next = !hides && page->left == 0;
    if (page->next)
        return false;
    memcpy(page->looked, cursor, CURSOR_BYTES);
    if (hides)
        return false;
    memcpy(page->shown, cursor, CURSOR_BYTES);
    page->left--;
    return true;
}

/* Behind a chunk of this many rows: whether another one is read. */
static bool page_goes_on(struct recovery_page *page, uint32_t count)
{
    page->more = page->next || count == page->chunk;
    return page->more && !page->next && page->end_us && clock_boot_us() < page->end_us;
}

static int end_page(struct api_call *call, const struct recovery_page *page, char kind, size_t len)
{
    return end_list(call, kind, page->left ? page->looked : page->shown, len, page->more);
}

/* ---- entries ---- */

static int read_entries_chunk(struct api_call *call, struct store_reader *reader,
                              struct arena *scratch, struct recovery_filter *filter,
                              struct recovery_page *page, uint32_t *count)
{
    struct recovery_entry *entries = NULL;

    filter->limit = page->chunk;
    TRY(verbs_of(call)->read_entries(reader, filter, scratch, &entries, count, &call->err));
    for (uint32_t i = 0; i < *count && !page->next; i++) {
        uint8_t cursor[CURSOR_BYTES] = {0};
        bool hides;

        memcpy(cursor, entries[i].id.bytes, 16);
        filter->before_id = entries[i].id;
        TRY(call_hides_id(call, reader, &entries[i].task_id, scratch, &hides));
        if (!page_shows(page, hides, cursor))
            continue;
        json_comma(&call->out);
        recovery_render_entry(&call->out, &entries[i], !call_sees_content(call));
    }
    return 0;
}

static int read_entries(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct recovery_filter filter = *(const struct recovery_filter *)call->ctx;
    struct recovery_page page = begin_page(call, filter.limit);
    uint32_t count;

    begin_list(call);
    do {
        arena_reset(scratch);
        TRY(read_entries_chunk(call, reader, scratch, &filter, &page, &count));
    } while (page_goes_on(&page, count));
    return end_page(call, &page, CURSOR_ENTRY, 16);
}

static int parse_words(struct api_call *call, struct recovery_filter *filter)
{
    struct str status = call_parameter(call, "status");
    struct str method = call_parameter(call, "method");
    enum recovery_status status_value;
    enum recovery_method method_value;

    filter->status = filter->method = -1;
    if (status.data && !recovery_status_parse(status, &status_value))
        return err_set_field(&call->err, ERR_INVALID, "status", "'status' must be pending, "
                             "processing, completed or failed");
    if (method.data && !recovery_method_parse(method, &method_value))
        return err_set_field(&call->err, ERR_INVALID, "method", "'method' must be "
                             "resume_checkpoint, restart_clean or validate_only");
    if (status.data)
        filter->status = (int)status_value;
    if (method.data)
        filter->method = (int)method_value;
    return 0;
}

int api_recovery_list(struct api_call *call)
{
    struct recovery_filter *filter = CALL_NEW(call, sizeof *filter);
    bool given;

    filter->namespace_name = call_namespace(call);
    TRY(parse_words(call, filter));
    TRY(call_parameter_uuid(call, "task_id", &filter->task_id));
    TRY(call_list_limit(call, &filter->limit));
    TRY(call_cursor_bytes(call, CURSOR_ENTRY, filter->before_id.bytes, 16, &given));
    call_reads_long(call, call_has_user(call));
    return call_read(call, read_entries);
}

static int read_entry(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct recovery_entry *entry = NULL;
    bool hides = false;

    TRY(verbs_of(call)->read_entry(reader, &call->task_id, scratch, &entry, &call->err));
    if (entry)
        TRY(call_hides_id(call, reader, &entry->task_id, scratch, &hides));
    if (!entry || hides || call_hides(call, entry->namespace_name))
        return err_set(&call->err, ERR_NOT_FOUND, "there is no recovery with this id");
    recovery_render_entry(&call->out, entry, !call_sees_content(call));
    return 0;
}

int api_recovery_get(struct api_call *call)
{
    if (!uuid_parse(call->name, &call->task_id))
        return err_set(&call->err, ERR_NOT_FOUND,
                       "there is no such recovery; an id is 36 characters");
    return call_read(call, read_entry);
}

/* ---- candidates ---- */

static int read_candidates_chunk(struct api_call *call, struct store_reader *reader,
                                 struct arena *scratch, struct candidate_filter *filter,
                                 struct recovery_page *page, uint32_t *count)
{
    struct recovery_candidate *candidates = NULL;

    filter->limit = page->chunk;
    TRY(verbs_of(call)->read_candidates(reader, filter, scratch, &candidates, count, &call->err));
    for (uint32_t i = 0; i < *count && !page->next; i++) {
        const struct task *task = candidates[i].task;
        uint8_t cursor[CURSOR_BYTES];

        filter->goes_on = true;
        filter->after_priority = task->spec.recovery_priority;
        filter->after_updated_us = task->updated_at_us;
        filter->after_id = task->id;
        memcpy(cursor, &filter->after_priority, 8);
        memcpy(cursor + 8, &filter->after_updated_us, 8);
        memcpy(cursor + 16, task->id.bytes, 16);
        if (!page_shows(page, call_hides_task(call, task), cursor))
            continue;
        json_comma(&call->out);
        recovery_render_candidate(&call->out, &candidates[i]);
    }
    return 0;
}

static int read_candidates(struct api_call *call, struct store_reader *reader,
                           struct arena *scratch)
{
    struct candidate_filter filter = *(const struct candidate_filter *)call->ctx;
    struct recovery_page page = begin_page(call, filter.limit);
    uint32_t count;

    begin_list(call);
    do {
        arena_reset(scratch);
        TRY(read_candidates_chunk(call, reader, scratch, &filter, &page, &count));
    } while (page_goes_on(&page, count));
    return end_page(call, &page, CURSOR_CANDIDATE, CURSOR_BYTES);
}

static int parse_auto_recovery(struct api_call *call, struct candidate_filter *filter)
{
    struct str text = call_parameter(call, "auto_recovery");

    filter->auto_recovery = 1;
    if (!text.data || str_is(text, "true"))
        return 0;
    filter->auto_recovery = str_is(text, "false") ? 0 : -1;
    if (filter->auto_recovery == 0 || str_is(text, "any"))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "auto_recovery",
                         "'auto_recovery' must be true, false or any");
}

int api_recovery_candidates(struct api_call *call)
{
    struct candidate_filter *filter = CALL_NEW(call, sizeof *filter);
    uint8_t bytes[32] = {0};

    filter->namespace_name = call_namespace(call);
    TRY(parse_auto_recovery(call, filter));
    TRY(call_list_limit(call, &filter->limit));
    TRY(call_cursor_bytes(call, CURSOR_CANDIDATE, bytes, sizeof bytes, &filter->goes_on));
    memcpy(&filter->after_priority, bytes, 8);
    memcpy(&filter->after_updated_us, bytes + 8, 8);
    memcpy(filter->after_id.bytes, bytes + 16, 16);
    filter->now_us = engine_now_us(call->server->engine);
    filter->stall_after_ms = RECOVERY_STALL_AFTER_MS;
    call_reads_long(call, true);
    return call_read(call, read_candidates);
}

/* ---- putting and validating ---- */

static int parse_task_id(const struct body_field *field, struct arena *arena, struct uuid *id,
                         struct err *err)
{
    struct str text = STR_NONE;

    TRY(body_text(field, BOUND_NAME_BYTES, arena, &text, err));
    if (text.data && uuid_parse(text, id))
        return 0;
    return err_set_field(err, ERR_INVALID, "task_id",
                         "'task_id' must be the id of a task, 36 characters");
}

int api_parse_method(const struct body_field *field, struct arena *arena,
                     enum recovery_method *method, struct err *err)
{
    struct str word = STR("resume_checkpoint");

    TRY(body_text(field, BOUND_NAME_BYTES, arena, &word, err));
    if (recovery_method_parse(word, method))
        return 0;
    return err_set_field(err, ERR_INVALID, field->name, "'%s' must be resume_checkpoint, "
                         "restart_clean or validate_only", field->name);
}

static int parse_time(const struct body_field *field, struct arena *arena, int64_t *time_us,
                      struct err *err)
{
    struct str text = STR_NONE;

    TRY(body_text(field, 64, arena, &text, err));
    if (!text.data || clock_parse(text, time_us))
        return 0;
    return err_set_field(err, ERR_INVALID, field->name,
                         "'%s' must be a time such as 2027-03-28T01:00:00Z", field->name);
}

/* The short name, as in :recover, or that of the entry's column; not both. */
static int one_of(const struct body_field *brief, const struct body_field *column,
                  const struct body_field **one, struct err *err)
{
    *one = brief->value.data ? brief : column;
    if (!brief->value.data || !column->value.data)
        return 0;
    return err_set_field(err, ERR_INVALID, column->name, "'%s' and '%s' set the same value; give "
                         "one of them", brief->name, column->name);
}

static int parse_put(struct api_call *call, struct recovery_request *request)
{
    enum { TASK_ID, METHOD, PRIORITY, SCHEDULED_FOR, RECOVERY_METHOD, RECOVERY_PRIORITY, COUNT };
    struct body_field fields[COUNT] = {{.name = "task_id"}, {.name = "method"},
                                       {.name = "priority"}, {.name = "scheduled_for"},
                                       {.name = "recovery_method"}, {.name = "recovery_priority"}};
    const struct body_field *method = &fields[METHOD], *priority = &fields[PRIORITY];
    struct str object;

    TRY(call_object(call, &object));
    TRY(body_parse(object, fields, COUNT, &call->err));
    TRY(parse_task_id(&fields[TASK_ID], call->arena, &request->task_id, &call->err));
    TRY(one_of(&fields[METHOD], &fields[RECOVERY_METHOD], &method, &call->err));
    TRY(one_of(&fields[PRIORITY], &fields[RECOVERY_PRIORITY], &priority, &call->err));
    TRY(api_parse_method(method, call->arena, &request->method, &call->err));
    TRY(body_int(priority, -BOUND_PRIORITY, BOUND_PRIORITY, &request->priority, &call->err));
    request->has_priority = priority->value.data != NULL;
    return parse_time(&fields[SCHEDULED_FOR], call->arena, &request->scheduled_for_us,
                      &call->err);
}

static int put_done(struct api_call *call)
{
    const struct recovery_request *request = call->ctx;

    call_location(call, "/v1/recovery/", &request->entry.id);
    recovery_render_entry(&call->out, &request->entry, !call_sees_content(call));
    return call_reply(call, 201);
}

int api_recovery_put(struct api_call *call)
{
    struct recovery_request *request = CALL_NEW(call, sizeof *request);

    TRY(parse_put(call, request));
    request->op = RECOVERY_OP_PUT;
    return call_submit(call, &request->base, REQUEST_RECOVERY, put_done);
}

static int parse_validate(struct api_call *call, struct recovery_request *request)
{
    struct body_field fields[] = {{.name = "task_id"}, {.name = "method"}};
    struct str object;

    TRY(call_object(call, &object));
    TRY(body_parse(object, fields, 2, &call->err));
    TRY(parse_task_id(&fields[0], call->arena, &request->task_id, &call->err));
    return api_parse_method(&fields[1], call->arena, &request->method, &call->err);
}

/* For a type with a validator: the server asks it on a separate thread. */
struct asking {
    struct recovery_request request; /* first: the call's ctx is this */
    struct recovery_question question;
    struct str task; /* as JSON, where there is a validator */
    struct loop_item item;
    struct api_call *call;
};

/* What a validator says is content, as in an entry of the queue. */
static void write_verdict(struct buf *out, const struct asking *asking, bool redacted)
{
    const struct recovery_question *question = &asking->question;

    buf_format(out, "{\"valid\":%s,\"reason\":", question->valid ? "true" : "false");
    if (question->valid || redacted)
        buf_text(out, "null");
    else
        json_write_string(out, str_of(question->reason));
    buf_text(out, ",\"detail\":");
    buf_str(out, json_get(asking->request.verdict, STR("detail")));
    if (redacted)
        render_bool(out, "redacted", true);
    buf_byte(out, '}');
}

static int reply_asked(struct api_call *call)
{
    const struct asking *asking = call->ctx;

    if (!asking->question.asked)
        return err_set(&call->err, ERR_UNAVAILABLE, "the validator of the task's type is busy "
                       "with other requests; try again");
    write_verdict(&call->out, asking, !call_sees_content(call));
    return call_reply(call, 200);
}

static void answered(struct loop_item *item)
{
    struct asking *asking = (struct asking *)(void *)((char *)item -
                                                      offsetof(struct asking, item));

    call_run(asking->call, reply_asked);
}

/* On the thread that asked. */
static void question_done(struct recovery_question *question)
{
    struct asking *asking = (struct asking *)(void *)((char *)question -
                                                      offsetof(struct asking, question));

    asking->item.run = answered;
    loop_post(asking->call->server->loop, &asking->item);
}

static int validated(struct api_call *call)
{
    struct asking *asking = call->ctx;
    const struct recovery_request *request = &asking->request;
    const struct server *server = call->server;

    if (request->reason != RECOVERY_VALID || !request->validates || !asking->task.data) {
        buf_str(&call->out, request->verdict);
        return call_reply(call, 200);
    }
    asking->call = call;
    asking->question = (struct recovery_question){.task_id = request->task_id,
                                                  .type = request->type,
                                                  .task = asking->task,
                                                  .done = question_done};
    if (server->ask_validator && server->ask_validator(server->ask_ctx, &asking->question))
        return 0;
    return err_set(&call->err, ERR_UNAVAILABLE,
                   "too many requests wait for validators; try again");
}

static bool has_validator(const struct api_call *call, const struct task *task)
{
    const struct handler_rule *rule = settings_handler(call->server->settings, task->spec.type);

    return rule && (rule->validate_command || rule->validate_url.data);
}

/* On a reader's thread. */
static int look_for_task(struct api_call *call, struct store_reader *reader,
                         struct arena *scratch)
{
    struct asking *asking = call->ctx;
    BUF_AUTO struct buf text = BUF_INIT(TASK_BYTES_MAX);
    struct task *task = NULL;

    TRY(call->server->store->verbs->read_task(reader, &asking->request.task_id, scratch, &task,
                                              &call->err));
    if (task && (call_hides(call, task->spec.namespace_name) || call_hides_task(call, task)))
        task = NULL;
    asking->request.reason = task ? RECOVERY_VALID : RECOVERY_NOT_FOUND;
    if (!task || !has_validator(call, task))
        return 0;
    render_task(&text, task, NULL);
    asking->task = text.failed ? STR_NONE : arena_str(call->arena, buf_view(&text));
    return asking->task.data ? 0 : call_no_memory(call);
}

/* A task that is not there is an answer here, not an error. */
static int looked(struct api_call *call)
{
    struct recovery_request *request = call->ctx;

    if (request->reason == RECOVERY_VALID)
        return call_submit(call, &request->base, REQUEST_RECOVERY, validated);
    buf_text(&call->out, "{\"valid\":false,\"reason\":\"not_found\",\"detail\":{");
    render_uuid(&call->out, "task_id", &request->task_id);
    buf_text(&call->out, "}}");
    return refusal_timer_reply(call->server->door->refusal_timer, call, 200);
}

int api_recovery_validate(struct api_call *call)
{
    struct asking *asking = CALL_NEW(call, sizeof *asking);

    TRY(parse_validate(call, &asking->request));
    asking->request.op = RECOVERY_OP_VALIDATE;
    return call_look(call, look_for_task, looked);
}
