/* The conformance suite on the PostgreSQL store: a database or schema per test. */
#include "conformance.h"

#include "pg_schema.h"

static void harm(const char *where)
{
    pg_schema_run(where, "DELETE FROM task_specs WHERE task = (SELECT min(task) FROM task_specs)");
}

int main(void)
{
    static const struct conformance_kind postgres = {"postgres", pg_schema_make, pg_schema_drop,
                                                     harm, false, false};
    static const struct conformance_kind sealed = {"postgres, encrypted", pg_schema_make,
                                                   pg_schema_drop, harm, false, true};

    return conformance_run(&postgres) + conformance_run(&sealed);
}
