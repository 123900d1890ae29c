/* /v1/namespaces: what shares nothing with each other. Those who belong to one namespace see that
 * one; all else needs access:write in every namespace. Loop thread. */
#include "server/routes/api_namespaces.h"

#include "core/queue_name.h"
#include "core/render.h"
#include "server/page.h"
#include "server/parse_namespace.h"

struct namespaces_call {
    struct namespace_request request;
    struct page page;
};

static int submit(struct api_call *call, struct namespace_request *request, call_step *then)
{
    return call_submit(call, &request->base, REQUEST_NAMESPACE, then);
}

static void write_one(struct api_call *call, const void *item)
{
    const struct namespace_view *view = item;

    namespace_write(&call->out, &view->row, view->left);
}

static struct page_entry entry(const void *ctx, uint32_t i)
{
    const struct namespace_view *view = &((const struct namespaces_call *)ctx)->request.views[i];

    return (struct page_entry){view->row.created_at_us, view->row.name, view};
}

static int listed(struct api_call *call)
{
    const struct namespaces_call *list = call->ctx;

    return page_reply(call, &list->page, list->request.count, entry, write_one);
}

int api_namespaces_list(struct api_call *call)
{
    struct namespaces_call *list = CALL_NEW(call, sizeof *list);

    TRY(page_parse(call, &list->page));
    if (!principal_is_global(call->principal))
        list->request.row.name = call->principal->namespace_name;
    return submit(call, &list->request, listed);
}

static int shown(struct api_call *call)
{
    const struct namespace_request *request = call->ctx;

    write_one(call, &request->views[0]);
    return call_reply(call, request->op == NAMESPACE_CREATE   ? 201
                            : request->op == NAMESPACE_DELETE ? 202
                                                              : 200);
}

int api_namespace_get(struct api_call *call)
{
    struct namespace_request *request = CALL_NEW(call, sizeof *request);

    request->row.name = call->name;
    if (!principal_enters(call->principal, call->name))
        return err_set(&call->err, ERR_NOT_FOUND, "there is no namespace '" STR_FMT "'",
                       STR_ARG(call->name));
    return submit(call, request, shown);
}

int api_namespace_create(struct api_call *call)
{
    struct namespace_request *request = CALL_NEW(call, sizeof *request);
    struct str object;

    TRY(call_object(call, &object));
    request->op = NAMESPACE_CREATE;
    TRY(parse_namespace(object, true, call->arena, request, &call->err));
    return submit(call, request, shown);
}

int api_namespace_update(struct api_call *call)
{
    struct namespace_request *request = CALL_NEW(call, sizeof *request);
    struct str object;

    TRY(call_object(call, &object));
    request->op = NAMESPACE_UPDATE;
    TRY(parse_namespace(object, false, call->arena, request, &call->err));
    request->row.name = call->name;
    return submit(call, request, shown);
}

int api_namespace_delete(struct api_call *call)
{
    struct namespace_request *request = CALL_NEW(call, sizeof *request);

    TRY(call_parameter_bool(call, "purge", &request->purge));
    request->op = NAMESPACE_DELETE;
    request->row.name = call->name;
    return submit(call, request, shown);
}
