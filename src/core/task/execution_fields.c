#include "core/task/execution_fields.h"

FIELD_WORDS(execution_status, execution_status, EXECUTION_PENDING);

#define EXECUTION(...) FIELD_ROW(execution, __VA_ARGS__),
const struct field execution_fields[] = {EXECUTION_FIELDS(EXECUTION)
                                             EXECUTION_TASK_FIELDS(EXECUTION)};

const struct field_table execution_table = {.name = "execution", .alias = "e",
                                            .fields = execution_fields,
                                            .count = EXECUTION_FIELDS_COUNT,
                                            .bytes = sizeof(struct execution)};
const struct field_table execution_shown_table = {.name = "execution_shown", .alias = "e",
                                                  .fields = execution_fields,
                                                  .count = EXECUTION_FIELDS_ALL,
                                                  .bytes = sizeof(struct execution)};
