/* The columns of the three tables that hold tasks and executions. A column that is not listed has
 * its own statement. */
#include "store/postgres/pg_rows.h"

#include "core/task/execution_fields.h"
#include "core/task/task_fields.h"

const struct pg_table pg_specs = {"task_specs", task_specs, TASK_SPECS_ALL, 1, NULL};
const struct pg_table pg_states = {"task_states", task_states, TASK_STATES_ALL, 1, "rev"};
const struct pg_table pg_executions = {"execution_rows", execution_fields, EXECUTION_FIELDS_COUNT,
                                       2, NULL};
