/* Who asks, and what that allows. Loop thread. */
#include "server/server_int.h"

#include "base/json.h"
#include "core/render.h"
#include "server/api.h"

static void write_names(struct buf *out, const char *key, const struct name_list *list)
{
    json_write_key(out, key);
    buf_byte(out, '[');
    for (uint32_t i = 0; i < list->count; i++) {
        json_comma(out);
        json_write_string(out, list->names[i]);
    }
    buf_byte(out, ']');
}

int api_whoami(struct api_call *call)
{
    const struct principal *principal = call->principal;
    BUF_AUTO struct buf label = BUF_INIT(512);
    struct buf *out = &call->out;

    principal_write_label(&label, principal);
    buf_byte(out, '{');
    json_write_member_string(out, "principal", buf_view(&label));
    json_write_member_string(out, "kind", str_of(principal_kind_word(principal->kind)));
    json_write_member_string(out, "name", principal->name);
    json_write_member_string(out, "token_id", principal->id);
    json_write_member_string(out, "namespace", principal->namespace_name);
    json_write_key(out, "scopes");
    scopes_write_json(out, principal->scopes);
    json_write_member_string(out, "user_id", principal->user_id);
    write_names(out, "queues", &principal->queues);
    write_names(out, "types", &principal->types);
    write_names(out, "categories", &principal->categories);
    if (principal->max_tasks)
        render_int(out, "max_tasks", principal->max_tasks);
    else
        render_json(out, "max_tasks", STR_NONE);
    render_time(out, "expires_at", principal->expires_at_us);
    buf_byte(out, '}');
    return call_reply(call, 200);
}
