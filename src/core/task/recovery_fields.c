#include "core/task/recovery_fields.h"

FIELD_WORDS(recovery_method, recovery_method, RECOVERY_RESUME_CHECKPOINT);
FIELD_WORDS(recovery_status, recovery_status, RECOVERY_PENDING);

#define ENTRY(...) FIELD_ROW(recovery_entry, __VA_ARGS__),
static const struct field entries[] = {RECOVERY_FIELDS(ENTRY)};
const struct field_table recovery_table = FIELD_TABLE(recovery_entry, "recovery", "r", entries);

#define CHECKPOINT(...) FIELD_ROW(checkpoint, __VA_ARGS__),
static const struct field checkpoints[] = {CHECKPOINT_FIELDS(CHECKPOINT)};
const struct field_table checkpoint_table = FIELD_TABLE(checkpoint, "checkpoint", "k", checkpoints);
