/* What the commands for categories, jobs, schedules and recurring patterns share: finding one by id
 * or name, asking for it, changing it, printing it. One thread. */
#ifndef CLI_PLANS_THING_H
#define CLI_PLANS_THING_H

#include "cli/frame/cli_client.h"
#include "cli/frame/view.h"

#define THING_BODY_BYTES_MAX (8 * 1024 * 1024)
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(array)[0])

/* What there is, by the folder of the API it lies in. */
struct thing {
    const char *word; /* "job" */
    const char *path; /* "/v1/jobs/" */
};

extern const struct thing thing_category;
extern const struct thing thing_job;
extern const struct thing thing_schedule; /* has no name: its job's, where that has one */
extern const struct thing thing_recurring;

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

/* One whole command on args[0]: finds it, asks, and gives the reply. */
int thing_act(struct call *call, const char *method, const struct thing *thing,
                const char *after, struct str body, struct str *reply);
/* DELETE of every argument; says what was deleted. */
int thing_delete_all(struct call *call, const struct thing *thing);

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
/* ERR_USAGE when a body has nothing in it. */
int thing_check_change(struct call *call, const struct buf *body);

/* Appends the members of object that `body` (open, "{…") does not have yet. */
void thing_merge(struct call *call, struct str object, struct buf *body);

#endif
