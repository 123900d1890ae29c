/* Tokens without a server: one is made in the store itself, for the first start beyond loopback and
 * for who is locked out. Who may write the store may do anything, so nothing limits it. */
#include "base/clock.h"
#include "base/json.h"
#include "node/node.h"
#include "server/parse_token.h"
#include "server/token_secret.h"
#include "store/token_store.h"

static int put(struct store *store, struct token_row *token, struct err *err)
{
    const struct store_verbs *verbs = store->verbs;
    int rc = verbs->begin(store, err);

    if (rc == 0)
        rc = verbs->tokens->generation_next(store, &token->generation, err);
    if (rc == 0)
        rc = verbs->tokens->put(store, token, err);
    if (rc == 0)
        rc = verbs->commit(store, err);
    if (rc < 0)
        verbs->rollback(store);
    return rc;
}

static int fill(struct access_request *request, struct arena *arena, struct err *err)
{
    struct principal *made = &request->made;
    struct token_row *token = &request->token;

    token->created_at_us = clock_wall_us();
    if (made->expires_at_us && made->expires_at_us <= token->created_at_us)
        return err_set(err, ERR_USAGE, "the token would have expired already; give a later end");
    TRY(token_keep_rights(token, made, arena, err));
    token->namespace_name = made->namespace_name;
    if (!made->namespace_name.data)
        token->namespace_name = scopes_allow(made->scopes, SCOPE_ADMIN)
                                    ? STR(ACCESS_ANY_NAMESPACE) : STR(TASK_DEFAULT_NAMESPACE);
    token->user_id = made->user_id;
    token->expires_at_us = made->expires_at_us;
    token->created_by = STR("store");
    return 0;
}

int node_token_create(const struct settings *settings, struct str body, struct arena *arena,
                      struct str *reply, struct err *err)
{
    struct store_options options = {.allow_network_fs = settings->allow_network_fs,
                                    .any_schema = settings->allow_changed_schema,
                                    .pooler = settings->pooler.data != NULL};
    BUF_AUTO struct buf out = BUF_INIT(1024 * 1024);
    struct access_request request = {.op = ACCESS_CREATE};
    struct token_secret secret;
    struct store *store;
    int rc;

    TRY(parse_token(body, arena, &request, err));
    TRY(token_secret_make(&secret, STR_NONE, &request.token, err));
    TRY(fill(&request, arena, err));
    TRY(store_open(&store, settings->store, &options, err));
    rc = put(store, &request.token, err);
    store->verbs->close(store);
    TRY(rc);
    buf_byte(&out, '{');
    token_write_members(&out, &request.token, request.token.created_at_us);
    json_write_member_string(&out, "token", str_of(secret.text));
    buf_byte(&out, '}');
    *reply = arena_str(arena, buf_view(&out));
    return reply->data && !out.failed ? 0 : err_no_memory(err);
}
