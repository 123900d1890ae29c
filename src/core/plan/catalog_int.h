/* Shared only by the catalog_*.c files that read requests. Pure, any
 * thread. */
#ifndef CORE_PLAN_CATALOG_INT_H
#define CORE_PLAN_CATALOG_INT_H

#include "core/plan/catalog_parse.h"
#include "core/spec/spec_int.h"

struct catalog_reader {
    struct arena *arena;
    void *object;         /* the struct it goes into */
    const void *defaults; /* one of the same kind, as it is when new */
    uint64_t set;
    struct str category;  /* a job's, by name */
    struct preview_wish *preview; /* NULL = this is none */
    struct err *err;
};

/* One member of a request's object: how it is read and where it goes. */
struct catalog_member {
    const char *name;
    int (*read)(struct catalog_reader *reader, const struct catalog_member *member,
                struct str value);
    size_t at;    /* offset in the struct, and how many bytes it has there */
    size_t bytes;
    size_t flag;  /* offset of the bool that says it was given; 0 = none */
    int64_t min;  /* numbers */
    int64_t max;  /* numbers; bytes of texts and JSON */
    uint64_t bit; /* in `set` */
};

struct catalog_table {
    const char *noun; /* "a job" */
    const struct catalog_member *members;
    size_t count;
};

/* Readers, by the kind of value. */
typedef int catalog_read(struct catalog_reader *reader, const struct catalog_member *member,
                         struct str value);
catalog_read catalog_read_text;        /* one line */
catalog_read catalog_read_description; /* several lines, also empty */
catalog_read catalog_read_type; /* of tasks */
catalog_read catalog_read_queue;
catalog_read catalog_read_url;
catalog_read catalog_read_callback_events;
catalog_read catalog_read_number;
catalog_read catalog_read_priority;
catalog_read catalog_read_time;
catalog_read catalog_read_bool;
catalog_read catalog_read_id;
catalog_read catalog_read_json;
catalog_read catalog_read_object;
catalog_read catalog_read_category;
catalog_read catalog_read_schedule_type;
catalog_read catalog_read_misfire;
catalog_read catalog_read_overlap;
catalog_read catalog_read_dst;
catalog_read catalog_read_pattern_type;
catalog_read catalog_read_dependency_type;
catalog_read catalog_read_preview_count;
catalog_read catalog_read_preview_from;

extern const struct catalog_table catalog_category_table;
extern const struct catalog_table catalog_job_table;
extern const struct catalog_table catalog_schedule_table;
extern const struct catalog_table catalog_recurring_table;
extern const struct catalog_table catalog_dependency_table;

/* Whether the numbers that are not as in a new one are within the table's bounds: for those that
 * did not come from JSON. */
int catalog_check_numbers(const struct catalog_table *table, const void *object,
                          const void *defaults, struct err *err);

#endif
