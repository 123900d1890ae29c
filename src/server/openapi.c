/* The built-in documents: the description of the API and the start page. They are files of
 * server/assets, embedded at build; a test compares the description with the table of routes.
 * Loop thread. */
#include "server/api.h"
#include "server/server_int.h"

#include "base/embedded.h"

static void serve(struct api_call *call, const char *name, const char *content_type)
{
    const struct embedded *file = embedded_find(name);

    if (file) {
        call_reply_static(call, content_type, str_span(file->data, file->len));
        return;
    }
    err_set(&call->err, ERR_INTERNAL, "%s is missing in this build", name);
    call_fail(call);
}

void api_openapi(struct api_call *call)
{
    serve(call, "server/assets/openapi.json", "application/json");
}

void api_index(struct api_call *call)
{
    http_reply_header(call->exchange, "Content-Security-Policy",
                      "default-src 'none'; style-src 'self' 'unsafe-inline'; "
                      "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
    http_reply_header(call->exchange, "Referrer-Policy", "no-referrer");
    serve(call, "server/assets/index.html", "text/html; charset=utf-8");
}
