/* Requests about the catalog, the same for categories, jobs, schedules, patterns and dependencies:
 * list, show, make, change, remove, run, when it fires next. {id} may be the name of a category,
 * job or pattern. The engine decides what is allowed. Loop thread. */
#ifndef SERVER_CATALOG_CALL_H
#define SERVER_CATALOG_CALL_H

#include "view/catalog_view.h"
#include "server/server_int.h"

/* For functions that run on a reader's thread. */
struct catalog_source catalog_call_source(struct api_call *call, struct store_reader *reader,
                                          struct arena *scratch);

/* Handlers. Which kind it is about is the argument of the route. */
int api_plan_list(struct api_call *call);
int api_plan_get(struct api_call *call);
int api_plan_create(struct api_call *call);
int api_plan_update(struct api_call *call);
int api_plan_delete(struct api_call *call);
/* Beneath /v1/jobs/{id}: schedules and dependencies of that job. */
int api_plan_list_of_job(struct api_call *call);
int api_plan_create_of_job(struct api_call *call);
int api_dependency_delete(struct api_call *call);
/* A change of is_active. */
int api_plan_pause(struct api_call *call);
int api_plan_resume(struct api_call *call);
/* A run now of the job, or of the job of a schedule or pattern. */
int api_plan_run(struct api_call *call);
int api_plan_upcoming(struct api_call *call);
int api_plan_preview(struct api_call *call);
int api_job_stats(struct api_call *call);

#endif
