/* /v1/audit: who changed what, and what was refused. A principal of one namespace sees that one;
 * one of every namespace sees all, unless it names one. Loop thread, but for the read. */
#include "server/api.h"
#include "server/server_int.h"

#include "base/json.h"
#include "store/audit_store.h"

#define CURSOR_AUDIT 'u'

static int read_entries(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct audit_filter *filter = call->ctx;
    const struct audit_verbs *verbs = call->server->store->verbs->audit;
    struct audit_entry *entries = NULL;
    uint32_t count = 0;

    TRY(verbs->read(reader, filter, scratch, &entries, &count, &call->err));
    buf_text(&call->out, "{\"items\":[");
    for (uint32_t i = 0; i < count; i++) {
        json_comma(&call->out);
        audit_render(&call->out, &entries[i]);
    }
    buf_byte(&call->out, ']');
    call_write_cursor_bytes(&call->out, CURSOR_AUDIT, count ? entries[count - 1].id.bytes : NULL,
                            16, count > 0 && count == filter->limit);
    buf_byte(&call->out, '}');
    return 0;
}

static int parse_outcome(struct api_call *call, struct audit_filter *filter)
{
    filter->outcome = call_parameter(call, "outcome");
    if (!filter->outcome.data || str_is(filter->outcome, AUDIT_DONE) ||
        str_is(filter->outcome, AUDIT_REFUSED))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "outcome",
                         "'outcome' must be " AUDIT_DONE " or " AUDIT_REFUSED);
}

int api_audit_list(struct api_call *call)
{
    struct audit_filter *filter = CALL_NEW(call, sizeof *filter);
    bool given, names_one = http_header(call->request, "Perdura-Namespace").data != NULL;

    if (names_one || !principal_is_global(call->principal))
        filter->namespace_name = call->caller.namespace_name;
    filter->principal = call_parameter(call, "principal");
    filter->action = call_parameter(call, "action");
    filter->object_kind = call_parameter(call, "object_kind");
    filter->object_id = call_parameter(call, "object_id");
    TRY(parse_outcome(call, filter));
    TRY(call_parameter_time(call, "after", &filter->after_us));
    TRY(call_parameter_time(call, "before", &filter->before_us));
    TRY(call_list_limit(call, &filter->limit));
    TRY(call_cursor_bytes(call, CURSOR_AUDIT, filter->before_id.bytes, 16, &given));
    return call_read(call, read_entries);
}
