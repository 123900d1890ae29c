/* /v1/schedules: when jobs make tasks. Those of one job are also beneath it, in api_jobs.c. All of
 * it is catalog_call.c. Loop thread. */
#include "server/api.h"
#include "server/catalog_call.h"

void api_schedules_list(struct api_call *call)
{
    catalog_call_list(call, CATALOG_SCHEDULE);
}

void api_schedule_create(struct api_call *call)
{
    catalog_call_create(call, CATALOG_SCHEDULE);
}

void api_schedule_get(struct api_call *call)
{
    catalog_call_get(call, CATALOG_SCHEDULE);
}

void api_schedule_update(struct api_call *call)
{
    catalog_call_update(call, CATALOG_SCHEDULE);
}

void api_schedule_delete(struct api_call *call)
{
    catalog_call_delete(call, CATALOG_SCHEDULE);
}

void api_schedules_preview(struct api_call *call)
{
    catalog_call_preview(call, CATALOG_SCHEDULE);
}

void api_schedule_pause(struct api_call *call)
{
    catalog_call_activate(call, CATALOG_SCHEDULE, false);
}

void api_schedule_resume(struct api_call *call)
{
    catalog_call_activate(call, CATALOG_SCHEDULE, true);
}

void api_schedule_run(struct api_call *call)
{
    catalog_call_run(call, CATALOG_SCHEDULE);
}

void api_schedule_upcoming(struct api_call *call)
{
    catalog_call_upcoming(call, CATALOG_SCHEDULE);
}
