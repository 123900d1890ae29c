/* What belongs to a task: events, executions, checkpoints, logs, result; and waiting for its end.
 * Lists are pages of the store's own order; one of an unknown task is 404, not empty. Loop thread,
 * but for the read_ functions. */
#include "server/api.h"
#include "server/server_int.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/log_match.h"
#include "core/render.h"

#define CURSOR_PART 'p'
#define LOG_LOOK_US CLOCK_SECOND_US /* for one request; the rest is for the next one */

struct part {
    uint32_t limit;
    int64_t before; /* cursor; 0 = from the newest */
};

/* A list of an unknown task is 404, not empty. */
static int check_task(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                      struct task **task)
{
    int rc = call->server->store->verbs->read_task(reader, &call->task_id, scratch, task,
                                                   &call->err);

    if (rc == 0 && !*task)
        rc = err_set(&call->err, ERR_NOT_FOUND, "there is no task with this id");
    return rc;
}

static void end_list(struct api_call *call, uint32_t count, int64_t last)
{
    const struct part *part = call->ctx;

    buf_text(&call->out, "],");
    call_write_cursor(&call->out, CURSOR_PART, last, count == part->limit);
    buf_byte(&call->out, '}');
}

static void next_item(struct buf *out, uint32_t i)
{
    buf_text(out, i ? "," : "{\"items\":[");
}

static int read_events(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct part *part = call->ctx;
    struct task_event *events = NULL;
    struct task *task = NULL;
    uint32_t count = 0;
    int rc = check_task(call, reader, scratch, &task);

    if (rc == 0)
        rc = call->server->store->verbs->read_events(reader, &call->task_id, part->before,
                                                     part->limit, scratch, &events, &count,
                                                     &call->err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        next_item(&call->out, i);
        render_event(&call->out, &events[i], &call->task_id, task->spec.correlation_id);
    }
    if (count == 0)
        next_item(&call->out, 0);
    end_list(call, count, count ? events[count - 1].seq : 0);
    return 0;
}

static int read_executions(struct api_call *call, struct store_reader *reader,
                           struct arena *scratch)
{
    const struct part *part = call->ctx;
    struct execution *executions = NULL;
    struct task *task = NULL;
    uint32_t count = 0;
    int rc = check_task(call, reader, scratch, &task);

    if (rc == 0)
        rc = call->server->store->verbs->read_executions(reader, &call->task_id, part->before,
                                                         part->limit, scratch, &executions,
                                                         &count, &call->err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        next_item(&call->out, i);
        render_execution(&call->out, &executions[i]);
    }
    if (count == 0)
        next_item(&call->out, 0);
    end_list(call, count, count ? executions[count - 1].key : 0);
    return 0;
}

static int read_checkpoints(struct api_call *call, struct store_reader *reader,
                            struct arena *scratch)
{
    const struct part *part = call->ctx;
    struct checkpoint *checkpoints = NULL;
    struct task *task = NULL;
    uint32_t count = 0;
    int rc = check_task(call, reader, scratch, &task);

    if (rc == 0)
        rc = call->server->store->verbs->read_checkpoints(reader, &call->task_id, part->before,
                                                          part->limit, scratch, &checkpoints,
                                                          &count, &call->err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        next_item(&call->out, i);
        render_checkpoint(&call->out, &checkpoints[i], &call->task_id);
    }
    if (count == 0)
        next_item(&call->out, 0);
    end_list(call, count, count ? checkpoints[count - 1].seq : 0);
    return 0;
}

static void list_part(struct api_call *call, int64_t max,
                      int (*read)(struct api_call *call, struct store_reader *reader,
                                  struct arena *scratch))
{
    struct part *part = arena_alloc(call->arena, sizeof *part);
    int rc = call_task_id(call);

    if (rc == 0 && !part)
        rc = err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    if (rc == 0)
        rc = call_limit(call, max < BOUND_LIST_LIMIT_DEFAULT ? max : BOUND_LIST_LIMIT_DEFAULT, max,
                        &part->limit);
    if (rc == 0)
        rc = call_cursor(call, CURSOR_PART, &part->before);
    if (rc < 0) {
        call_fail(call);
        return;
    }
    call->ctx = part;
    call_read(call, read);
}

void api_task_events(struct api_call *call)
{
    list_part(call, BOUND_EVENTS_LIST, read_events);
}

void api_task_executions(struct api_call *call)
{
    list_part(call, BOUND_LIST_LIMIT, read_executions);
}

void api_task_checkpoints(struct api_call *call)
{
    list_part(call, BOUND_LIST_LIMIT, read_checkpoints);
}

static void write_log(struct buf *out, const struct log_entry *entry, struct str correlation_id)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &entry->id);
    buf_byte(out, ',');
    render_uuid(out, "execution_id", &entry->execution_id);
    buf_byte(out, ',');
    render_int(out, "attempt_number", entry->attempt_number);
    buf_byte(out, ',');
    render_int(out, "seq", entry->seq);
    buf_byte(out, ',');
    render_text(out, "log_level", str_of(severity_word(entry->level)));
    buf_byte(out, ',');
    render_text(out, "message", entry->removed ? STR_NONE : entry->message);
    buf_byte(out, ',');
    render_json(out, "context", entry->removed ? STR_NONE : entry->context);
    buf_byte(out, ',');
    render_text(out, "correlation_id", correlation_id);
    buf_byte(out, ',');
    render_time(out, "logged_at", entry->logged_at_us);
    buf_byte(out, ',');
    render_text(out, "chain_hash", entry->chain_hash);
    if (entry->removed)
        buf_text(out, ",\"removed\":true");
    buf_byte(out, '}');
}

/* Lines are numbered per execution, so the cursor names both. */
static void write_log_cursor(struct buf *out, const struct uuid *execution_id, int64_t seq)
{
    buf_text(out, "],\"next_cursor\":\"l");
    for (size_t i = 0; i < sizeof execution_id->bytes; i++)
        buf_format(out, "%02x", execution_id->bytes[i]);
    buf_format(out, "%016llx\"}", (unsigned long long)seq);
}

void api_limit_look(struct api_call *call, struct log_filter *filter, struct log_stop *stop)
{
    filter->stop = stop;
    filter->cancelled = &call->cancelled;
    filter->look_until_us = clock_boot_us() + LOG_LOOK_US;
}

void api_write_logs(struct api_call *call, const struct log_filter *filter,
                    const struct log_entry *entries, uint32_t count, struct str correlation_id)
{
    for (uint32_t i = 0; i < count; i++) {
        next_item(&call->out, i);
        write_log(&call->out, &entries[i], correlation_id);
    }
    if (count == 0)
        next_item(&call->out, 0);
    if (entries && count == filter->limit)
        write_log_cursor(&call->out, &entries[count - 1].execution_id, entries[count - 1].seq);
    else if (filter->stop && filter->stop->early)
        write_log_cursor(&call->out, &filter->stop->execution_id, filter->stop->seq);
    else
        buf_text(&call->out, "],\"next_cursor\":null}");
}

struct log_query {
    struct log_filter filter; /* its limit: lines that are looked at at a time */
    struct log_match match;
    uint32_t limit;           /* lines that are answered */
};

/* One page of the store and what matches of it. Moves the filter on behind the last line that was
 * looked at, when there may be more. */
static int read_log_page(struct api_call *call, struct store_reader *reader,
                         struct log_query *query, const struct task *task, struct arena *page,
                         uint32_t *written, bool *more)
{
    const struct log_stop *stop = query->filter.stop;
    struct log_entry *entries = NULL;
    uint32_t count = 0, i;
    int rc = call->server->store->verbs->read_logs(reader, &call->task_id, &query->filter, page,
                                                   &entries, &count, &call->err);

    for (i = 0; rc == 0 && i < count; i++) {
        if (!log_match_context(&query->match, entries[i].context, page))
            continue;
        next_item(&call->out, *written);
        write_log(&call->out, &entries[i], task->spec.correlation_id);
        if (++*written == query->limit) {
            i++;
            break;
        }
    }
    *more = rc == 0 && count > 0 && (i < count || count == query->filter.limit);
    if (*more) {
        query->filter.after_execution = entries[i - 1].execution_id;
        query->filter.after_seq = entries[i - 1].seq;
    } else if (rc == 0 && stop->early) {
        *more = true;
        query->filter.after_execution = stop->execution_id;
        query->filter.after_seq = stop->seq;
    }
    return rc;
}

/* With a context to look for, page after page of the store until there are enough, or the time for
 * one request is over. */
static int read_logs(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct log_query query = *(const struct log_query *)call->ctx;
    struct log_stop stop = {0};
    struct task *task = NULL;
    uint32_t written = 0;
    bool more = true;
    int rc = check_task(call, reader, scratch, &task);

    api_limit_look(call, &query.filter, &stop);
    for (bool again = true; rc == 0 && again;) {
        struct arena page = ARENA_INIT(scratch->max_bytes);

        rc = read_log_page(call, reader, &query, task, &page, &written, &more);
        again = more && written < query.limit && query.match.pointer.data &&
                clock_boot_us() < query.filter.look_until_us && !atomic_load(&call->cancelled);
        arena_deinit(&page);
    }
    if (rc < 0)
        return rc;
    if (written == 0)
        next_item(&call->out, 0);
    if (more)
        write_log_cursor(&call->out, &query.filter.after_execution, query.filter.after_seq);
    else
        buf_text(&call->out, "],\"next_cursor\":null}");
    return 0;
}

static bool hex_byte(const char *text, uint8_t *out)
{
    unsigned value = 0;

    for (int i = 0; i < 2; i++) {
        const char *digits = "0123456789abcdef";
        const char *at = text[i] ? strchr(digits, text[i]) : NULL;

        if (!at)
            return false;
        value = value << 4 | (unsigned)(at - digits);
    }
    *out = (uint8_t)value;
    return true;
}

static int parse_log_cursor(struct api_call *call, struct log_filter *filter)
{
    struct str text = call_parameter(call, "cursor");
    uint8_t bytes[24];
    uint64_t seq = 0;
    size_t i = 0;

    if (!text.data)
        return 0;
    while (text.len == 1 + 2 * sizeof bytes && text.data[0] == 'l' && i < sizeof bytes &&
           hex_byte(text.data + 1 + 2 * i, &bytes[i]))
        i++;
    for (size_t j = 16; i == sizeof bytes && j < sizeof bytes; j++)
        seq = seq << 8 | bytes[j];
    if (i < sizeof bytes || seq > INT64_MAX)
        return err_set_field(&call->err, ERR_INVALID, "cursor",
                             "'cursor' must be the next_cursor of the page before");
    memcpy(filter->after_execution.bytes, bytes, 16);
    filter->after_seq = (int64_t)seq;
    return 0;
}

int api_parse_log_filter(struct api_call *call, struct log_filter *filter)
{
    struct str level = call_parameter(call, "level");
    int rc = 0;

    filter->level_min = SEVERITY_DEBUG;
    filter->text = call_parameter(call, "q");
    if (level.data && !severity_parse(level, &filter->level_min))
        rc = err_set_field(&call->err, ERR_INVALID, "level",
                           "'level' must be DEBUG, INFO, WARN, ERROR or FATAL");
    if (rc == 0)
        rc = call_parameter_time(call, "after", &filter->after_us);
    if (rc == 0)
        rc = call_parameter_time(call, "before", &filter->before_us);
    if (rc == 0)
        rc = call_limit(call, BOUND_LIST_LIMIT_DEFAULT, BOUND_LIST_LIMIT, &filter->limit);
    if (rc == 0)
        rc = parse_log_cursor(call, filter);
    call_reads_long(call, filter->text.data || level.data || filter->after_us ||
                              filter->before_us);
    return rc;
}

static int parse_log_query(struct api_call *call, struct log_query *query)
{
    struct str context = call_parameter(call, "context");
    int rc = call_task_id(call);

    if (rc == 0)
        rc = api_parse_log_filter(call, &query->filter);
    if (rc == 0 && context.data && !log_match_parse(context, &query->match))
        rc = err_set_field(&call->err, ERR_INVALID, "context",
                           "'context' must be a JSON pointer and a value: /user/id:7");
    query->limit = query->filter.limit;
    if (query->match.pointer.data) {
        query->filter.limit = BOUND_LIST_LIMIT;
        call_reads_long(call, true);
    }
    return rc;
}

void api_task_logs(struct api_call *call)
{
    struct log_query *query = arena_alloc(call->arena, sizeof *query);

    if (!query)
        err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    if (!query || parse_log_query(call, query) < 0) {
        call_fail(call);
        return;
    }
    call->ctx = query;
    if (call->lane == READERS_LONG)
        call_cancel_when_gone(call);
    call_read(call, read_logs);
}

/* The value under `result` as in the task, and under `payload`, its column's name. */
static int read_result(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct str payload = STR_NONE;
    int64_t created_at_us = 0;
    struct task *task = NULL;
    int rc = check_task(call, reader, scratch, &task);

    if (rc == 0)
        rc = call->server->store->verbs->read_result(reader, &call->task_id, scratch, &payload,
                                                     &created_at_us, &call->err);
    if (rc == 0 && !payload.data)
        rc = err_set(&call->err, ERR_NOT_FOUND, "the task is %s and has no result",
                     status_word(task->status));
    if (rc < 0)
        return rc;
    buf_byte(&call->out, '{');
    render_uuid(&call->out, "task_id", &call->task_id);
    buf_byte(&call->out, ',');
    render_text(&call->out, "status", str_of(status_word(task->status)));
    buf_byte(&call->out, ',');
    render_json(&call->out, "result", payload);
    buf_byte(&call->out, ',');
    render_json(&call->out, "payload", payload);
    buf_byte(&call->out, ',');
    render_time(&call->out, "created_at", created_at_us);
    buf_byte(&call->out, '}');
    return 0;
}

void api_task_result(struct api_call *call)
{
    if (call_task_id(call) < 0)
        call_fail(call);
    else
        call_read(call, read_result);
}

static void waited(struct api_call *call)
{
    const struct wait_request *request = call->ctx;

    if (request->base.err.code != ERR_NONE) {
        call->err = request->base.err;
        call_fail(call);
        return;
    }
    call_read(call, api_read_task);
}

void api_task_wait(struct api_call *call)
{
    struct wait_request *request = arena_alloc(call->arena, sizeof *request);
    int64_t timeout_ms = BOUND_WAIT_MS;
    int rc = call_task_id(call);

    if (rc == 0)
        rc = call_parameter_int(call, "timeout_ms", 0, BOUND_WAIT_MS, &timeout_ms);
    if (rc == 0 && !request)
        rc = err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    if (rc < 0) {
        call_fail(call);
        return;
    }
    request->task_id = call->task_id;
    request->timeout_ms = call->server->stopping ? 0 : timeout_ms;
    call->ctx = request;
    http_release_body(call->exchange);
    call_submit_waiting(call, &request->base, REQUEST_WAIT, waited);
}
