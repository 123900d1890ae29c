/* The lists of categories, jobs, schedules, recurring patterns and dependencies: any combination of
 * filters, newest first by id; and one of each by its id. One reader per thread. */
#include "store/sqlite/sqlite_catalog.h"
#include "store/sqlite/sqlite_query.h"
#include "store/sqlite/sqlite_read.h"

#include "core/bounds.h"

struct list {
    struct store_reader *reader;
    struct query query;
};

static int fetch(struct list *list, catalog_row *row, size_t bytes, uint32_t limit,
                 struct arena *arena, struct catalog_rows *taken, struct err *err)
{
    sqlite3_stmt *stmt = query_prepare(&list->query, &list->reader->sql, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(&list->reader->sql, stmt, err)) > 0) {
        if (!taken->rows)
            taken->rows = arena_alloc_array(arena, limit, bytes);
        if (!taken->rows) {
            rc = err_set(err, ERR_MEMORY, "out of memory for a list; try again");
            break;
        }
        rc = reader_row_fits(stmt, arena, err);
        if (rc < 0)
            break;
        row(stmt, arena, (char *)taken->rows + taken->count++ * bytes);
    }
    sqlite3_finalize(stmt);
    return rc;
}

/* What every list ends with: the cursor, the order, the limit. */
static int finish(struct list *list, const struct catalog_filter *filter, const char *before,
                  const char *order, catalog_row *row, size_t bytes, struct arena *arena,
                  struct catalog_rows *taken, struct err *err)
{
    uint32_t limit = filter->limit ? filter->limit : BOUND_LIST_LIMIT_DEFAULT;
    int rc;

    *taken = (struct catalog_rows){NULL, 0};
    if (limit > BOUND_LIST_LIMIT)
        limit = BOUND_LIST_LIMIT;
    query_add_id(&list->query, before, &filter->before_id);
    buf_text(&list->query.text, order);
    query_add_number(&list->query, " LIMIT ?", limit);
    reader_begin(list->reader);
    rc = fetch(list, row, bytes, limit, arena, taken, err);
    buf_deinit(&list->query.text);
    return reader_end(list->reader, reader_whole(arena, rc, err));
}

static void begin(struct list *list, struct store_reader *reader, const char *text)
{
    *list = (struct list){.reader = reader, .query = QUERY_INIT};
    buf_text(&list->query.text, text);
}

int sqlite_read_categories(struct store_reader *reader, const struct catalog_filter *filter,
                           struct arena *arena, struct category **categories, uint32_t *count,
                           struct err *err)
{
    struct catalog_rows taken;
    struct list list;
    int rc;

    begin(&list, reader, "SELECT @category@ FROM job_categories c WHERE true");
    query_add_text(&list.query, " AND c.namespace = ?", filter->namespace_name);
    query_add_text(&list.query, " AND c.name = ?", filter->name);
    if (filter->active >= 0)
        query_add_number(&list.query, " AND c.is_active = ?", filter->active);
    rc = finish(&list, filter, " AND c.id < ?", " ORDER BY c.id DESC", sqlite_category_row,
                sizeof **categories, arena, &taken, err);
    *categories = taken.rows;
    *count = taken.count;
    return rc;
}

int sqlite_read_jobs(struct store_reader *reader, const struct catalog_filter *filter,
                     struct arena *arena, struct job **jobs, uint32_t *count, struct err *err)
{
    struct catalog_rows taken;
    struct list list;
    int rc;

    begin(&list, reader, "SELECT @job@ FROM jobs j WHERE true");
    if (!filter->with_deleted)
        buf_text(&list.query.text, " AND j.deleted_at IS NULL");
    query_add_text(&list.query, " AND j.namespace = ?", filter->namespace_name);
    query_add_text(&list.query, " AND j.name = ?", filter->name);
    query_add_id(&list.query, " AND j.id = ?", &filter->job_id);
    query_add_id(&list.query, filter->or_no_category
                 ? " AND (j.category_id = ? OR j.category_id IS NULL)"
                 : " AND j.category_id = ?", &filter->category_id);
    if (filter->active >= 0)
        query_add_number(&list.query, " AND j.is_active = ?", filter->active);
    rc = finish(&list, filter, " AND j.id < ?", " ORDER BY j.id DESC", sqlite_job_row,
                sizeof **jobs, arena, &taken, err);
    *jobs = taken.rows;
    *count = taken.count;
    return rc;
}

int sqlite_read_schedules(struct store_reader *reader, const struct catalog_filter *filter,
                          struct arena *arena, struct schedule **schedules, uint32_t *count,
                          struct err *err)
{
    struct catalog_rows taken;
    struct list list;
    int rc;

    begin(&list, reader, "SELECT @schedule@ FROM schedules h WHERE true");
    query_add_text(&list.query, " AND h.namespace = ?", filter->namespace_name);
    query_add_id(&list.query, " AND h.job_id = ?", &filter->job_id);
    if (filter->active >= 0)
        query_add_number(&list.query, " AND h.is_active = ?", filter->active);
    if (filter->type >= 0)
        query_add_text(&list.query, " AND h.schedule_type = ?",
                 str_of(schedule_type_word((enum schedule_type)filter->type)));
    if (filter->errors_only)
        buf_text(&list.query.text, " AND h.error IS NOT NULL");
    if (filter->next_before_us)
        query_add_number(&list.query, " AND h.next_fire_at < ?", filter->next_before_us);
    rc = finish(&list, filter, " AND h.id < ?", " ORDER BY h.id DESC", sqlite_schedule_row,
                sizeof **schedules, arena, &taken, err);
    *schedules = taken.rows;
    *count = taken.count;
    return rc;
}

int sqlite_read_recurring(struct store_reader *reader, const struct catalog_filter *filter,
                          struct arena *arena, struct recurring **recurring, uint32_t *count,
                          struct err *err)
{
    struct catalog_rows taken;
    struct list list;
    int rc;

    begin(&list, reader, "SELECT @recurring@ FROM recurring_jobs r WHERE true");
    query_add_text(&list.query, " AND r.namespace = ?", filter->namespace_name);
    query_add_text(&list.query, " AND r.name = ?", filter->name);
    query_add_id(&list.query, " AND r.template_job_id = ?", &filter->job_id);
    if (filter->active >= 0)
        query_add_number(&list.query, " AND r.is_active = ?", filter->active);
    if (filter->errors_only)
        buf_text(&list.query.text, " AND r.error IS NOT NULL");
    if (filter->next_before_us)
        query_add_number(&list.query, " AND r.next_generation < ?", filter->next_before_us);
    rc = finish(&list, filter, " AND r.id < ?", " ORDER BY r.id DESC", sqlite_recurring_row,
                sizeof **recurring, arena, &taken, err);
    *recurring = taken.rows;
    *count = taken.count;
    return rc;
}

int sqlite_read_job_dependencies(struct store_reader *reader, const struct catalog_filter *filter,
                                 struct arena *arena, struct job_dependency **dependencies,
                                 uint32_t *count, struct err *err)
{
    struct catalog_rows taken;
    struct list list;
    int rc;

    begin(&list, reader, "SELECT @job_dependency@ FROM job_dependencies d WHERE true");
    query_add_text(&list.query, " AND d.namespace = ?", filter->namespace_name);
    query_add_id(&list.query, " AND (d.job_id = ?", &filter->job_id);
    query_add_id(&list.query, " OR d.depends_on_job_id = ?", &filter->job_id);
    buf_text(&list.query.text, !uuid_is_nil(&filter->job_id) ? ")" : "");
    rc = finish(&list, filter, " AND d.id < ?", " ORDER BY d.id DESC", sqlite_job_dependency_row,
                sizeof **dependencies, arena, &taken, err);
    *dependencies = taken.rows;
    *count = taken.count;
    return rc;
}

/* ---- one by its id ---- */

static int read_one(struct store_reader *reader, enum sqlite_statement name, const struct uuid *id,
                    catalog_row *row, size_t bytes, struct arena *arena, void **taken,
                    struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&reader->sql, name, err);
    int rc;

    *taken = NULL;
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    reader_begin(reader);
    rc = sqlite_row_take(&reader->sql, stmt, row, bytes, arena, taken, err);
    return reader_end(reader, rc);
}

int sqlite_read_category(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                         struct category **category, struct err *err)
{
    void *taken;
    int rc = read_one(reader, SQL_category_by_id, id, sqlite_category_row, sizeof **category,
                      arena, &taken, err);

    *category = taken;
    return rc;
}

int sqlite_read_job(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                    struct job **job, struct err *err)
{
    void *taken;
    int rc = read_one(reader, SQL_job_by_id, id, sqlite_job_row, sizeof **job, arena, &taken, err);

    *job = taken;
    return rc;
}

int sqlite_read_schedule(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                         struct schedule **schedule, struct err *err)
{
    void *taken;
    int rc = read_one(reader, SQL_schedule_by_id, id, sqlite_schedule_row, sizeof **schedule,
                      arena, &taken, err);

    *schedule = taken;
    return rc;
}

int sqlite_read_recurring_one(struct store_reader *reader, const struct uuid *id,
                              struct arena *arena, struct recurring **recurring, struct err *err)
{
    void *taken;
    int rc = read_one(reader, SQL_recurring_by_id, id, sqlite_recurring_row, sizeof **recurring,
                      arena, &taken, err);

    *recurring = taken;
    return rc;
}

int sqlite_read_next_fires(struct store_reader *reader, const struct uuid *job_ids, uint32_t count,
                           int64_t *next_us, struct err *err)
{
    int rc = 0;

    reader_begin(reader);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        sqlite3_stmt *stmt = sql_get(&reader->sql, SQL_next_fire_of_job, err);

        next_us[i] = 0;
        if (!stmt)
            return reader_end(reader, -(int)err->code);
        bind_uuid(stmt, 1, &job_ids[i]);
        rc = sql_step(&reader->sql, stmt, err);
        if (rc <= 0)
            continue;
        next_us[i] = sqlite3_column_int64(stmt, 0);
        sqlite3_reset(stmt);
        rc = 0;
    }
    return reader_end(reader, rc);
}
