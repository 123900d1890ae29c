/* /v1/tokens: make, list, show, revoke, rotate. The secret is made here, shown in one answer and
 * kept nowhere: the engine gets its hash. Loop thread. */
#include "server/api.h"
#include "server/door/token_watch.h"
#include "server/page.h"
#include "server/parse_token.h"
#include "server/token_secret.h"

#include "base/json.h"
#include "core/render.h"

struct tokens_call {
    struct access_request request;
    struct page page;
    struct token_secret secret;
};

static int64_t wall_us(const struct api_call *call)
{
    return token_clock_us(call->server);
}

static void write_text(struct api_call *call, const struct tokens_call *made)
{
    json_write_member_string(&call->out, "token", str_of(made->secret.text));
    if (made->request.closes)
        json_write_member_string(&call->out, "notice", STR("from now on every request needs a "
                                 "token, also on loopback; keep this one: export "
                                 "PERDURA_TOKEN=TOKEN for the command line, and log in to the "
                                 "dashboard with it"));
}

static int changed(struct api_call *call)
{
    const struct tokens_call *made = call->ctx;
    bool is_new = call->route->what == ACCESS_CREATE;
    char location[64];

    buf_byte(&call->out, '{');
    token_write_members(&call->out, &made->request.token, wall_us(call));
    write_text(call, made);
    buf_byte(&call->out, '}');
    snprintf(location, sizeof location, "/v1/tokens/%s", made->secret.id);
    if (is_new)
        http_reply_header(call->exchange, "Location", location);
    return call_reply(call, is_new ? 201 : 200);
}

/* Where the body names no namespace: that of the request; all of them for an administrator of all
 * that makes another one. */
static struct str default_namespace(const struct api_call *call, scope_set scopes)
{
    bool global = principal_is_global(call->principal) &&
                  !http_header(call->request, "Perdura-Namespace").data;

    return global && scopes_allow(scopes, SCOPE_ADMIN) ? STR(ACCESS_ANY_NAMESPACE)
                                                       : call->caller.namespace_name;
}

int api_token_create(struct api_call *call)
{
    struct tokens_call *made = CALL_NEW(call, sizeof *made);
    struct principal *rights = &made->request.made;
    struct str object;

    TRY(call_object(call, &object));
    TRY(parse_token(object, call->arena, &made->request, &call->err));
    if (!rights->namespace_name.data)
        rights->namespace_name = default_namespace(call, rights->scopes);
    TRY(token_secret_make(&made->secret, STR_NONE, &made->request.token, &call->err));
    made->request.op = ACCESS_CREATE;
    return call_submit(call, &made->request.base, REQUEST_ACCESS, changed);
}

int api_token_rotate(struct api_call *call)
{
    struct tokens_call *made = CALL_NEW(call, sizeof *made);
    struct str object;

    TRY(call_object(call, &object));
    TRY(parse_rotation(object, &made->request, &call->err));
    TRY(token_secret_make(&made->secret, call->name, &made->request.token, &call->err));
    made->request.op = ACCESS_ROTATE;
    return call_submit(call, &made->request.base, REQUEST_ACCESS, changed);
}

static int shown(struct api_call *call)
{
    const struct tokens_call *one = call->ctx;

    token_write_json(&call->out, &one->request.token, wall_us(call));
    return call_reply(call, 200);
}

int api_token_get(struct api_call *call)
{
    struct tokens_call *one = CALL_NEW(call, sizeof *one);

    one->request.op = ACCESS_GET;
    one->request.token.id = call->name;
    return call_submit(call, &one->request.base, REQUEST_ACCESS, shown);
}

int api_token_revoke(struct api_call *call)
{
    struct tokens_call *one = CALL_NEW(call, sizeof *one);

    one->request.op = ACCESS_REVOKE;
    one->request.token.id = call->name;
    return call_submit(call, &one->request.base, REQUEST_ACCESS, call_reply_empty);
}

static struct page_entry token_entry(const void *ctx, uint32_t i)
{
    const struct token_row *token = &((const struct tokens_call *)ctx)->request.tokens[i];

    return (struct page_entry){token->created_at_us, token->id, token};
}

static void write_token(struct api_call *call, const void *item)
{
    token_write_json(&call->out, item, wall_us(call));
}

static int listed(struct api_call *call)
{
    const struct tokens_call *list = call->ctx;

    return page_reply(call, &list->page, list->request.count, token_entry, write_token);
}

int api_tokens_list(struct api_call *call)
{
    struct tokens_call *list = CALL_NEW(call, sizeof *list);

    TRY(page_parse(call, &list->page));
    list->request.op = ACCESS_LIST;
    return call_submit(call, &list->request.base, REQUEST_ACCESS, listed);
}
