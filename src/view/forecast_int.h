/* Shared by the forecast_*.c files only. */
#ifndef VIEW_FORECAST_INT_H
#define VIEW_FORECAST_INT_H

#include "calendar/window.h"
#include "view/forecast.h"

/* What marks of an item come from, while its owner is at hand. */
struct forecast_source {
    const struct plan *plan;
    const struct window_set *windows; /* NULL or of count 0: always open */
    const struct zone *window_zone;
};

/* Fills dst, change_us, opens_us and never_opens. */
void forecast_mark(const struct forecast_source *source, struct forecast_item *item);

#endif
