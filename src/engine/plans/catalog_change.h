/* Categories, jobs, schedules, patterns and dependencies: made, changed, removed (catalog_change.c,
 * catalog_dependencies.c, catalog_times.c, catalog_triggers.c). Belongs to the thread that has the
 * turn (inbox.c). */
#ifndef ENGINE_PLANS_CATALOG_CHANGE_H
#define ENGINE_PLANS_CATALOG_CHANGE_H

#include "core/plan/catalog.h"

struct request;
struct batch;
struct batch_job;
struct catalog_request;

int catalog_apply(struct batch *batch, struct request *base);
int catalog_schedule(struct batch *batch, struct catalog_request *request);
int catalog_recurring(struct batch *batch, struct catalog_request *request);
int catalog_dependency(struct batch *batch, struct catalog_request *request);
/* NULL = there is none, or the caller does not see it. */
const struct job_dependency *catalog_find_dependency(const struct batch *batch,
                                                     const struct catalog_request *request);
int catalog_no_such(struct err *err, const char *what, const struct uuid *id);
/* Of what a request makes. */
struct str catalog_namespace(const struct request *request);
/* Whether the caller may use the queue, type and category that the runs of the job use. */
int catalog_check_work(struct batch *batch, const struct request *request,
                       const struct batch_job *known, struct err *err);
/* The job a request names; one of another namespace or user is none. */
int catalog_find_job(struct batch *batch, const struct request *request, const struct uuid *id,
                     struct batch_job **found, struct err *err);
/* The same, to change what belongs to it. */
int catalog_job(struct batch *batch, const struct request *request, const struct uuid *id,
                struct batch_job **found, struct err *err);
/* whether an end starts too much, with this dependency (new or changed) of this
 * job, or with this job as it is to be. */
int triggers_check(struct batch *batch, const struct job_dependency *dependency,
                   const struct job *job, struct err *err);
int triggers_check_job(struct batch *batch, const struct job *job, struct err *err);

#endif
