/* The stored fields of recovery entries and checkpoints, one row each: column, member, kind, flags
 * and the rest by name (core/field.h). Pure data; any thread. */
#ifndef CORE_TASK_RECOVERY_FIELDS_H
#define CORE_TASK_RECOVERY_FIELDS_H

#include "core/field.h"
#include "core/task/recovery.h"

#define RECOVERY_FIELDS(FIELD)                                                                     \
    FIELD(id, id, UUID, 0)                                                                         \
    FIELD(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE)      \
    FIELD(task_id, task_id, UUID, 0)                                                               \
    FIELD(recovery_method, method, WORD, 0, .words = &recovery_method_words)                       \
    FIELD(recovery_priority, priority, INT, 0)                                                     \
    FIELD(scheduled_for, scheduled_for_us, TIME, FIELD_ALWAYS)                                     \
    FIELD(processing_started, processing_started_us, TIME, 0)                                      \
    FIELD(processing_completed, processing_completed_us, TIME, 0)                                  \
    FIELD(status, status, WORD, 0, .words = &recovery_status_words)                                \
    FIELD(attempts, attempts, INT, 0)                                                              \
    FIELD(max_attempts, max_attempts, INT, 0)                                                      \
    FIELD(recovery_result, result, JSON, 0)                                                        \
    FIELD(error_message, error_message, TEXT, 0)                                                   \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)

#define CHECKPOINT_FIELDS(FIELD)                                                                   \
    FIELD(id, id, UUID, 0)                                                                         \
    FIELD(seq, seq, INT, 0)                                                                        \
    FIELD(checkpoint_name, name, TEXT, 0)                                                          \
    FIELD(progress_percent, progress, INT, 0)                                                      \
    FIELD(step_description, description, TEXT, 0)                                                  \
    FIELD(recoverable_data, data, TEXT, FIELD_LONG)                                                \
    FIELD(database_state, database_state, TEXT, FIELD_LONG)                                        \
    FIELD(file_state, file_state, TEXT, FIELD_LONG)                                                \
    FIELD(checkpoint_hash, hash, HASH, 0)                                                          \
    FIELD(is_valid, valid, BOOL, 0)                                                                \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)

extern const struct field_table recovery_table;   /* struct recovery_entry, alias r */
extern const struct field_table checkpoint_table; /* struct checkpoint, alias k */

#endif
