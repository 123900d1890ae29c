/* Log lines of a task or of one execution: the same filters, pages and cursors for both, and the
 * same time for one look. Loop thread, but for api_logs_read, which runs on a reader. */
#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "core/bounds.h"
#include "core/log/log_match.h"
#include "core/render.h"

#include <endian.h>

#define CURSOR_LINE 'l'
#define LOG_LOOK_US CLOCK_SECOND_US /* for one request; the rest is for the next one */

static void write_line(struct buf *out, const struct log_entry *entry, struct str correlation_id,
                       bool redacted)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &entry->id);
    render_uuid(out, "execution_id", &entry->execution_id);
    render_int(out, "attempt_number", entry->attempt_number);
    render_int(out, "seq", entry->seq);
    render_text(out, "log_level", str_of(severity_word(entry->level)));
    if (redacted) {
        render_bool(out, "redacted", true);
    } else {
        render_text(out, "message", entry->removed ? STR_NONE : entry->message);
        render_json(out, "context", entry->removed ? STR_NONE : entry->context);
    }
    render_text(out, "correlation_id", correlation_id);
    render_time(out, "logged_at", entry->logged_at_us);
    render_text(out, "chain_hash", entry->chain_hash);
    if (entry->removed)
        buf_text(out, ",\"removed\":true");
    buf_byte(out, '}');
}

/* Lines are numbered per execution, so the cursor names both. */
struct place {
    struct uuid execution_id;
    uint64_t seq; /* big-endian */
};
_Static_assert(sizeof(struct place) == 24, "no gap: its bytes are the cursor");

static void next_line(struct buf *out, uint32_t i)
{
    buf_text(out, i ? "," : "{\"items\":[");
}

struct log_query {
    struct log_filter filter; /* its limit: lines that are looked at at a time */
    struct log_match match;
    uint32_t limit;           /* lines that are answered */
    api_logs_verb *read;
    const struct uuid *id;    /* of the task or execution */
    struct str correlation_id;
    bool redacted;
};

/* One page of the store and what matches of it. Moves the filter on behind the last line that was
 * looked at, when there may be more. */
static int read_page(struct api_call *call, struct store_reader *reader, struct log_query *query,
                     struct arena *page, uint32_t *written, bool *more)
{
    const struct log_stop *stop = query->filter.stop;
    struct log_entry *entries = NULL;
    uint32_t count = 0, i;
    int rc = query->read(reader, query->id, &query->filter, page, &entries, &count, &call->err);

    for (i = 0; rc == 0 && i < count; i++) {
        if (!log_match_context(&query->match, entries[i].context, page))
            continue;
        next_line(&call->out, *written);
        write_line(&call->out, &entries[i], query->correlation_id, query->redacted);
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
int api_logs_read(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                  api_logs_verb *read, const struct uuid *id, struct str correlation_id,
                  bool redacted)
{
    struct log_query query = *(const struct log_query *)call->ctx;
    struct log_stop stop = {0};
    struct place place;
    uint32_t written = 0;
    bool more = true;
    int rc = 0;

    query.read = read;
    query.id = id;
    query.correlation_id = correlation_id;
    query.redacted = redacted;
    if (redacted && (query.filter.text.data || query.match.pointer.data)) /* an oracle otherwise */
        return principal_refuse(call->principal, SCOPE_PAYLOADS_READ,
                                call->caller.namespace_name, &call->err);
    query.filter.stop = &stop;
    query.filter.cancelled = &call->cancelled;
    query.filter.look_until_us = clock_boot_us() + LOG_LOOK_US;
    for (bool again = true; rc == 0 && again;) {
        ARENA_AUTO struct arena page = ARENA_INIT(scratch->max_bytes);

        rc = read_page(call, reader, &query, &page, &written, &more);
        again = more && written < query.limit && query.match.pointer.data &&
                clock_boot_us() < query.filter.look_until_us && !atomic_load(&call->cancelled);
    }
    if (rc < 0)
        return rc;
    if (written == 0)
        next_line(&call->out, 0);
    place = (struct place){query.filter.after_execution, htobe64((uint64_t)query.filter.after_seq)};
    buf_byte(&call->out, ']');
    call_write_cursor_bytes(&call->out, CURSOR_LINE, (uint8_t *)&place, sizeof place, more);
    buf_byte(&call->out, '}');
    return 0;
}

static int parse_cursor(struct api_call *call, struct log_filter *filter)
{
    struct place place;
    bool given;

    TRY(call_cursor_bytes(call, CURSOR_LINE, (uint8_t *)&place, sizeof place, &given));
    if (!given)
        return 0;
    filter->after_execution = place.execution_id;
    filter->after_seq = (int64_t)be64toh(place.seq);
    if (filter->after_seq >= 0)
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "cursor",
                         "'cursor' must be the next_cursor of the previous page");
}

static int parse_filter(struct api_call *call, struct log_filter *filter)
{
    struct str level = call_parameter(call, "level");

    filter->level_min = SEVERITY_DEBUG;
    filter->text = call_parameter(call, "q");
    if (level.data && !severity_parse(level, &filter->level_min))
        return err_set_field(&call->err, ERR_INVALID, "level",
                             "'level' must be DEBUG, INFO, WARN, ERROR or FATAL");
    TRY(call_parameter_time(call, "after", &filter->after_us));
    TRY(call_parameter_time(call, "before", &filter->before_us));
    TRY(call_list_limit(call, &filter->limit));
    TRY(parse_cursor(call, filter));
    call_reads_long(call, filter->text.data || level.data || filter->after_us ||
                              filter->before_us);
    return 0;
}

static int parse_query(struct api_call *call, struct log_query *query)
{
    struct str context = call_parameter(call, "context");

    TRY(parse_filter(call, &query->filter));
    if (context.data && !log_match_parse(context, &query->match))
        return err_set_field(&call->err, ERR_INVALID, "context",
                             "'context' must be a JSON pointer and a value: /user/id:7");
    query->limit = query->filter.limit;
    if (query->match.pointer.data) {
        query->filter.limit = BOUND_LIST_LIMIT;
        call_reads_long(call, true);
    }
    return 0;
}

int api_logs_parse(struct api_call *call)
{
    struct log_query *query = CALL_NEW(call, sizeof *query);

    TRY(parse_query(call, query));
    if (call->lane == READERS_LONG)
        call_cancel_when_gone(call);
    return 0;
}
