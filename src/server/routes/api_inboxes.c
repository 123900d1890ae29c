/* GET /v1/inboxes: the inboxes of this node. Addresses and errors of other databases are for those
 * who may see all namespaces; others see what the inboxes of their namespace do. Loop thread. */
#include "server/routes/api_inboxes.h"

#include "server/page.h"
#include "server/server_int.h"

#include "core/inbox/inbox_view.h"
#include "core/render.h"

static struct str text_or_none(const char *text)
{
    return text[0] ? str_of(text) : STR_NONE;
}

static void write_inbox(struct api_call *call, const void *item)
{
    const struct inbox_view *view = item;
    bool global = principal_is_global(call->principal);
    struct buf *out = &call->out;

    buf_byte(out, '{');
    render_text(out, "name", str_of(view->name));
    render_text(out, "namespace", str_of(view->namespace_name));
    render_text(out, "store", global ? str_of(view->store) : STR_NONE);
    render_text(out, "table", str_of(view->table));
    render_text(out, "state", str_of(view->state));
    render_text(out, "error", !global && view->error[0] ? STR("ask who sees all namespaces")
                                                       : text_or_none(view->error));
    render_bool(out, "connected", view->connected);
    render_int(out, "lag_ms", view->lag_ms);
    render_int(out, "taken", view->taken);
    render_int(out, "damaged", view->damaged);
    render_time(out, "last_taken_at", view->last_taken_us);
    buf_byte(out, '}');
}

static struct page_entry entry_of(const void *ctx, uint32_t i)
{
    const struct inbox_view *view = (const struct inbox_view *)ctx + i;

    return (struct page_entry){0, str_of(view->name), view};
}

int api_inboxes(struct api_call *call)
{
    const struct inbox_views *inboxes = call->server->shown.inboxes;
    uint32_t cap = inboxes ? inboxes->count(inboxes->ctx) : 0, count = 0;
    struct inbox_view *views = arena_alloc_array(call->arena, cap + 1, sizeof *views);
    struct page page = {0};

    TRY(page_parse(call, &page));
    if (!views)
        return call_no_memory(call);
    for (uint32_t i = 0; i < cap && inboxes->read(inboxes->ctx, i, &views[count]); i++)
        count += principal_is_global(call->principal) ||
                 str_eq(str_of(views[count].namespace_name), call_namespace(call));
    call->ctx = views;
    return page_reply(call, &page, count, entry_of, write_inbox);
}
