/* /v1/recurring: patterns that make tasks of a template job. All of it is catalog_call.c. Loop
 * thread. */
#include "server/api.h"
#include "server/catalog_call.h"

void api_recurring_list(struct api_call *call)
{
    catalog_call_list(call, CATALOG_RECURRING);
}

void api_recurring_create(struct api_call *call)
{
    catalog_call_create(call, CATALOG_RECURRING);
}

void api_recurring_get(struct api_call *call)
{
    catalog_call_get(call, CATALOG_RECURRING);
}

void api_recurring_update(struct api_call *call)
{
    catalog_call_update(call, CATALOG_RECURRING);
}

void api_recurring_delete(struct api_call *call)
{
    catalog_call_delete(call, CATALOG_RECURRING);
}

void api_recurring_preview(struct api_call *call)
{
    catalog_call_preview(call, CATALOG_RECURRING);
}

void api_recurring_pause(struct api_call *call)
{
    catalog_call_activate(call, CATALOG_RECURRING, false);
}

void api_recurring_resume(struct api_call *call)
{
    catalog_call_activate(call, CATALOG_RECURRING, true);
}

void api_recurring_run(struct api_call *call)
{
    catalog_call_run(call, CATALOG_RECURRING);
}

void api_recurring_upcoming(struct api_call *call)
{
    catalog_call_upcoming(call, CATALOG_RECURRING);
}
