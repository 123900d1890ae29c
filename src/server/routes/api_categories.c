/* /v1/categories: what jobs and tasks have in common, such as their queue, windows and defaults.
 * {id} may be the name. All of it is catalog_call.c. Loop thread. */
#include "server/api.h"
#include "server/catalog_call.h"

void api_categories_list(struct api_call *call)
{
    catalog_call_list(call, CATALOG_CATEGORY);
}

void api_category_create(struct api_call *call)
{
    catalog_call_create(call, CATALOG_CATEGORY);
}

void api_category_get(struct api_call *call)
{
    catalog_call_get(call, CATALOG_CATEGORY);
}

void api_category_update(struct api_call *call)
{
    catalog_call_update(call, CATALOG_CATEGORY);
}

void api_category_delete(struct api_call *call)
{
    catalog_call_delete(call, CATALOG_CATEGORY);
}
