/* Turns bodies of requests into requests to the engine that make or change parts of the catalog.
 * Shared by the HTTP API and the library, so that both accept the same. Pure, any thread; the
 * engine decides what depends on other rows, on zones or on the time. */
#ifndef VIEW_CATALOG_BODY_H
#define VIEW_CATALOG_BODY_H

#include "core/plan/catalog_parse.h"
#include "engine/engine.h"

/* Fills set and item by `object`, which json_check accepted; kind and op are there already. job_id
 * is the job a schedule or a dependency is made for, where the path says it, else NULL. Texts point
 * into object or arena. ERR_INVALID or ERR_TOO_LARGE with the field. */
int catalog_body_read(struct catalog_request *request, const struct uuid *job_id,
                      struct str object, struct arena *arena, struct err *err);

/* A schedule that is not to be saved, with "count" and "from" beside its fields. */
int catalog_body_preview(struct str object, struct arena *arena, struct schedule *schedule,
                         struct preview_wish *wish, struct err *err);

/* The payload of {"payload":...} for a run; absent where it is not given. */
int catalog_body_run(struct str object, struct str *payload, struct err *err);

#endif
