/* Lists of the API, page after page. See listing.h. One thread. */
#include "cli/frame/listing.h"

#include "base/json.h"
#include "core/bounds.h"

#define QUERY_BYTES_MAX 65536
#define PAGES_MAX 1000 /* --all stops after a million items */

/* Listing page after page: cursor and path outlive the arena, which every page empties. */
struct listing {
    struct call *call;
    const struct view_column *columns;
    uint32_t columns_count;
    listing_decorate *decorate; /* NULL = shown as it is */
    struct buf path;   /* without the cursor */
    struct buf cursor; /* empty = the first page */
    bool json;
    bool all;
    uint32_t pages;
    bool has_items; /* a comma goes before the next ones */
    bool is_empty;  /* so far */
    bool has_filters;
};

static void print_json_items(struct listing *listing, struct str items)
{
    struct call *call = listing->call;
    struct json_iter iter;
    struct str item;

    json_begin(items, &iter);
    while (json_next_element(&iter, &item)) {
        fputs(listing->has_items ? "," : "", call->out.file);
        terminal_json(&call->out, item);
        listing->has_items = true;
    }
}

static int print_page(struct listing *listing, struct client *client, struct str reply)
{
    struct call *call = listing->call;
    struct str items = view_items(reply);

    listing->is_empty &= json_count(items) == 0;
    if (listing->json && listing->all) {
        print_json_items(listing, items);
    } else if (listing->json) {
        terminal_json(&call->out, reply);
    } else {
        if (listing->decorate)
            TRY(listing->decorate(client, items, &items));
        if (listing->pages == 0)
            view_table(call, items, listing->columns, listing->columns_count);
        else
            view_table_page(call, items, listing->columns, listing->columns_count);
    }
    return 0;
}

static int list_page(struct listing *listing, struct client *client)
{
    struct call *call = listing->call;
    BUF_AUTO struct buf path = BUF_INIT(2 * QUERY_BYTES_MAX);
    struct str cursor;
    struct str reply = STR_NONE;

    buf_str(&path, buf_view(&listing->path));
    if (listing->cursor.len > 0) {
        buf_text(&path, memchr(path.data, '?', path.len) ? "&cursor=" : "?cursor=");
        command_write_escaped(&path, buf_view(&listing->cursor));
    }
    TRY(client_get(client, buf_view(&path), &reply));
    TRY(print_page(listing, client, reply));
    cursor = view_member(call, reply, "next_cursor");
    buf_reset(&listing->cursor);
    buf_str(&listing->cursor, cursor);
    listing->pages++;
    return 0;
}

static void note_more(struct call *call, struct str cursor)
{
    BUF_AUTO struct buf line = BUF_INIT(8 * QUERY_BYTES_MAX);

    if (str_empty(cursor))
        return;
    buf_text(&line, "(more: --all, or --cursor ");
    terminal_clean(&line, cursor);
    buf_byte(&line, ')');
    terminal_line(&call->notes, COLOUR_DIM, buf_view(&line));
}

/* "no tasks match": the word is the last one of the path. */
static void note_empty(struct listing *listing)
{
    struct call *call = listing->call;
    struct str path = buf_view(&listing->path);
    const char *end = memchr(path.data, '?', path.len);
    size_t len = end ? (size_t)(end - path.data) : path.len;
    size_t from = len;
    struct str word;

    while (from > 0 && path.data[from - 1] != '/')
        from--;
    word = str_span(path.data + from, len - from);
    if (str_is(word, "recurring"))
        word = STR("recurring patterns");
    else if (str_is(word, "recovery"))
        word = STR("recoveries");
    terminal_line_clean(&call->notes, COLOUR_DIM,
                        arena_format(&call->arena, "no " STR_FMT "%s", STR_ARG(word),
                                     listing->has_filters ? " match" : ""));
}

static int list_pages(struct listing *listing, struct client *client)
{
    struct call *call = listing->call;
    struct arena kept = call->arena;
    int rc = 0;

    if (listing->json && listing->all)
        fputs("{\"items\":[", call->out.file);
    call->arena = ARENA_INIT(2 * CLIENT_REPLY_BYTES_MAX);
    do {
        arena_reset(&call->arena);
        rc = list_page(listing, client);
    } while (rc == 0 && listing->all && listing->cursor.len > 0 && listing->pages < PAGES_MAX);
    arena_deinit(&call->arena);
    call->arena = kept;
    if (rc == 0 && listing->json && listing->all)
        fputs("],\"next_cursor\":null}\n", call->out.file);
    if (rc == 0 && listing->cursor.len > 0 && listing->all)
        return err_set(&call->err, ERR_TOO_LARGE, "stopped after %d pages; continue with --cursor "
                       STR_FMT, PAGES_MAX, STR_ARG(buf_view(&listing->cursor)));
    if (rc == 0)
        note_more(call, buf_view(&listing->cursor));
    if (rc == 0 && listing->is_empty && listing->cursor.len == 0 && !listing->json)
        note_empty(listing);
    return rc;
}

static int print(struct call *call, struct str path, const struct view_column *columns,
                 uint32_t columns_count, listing_decorate *decorate, bool has_flags)
{
    bool all = !has_flags || call_given(call, "all");
    struct listing listing = {.call = call, .columns = columns, .columns_count = columns_count,
                              .decorate = decorate, .path = BUF_INIT(QUERY_BYTES_MAX),
                              .cursor = BUF_INIT(QUERY_BYTES_MAX),
                              .json = call_given(call, "json"), .all = all, .is_empty = true};
    struct client client = {0};
    size_t before;
    int rc;

    buf_str(&listing.path, path);
    if (has_flags && all && !call_given(call, "limit"))
        buf_format(&listing.path, "%climit=%d", memchr(path.data, '?', path.len) ? '&' : '?',
                   BOUND_LIST_LIMIT);
    if (has_flags)
        buf_str(&listing.cursor, call_given_text(call, "cursor"));
    before = listing.path.len;
    rc = call_write_query(call, &listing.path);
    listing.has_filters = listing.path.len > before;
    if (rc == 0)
        rc = client_open(&client, call);
    if (rc == 0)
        rc = list_pages(&listing, &client);
    client_close(&client);
    buf_deinit(&listing.path);
    buf_deinit(&listing.cursor);
    return rc;
}

int listing_print_decorated(struct call *call, struct str path, const struct view_column *columns,
                            uint32_t columns_count, listing_decorate *decorate)
{
    return print(call, path, columns, columns_count, decorate, true);
}

int listing_print_all(struct call *call, struct str path, const struct view_column *columns,
                      uint32_t columns_count)
{
    return print(call, path, columns, columns_count, NULL, false);
}

int listing_print(struct call *call, struct str path, const struct view_column *columns,
                  uint32_t columns_count)
{
    return listing_print_decorated(call, path, columns, columns_count, NULL);
}
