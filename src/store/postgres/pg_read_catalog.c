/* The lists of categories, jobs, schedules, recurring patterns and dependencies: any combination of
 * filters, newest first by id; and one of each by its id. Readers plan every question anew, so that
 * a filter that is not there costs nothing. One reader per thread. */
#include "store/postgres/pg_catalog.h"
#include "store/postgres/pg_read.h"

#include "core/bounds.h"

static uint32_t bounded(uint32_t limit)
{
    limit = limit ? limit : BOUND_LIST_LIMIT_DEFAULT;
    return limit > BOUND_LIST_LIMIT ? BOUND_LIST_LIMIT : limit;
}

/* What all lists begin with, in the order that sql/runs.sql tells. */
static void put_filter(struct store_reader *reader, const struct catalog_filter *filter,
                       struct str text)
{
    struct pg_params *params = &reader->conn.params;

    param_text(params, filter->namespace_name);
    param_text(params, text);
    param_uuid(params, &filter->job_id);
    param_uuid(params, &filter->category_id);
    param_int(params, filter->active);
    param_uuid(params, &filter->before_id);
    param_int(params, bounded(filter->limit));
}

static int read_rows(struct store_reader *reader, enum pg_sql_name name, int first,
                     pg_catalog_row *row, size_t bytes, struct arena *arena,
                     struct pg_catalog_rows *taken, struct err *err)
{
    PGresult *result;
    int rc = reader_query(reader, &reader->store->sql.statements[name], &result, err);
    int rows = rc == 0 ? PQntuples(result) : 0;

    *taken = (struct pg_catalog_rows){NULL, 0};
    if (rows > 0)
        taken->rows = arena_alloc_array(arena, (size_t)rows, bytes);
    if (rows > 0 && !taken->rows)
        rc = err_set(err, ERR_MEMORY, "out of memory for a list; try again");
    for (int i = 0; rc == 0 && i < rows; i++) {
        rc = pg_reader_row_fits(result, i, arena, err);
        if (rc == 0)
            row(result, i, first, arena, (char *)taken->rows + taken->count++ * bytes);
    }
    PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

int pg_read_categories(struct store_reader *reader, const struct catalog_filter *filter,
                       struct arena *arena, struct category **categories, uint32_t *count,
                       struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    put_filter(reader, filter, filter->name);
    rc = read_rows(reader, PGSQL_list_categories, 0, pg_category_row, sizeof **categories, arena,
                   &taken, err);
    *categories = taken.rows;
    *count = taken.count;
    return rc;
}

int pg_read_jobs(struct store_reader *reader, const struct catalog_filter *filter,
                 struct arena *arena, struct job **jobs, uint32_t *count, struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    put_filter(reader, filter, filter->name);
    param_bool(&reader->conn.params, filter->with_deleted);
    param_int(&reader->conn.params, reader_room(arena));
    param_bool(&reader->conn.params, filter->or_no_category);
    rc = read_rows(reader, PGSQL_list_jobs, 0, pg_job_row, sizeof **jobs, arena, &taken, err);
    *jobs = taken.rows;
    *count = taken.count;
    return rc;
}

static void put_plan_filter(struct store_reader *reader, const struct catalog_filter *filter,
                            struct str text)
{
    put_filter(reader, filter, text);
    param_bool(&reader->conn.params, filter->errors_only);
    param_time(&reader->conn.params, filter->next_before_us);
}

int pg_read_schedules(struct store_reader *reader, const struct catalog_filter *filter,
                      struct arena *arena, struct schedule **schedules, uint32_t *count,
                      struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    put_plan_filter(reader, filter,
                    filter->type < 0
                        ? STR_NONE
                        : str_of(schedule_type_word((enum schedule_type)filter->type)));
    rc = read_rows(reader, PGSQL_list_schedules, 0, pg_schedule_row, sizeof **schedules, arena,
                   &taken, err);
    *schedules = taken.rows;
    *count = taken.count;
    return rc;
}

int pg_read_recurring(struct store_reader *reader, const struct catalog_filter *filter,
                      struct arena *arena, struct recurring **recurring, uint32_t *count,
                      struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    put_plan_filter(reader, filter, filter->name);
    rc = read_rows(reader, PGSQL_list_recurring, 0, pg_recurring_row, sizeof **recurring, arena,
                   &taken, err);
    *recurring = taken.rows;
    *count = taken.count;
    return rc;
}

int pg_read_job_dependencies(struct store_reader *reader, const struct catalog_filter *filter,
                             struct arena *arena, struct job_dependency **dependencies,
                             uint32_t *count, struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    put_filter(reader, filter, STR_NONE);
    rc = read_rows(reader, PGSQL_list_job_dependencies, 0, pg_job_dependency_row,
                   sizeof **dependencies, arena, &taken, err);
    *dependencies = taken.rows;
    *count = taken.count;
    return rc;
}

/* ---- one by its id ---- */

/* As the writer loads them: {place among the ids, columns}. */
static int read_one(struct store_reader *reader, enum pg_sql_name name, const struct uuid *id,
                    pg_catalog_row *row, size_t bytes, struct arena *arena, void **one,
                    struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    put_uuids(&reader->conn.params, id, sizeof *id, 1);
    rc = read_rows(reader, name, 1, row, bytes, arena, &taken, err);
    *one = taken.rows;
    return rc;
}

int pg_read_category(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                     struct category **category, struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    param_uuid(&reader->conn.params, id);
    rc = read_rows(reader, PGSQL_category_by_id, 0, pg_category_row, sizeof **category, arena,
                   &taken, err);
    *category = taken.rows;
    return rc;
}

int pg_read_job(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                struct job **job, struct err *err)
{
    void *one;
    int rc = read_one(reader, PGSQL_jobs_by_id, id, pg_job_row, sizeof **job, arena, &one, err);

    *job = one;
    return rc;
}

int pg_read_schedule(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                     struct schedule **schedule, struct err *err)
{
    void *one;
    int rc = read_one(reader, PGSQL_schedules_by_id, id, pg_schedule_row, sizeof **schedule, arena,
                      &one, err);

    *schedule = one;
    return rc;
}

int pg_read_recurring_one(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                          struct recurring **recurring, struct err *err)
{
    void *one;
    int rc = read_one(reader, PGSQL_recurring_by_id, id, pg_recurring_row, sizeof **recurring,
                      arena, &one, err);

    *recurring = one;
    return rc;
}

int pg_read_next_fires(struct store_reader *reader, const struct uuid *job_ids, uint32_t count,
                       int64_t *next_us, struct err *err)
{
    PGresult *result;
    int rc;

    if (count == 0)
        return 0;
    memset(next_us, 0, count * sizeof *next_us);
    put_uuids(&reader->conn.params, job_ids, sizeof *job_ids, count);
    rc = reader_query(reader, &reader->store->sql.statements[PGSQL_next_fires], &result, err);
    for (int i = 0; rc == 0 && i < PQntuples(result) && (uint32_t)i < count; i++)
        next_us[i] = get_time(result, i, 0);
    PQclear(result);
    return rc;
}
