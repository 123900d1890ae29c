/* Entries of the audit trail as lines of a chain, and as JSON. Pure; any thread. */
#include "core/log/audit_fields.h"

#include "base/json.h"
#include "core/render.h"

#include <arpa/inet.h>

#define AUDIT(...) FIELD_ROW(audit_entry, __VA_ARGS__),
static const struct field entries[] = {AUDIT_FIELDS(AUDIT)};
const struct field_table audit_table = FIELD_TABLE(audit_entry, "audit", "u", entries);

/* Behind all ids that begin with a time: a walk over chains in their order comes to it last. */
const struct uuid audit_chain = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 0xff}};

bool audit_is_chain(const struct uuid *execution_id)
{
    return uuid_eq(execution_id, &audit_chain);
}

/* Everything but what the line has itself. An absent text differs from an empty one. */
int audit_line(const struct audit_entry *entry, struct buf *text, struct log_line *line)
{
    buf_reset(text);
    buf_byte(text, '{');
    render_text(text, "namespace", entry->namespace_name);
    render_text(text, "principal", entry->principal);
    render_text(text, "token_id", entry->token_id);
    render_text(text, "address", entry->address);
    render_text(text, "request_id", entry->request_id);
    render_text(text, "action", entry->action);
    render_text(text, "object_kind", entry->object_kind);
    render_text(text, "object_id", entry->object_id);
    render_text(text, "outcome", entry->outcome);
    buf_byte(text, '}');
    *line = (struct log_line){.id = entry->id,
                              .execution_id = audit_chain,
                              .seq = entry->seq,
                              .level = SEVERITY_INFO,
                              .message = buf_view(text),
                              .context = entry->change,
                              .logged_at_us = entry->at_us,
                              .bound = true};
    return text->failed ? -ERR_MEMORY : 0;
}

void audit_note(const struct audit_entry *entry, struct log_note *note)
{
    *note = (struct log_note){.part.lines = 1, .logged_at_us = entry->at_us};
    logchain_resume(&note->part.head, &audit_chain, entry->seq, entry->chain_hash);
    if (entry->mac.len == LOGMAC_HEX_BYTES)
        memcpy(note->mac, entry->mac.data, LOGMAC_HEX_BYTES);
}

struct str audit_address(const uint8_t bytes[16], struct arena *arena)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    char text[INET6_ADDRSTRLEN];
    bool v4 = memcmp(bytes, mapped, sizeof mapped) == 0;

    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? bytes + sizeof mapped : bytes, text, sizeof text))
        return STR_NONE;
    return arena_str(arena, str_of(text));
}

void audit_by(struct audit_entry *entry, const struct caller *caller, struct arena *arena)
{
    BUF_AUTO struct buf label = BUF_INIT(AUDIT_TEXT_BYTES_MAX);

    principal_write_label(&label, caller->principal);
    entry->principal = arena_str(arena, buf_view(&label));
    entry->token_id = caller->principal->id;
    entry->request_id = str_cut(caller->request_id, AUDIT_TEXT_BYTES_MAX);
    if (caller->address)
        entry->address = audit_address(caller->address, arena);
    if (!entry->namespace_name.data)
        entry->namespace_name = caller->namespace_name;
}

void audit_render(struct buf *out, const struct audit_entry *entry)
{
    buf_byte(out, '{');
    render_int(out, "seq", entry->seq);
    render_uuid(out, "id", &entry->id);
    render_time(out, "at", entry->at_us);
    render_text(out, "namespace", entry->namespace_name);
    render_text(out, "principal", entry->principal);
    render_text(out, "token_id", entry->token_id);
    render_text(out, "address", entry->address);
    render_text(out, "request_id", entry->request_id);
    render_text(out, "action", entry->action);
    render_text(out, "object_kind", entry->object_kind);
    render_text(out, "object_id", entry->object_id);
    render_json(out, "change", entry->change);
    render_text(out, "outcome", entry->outcome);
    render_text(out, "chain_hash", entry->chain_hash);
    buf_byte(out, '}');
}
