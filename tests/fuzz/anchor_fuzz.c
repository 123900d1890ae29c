/* Whatever stands in an anchor file or in log_anchors: a line is a record with its signature, or
 * none; a record says something whole, or nothing; and what was read is written the same again. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/log/loganchor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_items(const struct anchor *anchor)
{
    struct json_iter iter;
    struct log_part item;

    json_begin(anchor->items, &iter);
    for (uint32_t i = 0; i < ANCHOR_ITEMS_MAX && anchor_next_item(&iter, &item); i++)
        ASSERT(item.head.seq >= 0 && item.lines >= 0);
}

static void write_again(struct str record, struct str signature)
{
    struct buf out = BUF_INIT(ANCHOR_LINE_BYTES_MAX);
    struct anchor_row row = {.record = record};
    struct str record_again, signature_again;

    memcpy(row.signature, signature.data, signature.len);
    anchor_line_write(&out, &row);
    ASSERT(!out.failed);
    ASSERT(anchor_line_parse(str_span(out.data, out.len - 1), &record_again, &signature_again));
    ASSERT(str_eq(record, record_again) && str_eq(signature, signature_again));
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str record, signature;
    struct anchor anchor;

    if (!anchor_line_parse(str_span((const char *)data, size), &record, &signature))
        return 0;
    if (!anchor_parse(record, &anchor))
        return 0;
    ASSERT(anchor.kind < ANCHOR_KIND_COUNT && anchor.reason.len <= ANCHOR_REASON_BYTES_MAX);
    read_items(&anchor);
    (void)anchor_signature_good(&anchor, record, signature);
    if (signature.len < sizeof(struct anchor_row){0}.signature)
        write_again(record, signature);
    return 0;
}
