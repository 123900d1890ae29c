/* The ways of a request about what people plan with, the same for categories, jobs, schedules,
 * patterns and dependencies: list, show, make, change, remove, run, when it fires next. {id} may be
 * the name of a category, job or pattern. What is allowed is decided by the queue. Loop thread. */
#ifndef SERVER_CATALOG_CALL_H
#define SERVER_CATALOG_CALL_H

#include "view/catalog_view.h"
#include "server/server_int.h"

/* For functions that run on a reader's thread. */
struct catalog_source catalog_call_source(struct api_call *call, struct store_reader *reader,
                                          struct arena *scratch);

void catalog_call_list(struct api_call *call, enum catalog_kind kind);
/* The parameter of that name, where one job is asked for. */
int catalog_call_with_deleted(struct api_call *call, bool *with_deleted);
void catalog_call_get(struct api_call *call, enum catalog_kind kind);
void catalog_call_create(struct api_call *call, enum catalog_kind kind);
void catalog_call_update(struct api_call *call, enum catalog_kind kind);
void catalog_call_delete(struct api_call *call, enum catalog_kind kind);
/* Beneath /v1/jobs/{id}: schedules and dependencies of that job. */
void catalog_call_list_of_job(struct api_call *call, enum catalog_kind kind);
void catalog_call_create_of_job(struct api_call *call, enum catalog_kind kind);
void catalog_call_delete_dependency(struct api_call *call);
/* Pause and resume: a change of is_active. */
void catalog_call_activate(struct api_call *call, enum catalog_kind kind, bool active);
/* A run now of the job, or of the job of a schedule or pattern. */
void catalog_call_run(struct api_call *call, enum catalog_kind kind);
void catalog_call_upcoming(struct api_call *call, enum catalog_kind kind);
void catalog_call_preview(struct api_call *call, enum catalog_kind kind);

#endif
