/* /v1/keys: the keys that encrypt what is stored. Keys themselves are never shown: only their ids
 * and what they wrap. Loop thread. */
#include "server/api.h"
#include "server/body.h"
#include "server/server_int.h"

#include "core/bounds.h"
#include "core/render.h"
#include "store/sealed/sealed.h"

#define KEKS_SHOWN_MAX 32
#define SINCE_BYTES_MAX 40 /* of a time */

static void write_keys(struct buf *out, const struct keyring *keyring,
                       const struct keys_request *request)
{
    struct str ids[KEKS_SHOWN_MAX];
    uint32_t count = keyring ? keyring_ids((struct keyring *)(uintptr_t)keyring, ids,
                                           KEKS_SHOWN_MAX)
                             : 0;

    json_write_key(out, "keys");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        int64_t wraps = 0;

        for (uint32_t s = 0; s < request->sums_count; s++)
            if (str_eq(request->sums[s].kek_id, ids[i]))
                wraps += request->sums[s].keys - request->sums[s].destroyed;
        json_comma(out);
        buf_byte(out, '{');
        render_text(out, "id", ids[i]);
        render_int(out, "data_keys", wraps);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void write_sums(struct buf *out, struct keyring *keyring,
                       const struct keys_request *request)
{
    json_write_key(out, "data_keys");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < request->sums_count; i++) {
        const struct data_key_sum *sum = &request->sums[i];

        json_comma(out);
        buf_byte(out, '{');
        render_text(out, "namespace", sum->namespace_name);
        render_text(out, "key", sum->kek_id);
        render_bool(out, "available", keyring && keyring_has(keyring, sum->kek_id));
        render_int(out, "count", sum->keys);
        render_int(out, "destroyed", sum->destroyed);
        render_time(out, "newest_at", sum->newest_us);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

/* Keys of tasks grow with time: how many of them were looked at says how far it is. */
static int64_t percent(const struct seal_rotation *content)
{
    if (content->done)
        return 100;
    return content->last_key > 0 ? content->task_key * 99 / content->last_key : 0;
}

static void write_content(struct buf *out, const struct seal_rotation *content)
{
    json_write_key(out, "content");
    if (content->since_us == 0) {
        buf_text(out, "null");
        return;
    }
    buf_byte(out, '{');
    render_time(out, "since", content->since_us);
    render_bool(out, "done", content->done);
    render_int(out, "percent", percent(content));
    render_int(out, "texts", content->texts);
    render_int(out, "closed", content->closed);
    buf_byte(out, '}');
}

static int shown(struct api_call *call)
{
    const struct keys_request *request = call->ctx;
    struct keyring *keyring = request->keyring;
    struct buf *out = &call->out;

    buf_byte(out, '{');
    render_bool(out, "encrypts", keyring && keyring_ready(keyring));
    render_bool(out, "all", keyring && keyring_all(keyring));
    render_bool(out, "per_user", keyring && keyring_per_user(keyring));
    render_text(out, "current", keyring ? keyring_current(keyring) : STR_NONE);
    write_keys(out, keyring, request);
    write_sums(out, keyring, request);
    render_int(out, "rotated", request->rotated);
    render_int(out, "left", request->left);
    render_int(out, "destroyed", request->destroyed);
    write_content(out, &request->content);
    json_write_key(out, "texts");
    buf_byte(out, '{');
    for (int i = OPENED_WELL; i < OPENED_COUNT; i++)
        render_int(out, opened_word((enum opened)i),
                   keyring ? keyring_counted(keyring, (enum opened)i) : 0);
    buf_text(out, "}}");
    return call_reply(call, 200);
}

static int read_rotate(struct api_call *call, struct keys_request *request)
{
    enum { DATA, SINCE };
    struct body_field fields[] = {[DATA] = {.name = "data"}, [SINCE] = {.name = "since"}};
    struct str object, since = STR_NONE;

    TRY(call_object(call, &object));
    TRY(body_parse(object, fields, sizeof fields / sizeof fields[0], &call->err));
    TRY(body_bool(&fields[DATA], &request->data, &call->err));
    TRY(body_text(&fields[SINCE], SINCE_BYTES_MAX, call->arena, &since, &call->err));
    if (since.data && !clock_parse(since, &request->since_us))
        return err_set_field(&call->err, ERR_INVALID, "since", "'since' must be a time such as "
                             "2026-01-31T09:00:00Z");
    return 0;
}

static int read_destroy(struct api_call *call, struct keys_request *request)
{
    enum { NAMESPACE, USER };
    struct body_field fields[] = {[NAMESPACE] = {.name = "namespace"},
                                  [USER] = {.name = "user_id"}};
    struct str object;

    TRY(call_object(call, &object));
    TRY(body_parse(object, fields, sizeof fields / sizeof fields[0], &call->err));
    TRY(body_text(&fields[NAMESPACE], BOUND_NAME_BYTES, call->arena, &request->namespace_name,
                  &call->err));
    TRY(body_text(&fields[USER], BOUND_KEY_BYTES, call->arena, &request->user_id, &call->err));
    if (str_empty(request->namespace_name) && str_empty(request->user_id))
        return err_set_field(&call->err, ERR_INVALID, "user_id", "name whose keys are destroyed: "
                             "\"user_id\", \"namespace\", or a user within a namespace");
    if (str_empty(request->namespace_name))
        request->namespace_name = STR_NONE;
    else
        TRY(namespace_check_name(request->namespace_name, &call->err));
    if (str_empty(request->user_id))
        request->user_id = STR_NONE;
    return 0;
}

int api_keys(struct api_call *call)
{
    struct keys_request *request = CALL_NEW(call, sizeof *request);

    request->op = (enum keys_op)call->route->what;
    if (request->op == KEYS_ROTATE)
        TRY(read_rotate(call, request));
    if (request->op == KEYS_DESTROY)
        TRY(read_destroy(call, request));
    return call_submit(call, &request->base, REQUEST_KEYS, shown);
}
