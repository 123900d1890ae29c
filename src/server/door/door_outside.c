/* What came with a request and from where; core/access/outside.c decides what it means. The address
 * is that of the TCP connection: what X-Forwarded-For says is any client's word. */
#include "server/door/door_outside.h"

static bool is_trusted(const struct proxy_settings *settings, const struct http_address *peer)
{
    for (uint32_t i = 0; peer && i < settings->from_count; i++)
        if (address_range_has(&settings->from[i], peer->bytes))
            return true;
    return false;
}

static int read_single(const struct http_request *request, struct str name, struct str *value,
                       struct err *err)
{
    if (http_headers_count(request, name, value) < 2)
        return 0;
    return err_set(err, ERR_MALFORMED, "the header " STR_FMT " is given twice; the proxy must "
                   "replace what clients send", STR_ARG(str_cut(name, 80)));
}

int door_proxy_headers(const struct proxy_settings *settings, const struct http_request *request,
                       struct str *user, struct str *groups, struct err *err)
{
    *user = *groups = STR_NONE;
    if (settings->from_count == 0)
        return 0;
    TRY(read_single(request, settings->user_header, user, err));
    TRY(read_single(request, settings->groups_header, groups, err));
    if ((!user->data && !groups->data) || is_trusted(settings, request->peer))
        return 0;
    return err_set(err, ERR_FORBIDDEN, "this address may not send " STR_FMT " or " STR_FMT ": it "
                   "is not in access.proxy.from; leave them out, or go through the proxy",
                   STR_ARG(settings->user_header), STR_ARG(settings->groups_header));
}

bool door_certificate_counts(const struct settings *settings, const struct http_request *request)
{
    return request->is_secure && settings->tls.client_ca.data &&
           (settings->access.certificates_count > 0 || settings->access.required);
}
