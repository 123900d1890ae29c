/* Pages over lists in memory: sort, skip to the cursor, write up to the limit. The whole list was
 * copied for this one request, so nothing changes meanwhile. Lists of tasks are paged by the store.
 * Loop thread. */
#include "server/page.h"

#include "base/hash.h"
#include "base/json.h"

#include <stdlib.h>

#define CURSOR_TIME_BYTES 8

static int compare(const struct page_entry *a, const struct page_entry *b)
{
    if (a->time_us != b->time_us)
        return a->time_us > b->time_us ? -1 : 1;
    return str_compare(a->name, b->name);
}

static int compare_sort(const void *a, const void *b)
{
    return compare(a, b);
}

static bool parse_cursor(struct str text, struct arena *arena, struct page_entry *after)
{
    size_t len = text.len / 2;
    uint8_t *bytes = arena_alloc(arena, len + 1);
    uint64_t time_us = 0;

    if (!bytes || text.len % 2 != 1 || text.data[0] != 'n' || len < CURSOR_TIME_BYTES ||
        !hash_from_hex(str_span(text.data + 1, text.len - 1), bytes, len))
        return false;
    for (size_t i = 0; i < CURSOR_TIME_BYTES; i++)
        time_us = time_us << 8 | bytes[i];
    after->time_us = (int64_t)time_us;
    after->name = str_span((char *)bytes + CURSOR_TIME_BYTES, len - CURSOR_TIME_BYTES);
    return true;
}

int page_parse(struct api_call *call, struct page *page)
{
    struct str cursor = call_parameter(call, "cursor");
    int rc = call_list_limit(call, &page->limit);

    if (rc < 0 || !cursor.data)
        return rc;
    page->has_cursor = true;
    if (parse_cursor(cursor, call->arena, &page->after))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "cursor",
                         "'cursor' must be the next_cursor of the previous page");
}

static void write_cursor(struct buf *out, const struct page_entry *last)
{
    buf_format(out, "\"next_cursor\":\"n%016llx", (unsigned long long)last->time_us);
    for (size_t i = 0; i < last->name.len; i++)
        buf_format(out, "%02x", (unsigned char)last->name.data[i]);
    buf_byte(out, '"');
}

int page_reply(struct api_call *call, const struct page *page, uint32_t count,
               struct page_entry (*entry)(const void *ctx, uint32_t i),
               void (*write)(struct api_call *call, const void *item))
{
    struct page_entry *entries = arena_alloc_array(call->arena, count + 1, sizeof *entries);
    uint32_t first = 0;
    uint32_t end;

    if (!entries)
        return call_no_memory(call);
    for (uint32_t i = 0; i < count; i++)
        entries[i] = entry(call->ctx, i);
    qsort(entries, count, sizeof *entries, compare_sort);
    while (page->has_cursor && first < count && compare(&entries[first], &page->after) <= 0)
        first++;
    end = count - first > page->limit ? first + page->limit : count;
    buf_text(&call->out, "{\"items\":[");
    for (uint32_t i = first; i < end; i++) {
        json_comma(&call->out);
        write(call, entries[i].item);
    }
    buf_text(&call->out, "],");
    if (end < count)
        write_cursor(&call->out, &entries[end - 1]);
    else
        buf_text(&call->out, "\"next_cursor\":null");
    buf_byte(&call->out, '}');
    return call_reply(call, 200);
}
