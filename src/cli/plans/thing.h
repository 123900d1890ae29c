/* What the commands for categories, jobs, schedules and recurring patterns share: finding one by id
 * or name, asking for it, changing it, printing it. One thread. */
#ifndef CLI_PLANS_THING_H
#define CLI_PLANS_THING_H

#include "cli/frame/cli_client.h"
#include "cli/frame/view.h"
#include "calendar/daytimes.h"

#define THING_BODY_BYTES_MAX (8 * 1024 * 1024)

/* What there is, by the folder of the API it lies in, and how the commands about it differ. */
struct thing {
    const char *word; /* "job" */
    const char *path; /* "/v1/jobs/" */
    const struct view_column *list_columns;
    uint32_t list_count;
    const struct view_column *show_columns;
    uint32_t show_count;
    const char *job_member; /* its job, which is shown by name; NULL = none */
    const char *off;        /* the flag that contradicts --active; NULL = none */
    bool keeps;             /* a change needs what is stored */
    /* The members of a request that makes one or changes one. stored: absent for a new one, and
     * where nothing of it is kept. */
    int (*write)(struct client *client, bool is_new, struct str stored, struct buf *body);
    /* Its zone and times of day; false where this machine cannot tell the times. */
    bool (*times)(struct call *call, struct str object, struct str *zone, struct daytimes *times);
};

extern const struct thing thing_category;
extern const struct thing thing_job;
extern const struct thing thing_schedule; /* has no name: its job's, where that has one */
extern const struct thing thing_recurring;

/* Whole commands, on the thing their row of the table is about. */
int thing_run_list(struct call *call);
int thing_run_show(struct call *call);
int thing_run_create(struct call *call);   /* args[0] is its name; prints the id */
int thing_run_update(struct call *call);
int thing_run_delete(struct call *call);   /* every argument */
int thing_run_switch(struct call *call);   /* pause, resume: the command's name is the verb */
int thing_run_now(struct call *call);      /* prints the task's id */
int thing_run_upcoming(struct call *call);

#define UPCOMING_FLAGS                                                                      \
    {.name = "count", .type = FLAG_INT, .value = "N", .field = "count", .min = 1,           \
     .max = 1000, .help = "how many instants (10)"},                                        \
    {.name = "from", .type = FLAG_TIME, .value = "TIME", .field = "from",                   \
     .help = "start: RFC 3339 or +7d (default: now)"}

/* The members of pages of a list: their jobs by name. */
int thing_decorate(struct client *client, struct str items, struct str *decorated);

/* The id of what was typed: an id as it is, or a name. ERR_NOT_FOUND; ERR_CONFLICT with the ids
 * when several have the name. */
int thing_find(struct client *client, const struct thing *thing, struct str text,
                 struct str *id);

/* path + id + after; the reply is an object. body STR_NONE = none. */
int thing_request(struct client *client, const char *method, const struct thing *thing,
                    struct str id, const char *after, struct str body, struct str *reply);
/* POST to the folder itself. */
int thing_create(struct client *client, const struct thing *thing, struct str body,
                   struct str *reply);

/* With --json the whole reply, else a record of it. */
void thing_print(struct call *call, struct str reply, const struct view_column *columns,
                   uint32_t columns_count);
/* With --json the whole reply, else its id alone; ERR_IO when it has none. */
int thing_print_id(struct call *call, struct str reply);

/* Adds "job", the name, to objects that have the id of one in `member` ("job_id"): to every item of
 * an array, or to one object. A job that is not there any more goes by its id. */
int thing_name_jobs(struct client *client, struct str value, const char *member,
                    struct str *named);

/* Appends "field":null, by the name of the field or of the flag that fills it. */
void thing_unset(struct call *call, struct str name, struct buf *body);
/* The same for every item of --unset. */
int thing_write_unset(struct call *call, struct buf *body);

/* Appends the members of object that `body` (open, "{…") does not have yet. */
void thing_merge(struct call *call, struct str object, struct buf *body);

#endif
