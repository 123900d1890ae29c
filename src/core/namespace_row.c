#include "core/namespace_row.h"

#include "base/json.h"
#include "core/render.h"

#define NAMESPACE(...) FIELD_ROW(namespace_row, __VA_ARGS__),
static const struct field namespace_fields[] = {NAMESPACE_FIELDS(NAMESPACE)};
const struct field_table namespace_table = FIELD_TABLE(namespace_row, "namespace", "n",
                                                       namespace_fields);

void namespace_init(struct namespace_row *row, struct str name)
{
    *row = (struct namespace_row){.name = name,
                                  .completed_ms = NAMESPACE_AS_SETTINGS,
                                  .failed_ms = NAMESPACE_AS_SETTINGS};
}

void namespace_take(struct namespace_row *row, const struct namespace_row *given, unsigned set)
{
    if (set & NAMESPACE_SET_DESCRIPTION)
        row->description = given->description;
    if (set & NAMESPACE_SET_WAITING)
        row->waiting_limit = given->waiting_limit;
    if (set & NAMESPACE_SET_ENQUEUE_RATE)
        row->enqueue_rate = given->enqueue_rate;
    if (set & NAMESPACE_SET_PAYLOAD_BYTES)
        row->payload_bytes_limit = given->payload_bytes_limit;
    if (set & NAMESPACE_SET_SCHEDULES)
        row->schedules_limit = given->schedules_limit;
    if (set & NAMESPACE_SET_COMPLETED)
        row->completed_ms = given->completed_ms;
    if (set & NAMESPACE_SET_FAILED)
        row->failed_ms = given->failed_ms;
    if (set & NAMESPACE_SET_ENCRYPTION)
        row->encrypt_all = given->encrypt_all;
}

static void write_bound(struct buf *out, const char *key, int64_t bound)
{
    if (bound > 0)
        render_int(out, key, bound);
    else
        render_json(out, key, STR_NONE);
}

static void write_rate(struct buf *out, const struct rate_rule *rate)
{
    if (rate->count <= 0) {
        render_json(out, "enqueue_rate", STR_NONE);
        return;
    }
    json_write_key(out, "enqueue_rate");
    buf_byte(out, '{');
    render_int(out, "count", rate->count);
    render_int(out, "per_ms", rate->per_ms);
    if (rate->burst > 0)
        render_int(out, "burst", rate->burst);
    else
        render_json(out, "burst", STR_NONE);
    buf_byte(out, '}');
}

static void write_window(struct buf *out, const char *key, int64_t window_ms)
{
    if (window_ms == NAMESPACE_AS_SETTINGS)
        render_json(out, key, STR_NONE);
    else
        render_int(out, key, window_ms);
}

void namespace_write(struct buf *out, const struct namespace_row *row, int64_t left)
{
    buf_byte(out, '{');
    render_text(out, "name", row->name);
    render_text(out, "description", row->description);
    json_write_key(out, "limits");
    buf_byte(out, '{');
    write_bound(out, "waiting", row->waiting_limit);
    write_rate(out, &row->enqueue_rate);
    write_bound(out, "payload_bytes", row->payload_bytes_limit);
    write_bound(out, "schedules", row->schedules_limit);
    buf_byte(out, '}');
    json_write_key(out, "retention");
    buf_byte(out, '{');
    write_window(out, "completed_ms", row->completed_ms);
    write_window(out, "failed_ms", row->failed_ms);
    buf_byte(out, '}');
    render_text(out, "encryption", row->encrypt_all ? STR("all") : STR_NONE);
    if (row->deleting_at_us) {
        json_write_key(out, "deleting");
        buf_byte(out, '{');
        render_int(out, "removed", row->removed);
        render_int(out, "left", left);
        buf_byte(out, '}');
    } else {
        render_json(out, "deleting", STR_NONE);
    }
    render_time(out, "created_at", row->created_at_us);
    render_time(out, "updated_at", row->updated_at_us);
    buf_byte(out, '}');
}
