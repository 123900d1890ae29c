/* The stored fields of an audit entry, one row each: column, member, kind, flags (core/field.h).
 * Pure data; any thread. */
#ifndef CORE_LOG_AUDIT_FIELDS_H
#define CORE_LOG_AUDIT_FIELDS_H

#include "core/log/audit.h"

#define AUDIT_FIELDS(FIELD)                                                                        \
    FIELD(seq, seq, INT, 0)                                                                        \
    FIELD(id, id, UUID, 0)                                                                         \
    FIELD(at, at_us, TIME, FIELD_ALWAYS)                                                           \
    FIELD(namespace, namespace_name, TEXT, FIELD_ALWAYS)                                           \
    FIELD(principal, principal, TEXT, FIELD_ALWAYS)                                                \
    FIELD(token_id, token_id, TEXT, 0)                                                             \
    FIELD(address, address, TEXT, 0)                                                               \
    FIELD(request_id, request_id, TEXT, 0)                                                         \
    FIELD(action, action, TEXT, FIELD_ALWAYS)                                                      \
    FIELD(object_kind, object_kind, TEXT, FIELD_ALWAYS)                                            \
    FIELD(object_id, object_id, TEXT, FIELD_ALWAYS)                                                \
    FIELD(change, change, TEXT, 0)                                                                 \
    FIELD(outcome, outcome, TEXT, FIELD_ALWAYS)                                                    \
    FIELD(chain_hash, chain_hash, TEXT, FIELD_ALWAYS)                                              \
    FIELD(mac, mac, TEXT, FIELD_ALWAYS)

#endif
