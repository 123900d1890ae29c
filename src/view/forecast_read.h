/* Hands a forecast everything a store has planned: categories, jobs, schedules and patterns, page
 * by page. Memory grows with the number of active jobs only, some hundred bytes each. Any thread
 * with a reader. */
#ifndef VIEW_FORECAST_READ_H
#define VIEW_FORECAST_READ_H

#include "view/catalog_view.h"
#include "view/forecast.h"

/* source->arena is reset between pages. job: name or id of the only one asked for, or absent. */
int forecast_read(struct forecast *forecast, const struct catalog_source *source, struct str job,
                  struct err *err);

#endif
