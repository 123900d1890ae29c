/* The description of the API: a file of server/assets, embedded at build; a test compares it with
 * the table of routes. Loop thread. */
#include "server/api.h"
#include "server/server_int.h"

#include "base/embedded.h"

void api_openapi(struct api_call *call)
{
    const struct embedded *file = embedded_find("server/assets/openapi.json");

    ASSERT(file);
    call_reply_static(call, "application/json", str_span(file->data, file->len));
}
