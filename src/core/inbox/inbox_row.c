#include "core/inbox/inbox_row.h"

#include "base/json.h"
#include "core/bounds.h"

#define NAME_BYTES_MAX 63

static int64_t bytes_read(const struct inbox_size *size)
{
    return inbox_size_fault(size) ? 0
                                  : size->type_bytes + size->payload_bytes + size->options_bytes;
}

uint32_t inbox_fit(const struct inbox_size *sizes, uint32_t count)
{
    int64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        bytes += bytes_read(&sizes[i]);
        if (i > 0 && bytes > INBOX_BYTES_MAX)
            return i;
    }
    return count;
}

const char *inbox_size_fault(const struct inbox_size *size)
{
    if (size->payload_bytes > BOUND_PAYLOAD_BYTES)
        return "the payload is larger than 1 MiB; put large inputs into a storage of their own";
    if (size->options_bytes > INBOX_OPTIONS_BYTES)
        return "the options are larger than 2 MiB";
    if (size->type_bytes > INBOX_TYPE_BYTES)
        return "the type is longer than a type can be";
    return NULL;
}

struct str inbox_error_text(const char *text, struct arena *arena)
{
    char *copy = arena_cstr(arena, str_cut(str_of(text), INBOX_ERROR_BYTES));

    for (char *at = copy; at && *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    return str_of(copy);
}

void inbox_note_write(struct buf *out, int64_t session, const struct inbox_row *rows,
                      uint32_t count)
{
    char id[UUID_TEXT_BYTES];

    buf_format(out, "{\"session\":%lld,\"rows\":[", (long long)session);
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].verdict != INBOX_TAKEN)
            continue;
        uuid_format(&rows[i].task_id, id);
        json_comma(out);
        buf_format(out, "[%lld,", (long long)rows[i].id);
        json_write_string(out, rows[i].created_at);
        buf_format(out, ",\"%s\"]", id);
    }
    buf_text(out, "]}");
}

static bool read_row(struct str text, struct arena *arena, struct inbox_row *row)
{
    struct str id, created, task;
    struct json_iter iter;

    json_begin(text, &iter);
    if (!json_next_element(&iter, &id) || !json_int64(id, &row->id) ||
        !json_next_element(&iter, &created) || !json_next_element(&iter, &task))
        return false;
    row->created_at = json_string(created, arena);
    row->verdict = INBOX_TAKEN;
    return row->created_at.data && uuid_parse(json_string(task, arena), &row->task_id);
}

int inbox_note_read(struct str note, struct arena *arena, int64_t *session,
                    struct inbox_row **rows, uint32_t *count, struct err *err)
{
    struct json_iter iter;
    struct str list, item;

    *session = 0;
    *rows = NULL;
    *count = 0;
    if (!note.data)
        return 0;
    TRY(json_check(note, &note, err));
    list = json_get(note, STR("rows"));
    if (!json_int64(json_get(note, STR("session")), session) || !list.data)
        return err_set(err, ERR_INTERNAL, "the store's note about the inbox cannot be read");
    *rows = TRY_MEMORY(arena_alloc_array(arena, json_count(list) + 1, sizeof **rows));
    json_begin(list, &iter);
    while (json_next_element(&iter, &item))
        if (!read_row(item, arena, &(*rows)[(*count)++]))
            return err_set(err, ERR_INTERNAL, "the store's note about the inbox cannot be read");
    return 0;
}

static bool is_word(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
              (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return name.len > 0 && name.len <= NAME_BYTES_MAX;
}

bool inbox_table_valid(struct str table, bool schema)
{
    const char *point = table.len ? memchr(table.data, '.', table.len) : NULL;
    size_t before = point ? (size_t)(point - table.data) : 0;

    if (!point)
        return is_word(table);
    return schema && is_word(str_span(table.data, before)) &&
           is_word(str_span(point + 1, table.len - before - 1));
}
