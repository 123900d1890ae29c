/* The lists of categories, jobs, schedules and recurring patterns, once for every store: any
 * combination of filters, newest first by id; and one of each by its id. One reader per thread. */
#include "store/rows/rows_catalog.h"

#include "core/plan/catalog_fields.h"

int rows_read_categories(struct store_reader *reader, const struct catalog_filter *filter,
                         struct arena *arena, struct category **categories, uint32_t *count,
                         struct err *err)
{
    return rows_take(rows_of_reader(reader),
                     ROWS_QUERY(ROWS_list_categories, ROWS_FILTER(filter, filter->name)),
                     &category_table, arena, ROWS_INTO(categories), count, err);
}

/* A category counts as the fourth filter, or as the last one if jobs without any fit, too. */
int rows_read_jobs(struct store_reader *reader, const struct catalog_filter *filter,
                   struct arena *arena, struct job **jobs, uint32_t *count, struct err *err)
{
    struct catalog_filter one = *filter;

    if (filter->or_no_category)
        one.category_id = (struct uuid){{0}};
    return rows_take(rows_of_reader(reader),
                     ROWS_QUERY(ROWS_list_jobs, ROWS_FILTER(&one, filter->name),
                                value_bool(!filter->with_deleted), value_int(rows_room(arena)),
                                value_uuid(filter->or_no_category ? &filter->category_id : NULL),
                                value_text(filter->target_service)),
                     &job_table, arena, ROWS_INTO(jobs), count, err);
}

int rows_read_schedules(struct store_reader *reader, const struct catalog_filter *filter,
                        struct arena *arena, struct schedule **schedules, uint32_t *count,
                        struct err *err)
{
    const char *type = filter->type < 0 ? NULL
                                        : schedule_type_word((enum schedule_type)filter->type);

    return rows_take(rows_of_reader(reader),
                     ROWS_QUERY(ROWS_list_schedules, ROWS_FILTER(filter, str_of(type)),
                                value_bool(filter->errors_only),
                                value_time(filter->next_before_us)),
                     &schedule_table, arena, ROWS_INTO(schedules), count, err);
}

int rows_read_recurring(struct store_reader *reader, const struct catalog_filter *filter,
                        struct arena *arena, struct recurring **recurring, uint32_t *count,
                        struct err *err)
{
    return rows_take(rows_of_reader(reader),
                     ROWS_QUERY(ROWS_list_recurring, ROWS_FILTER(filter, filter->name),
                                value_bool(filter->errors_only),
                                value_time(filter->next_before_us)),
                     &recurring_table, arena, ROWS_INTO(recurring), count, err);
}

/* ---- one by its id ---- */

int rows_read_category(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                       struct category **category, struct err *err)
{
    return rows_by_id(rows_of_reader(reader), ROWS_categories_by_id, id, 1, &category_table, arena,
                      ROWS_INTO(category), err);
}

int rows_read_job(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                  struct job **job, struct err *err)
{
    return rows_by_id(rows_of_reader(reader), ROWS_jobs_by_id, id, 1, &job_table, arena,
                      ROWS_INTO(job), err);
}

int rows_read_schedule(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                       struct schedule **schedule, struct err *err)
{
    return rows_by_id(rows_of_reader(reader), ROWS_schedules_by_id, id, 1, &schedule_table, arena,
                      ROWS_INTO(schedule), err);
}

int rows_read_recurring_one(struct store_reader *reader, const struct uuid *id,
                            struct arena *arena, struct recurring **recurring, struct err *err)
{
    return rows_by_id(rows_of_reader(reader), ROWS_recurring_by_id, id, 1, &recurring_table, arena,
                      ROWS_INTO(recurring), err);
}

int rows_read_next_fires(struct store_reader *reader, const struct uuid *job_ids, uint32_t count,
                         int64_t *next_us, struct err *err)
{
    memset(next_us, 0, count * sizeof *next_us);
    return rows_numbers_by_id(rows_of_reader(reader), ROWS_next_fires, job_ids, count, next_us,
                              err);
}
