/* Questions to a zone. All of them search its table of changes; times behind the table are moved
 * back by whole cycles of 400 years first, and the answer forward again. Pure, any thread. */
#include "calendar/zone_int.h"

#include "calendar/civil.h"

#include <stdlib.h>

#define REPEATS_MAX 16 /* changes within two days that are looked at for a second showing */

int zone_new(struct str name, uint32_t changes_max, struct zone **zone, struct err *err)
{
    struct zone *made = calloc(1, sizeof *made);

    if (!made)
        return err_set(err, ERR_MEMORY, "no memory for a time zone");
    snprintf(made->name, sizeof made->name, STR_FMT, STR_ARG(name));
    made->at_s = calloc(changes_max + 1, sizeof *made->at_s);
    made->shown_s = calloc(changes_max + 1, sizeof *made->shown_s);
    made->span_type = calloc(changes_max + 1, sizeof *made->span_type);
    made->types = calloc(ZONE_TYPES_MAX, sizeof *made->types);
    made->cycle_from_s = ZONE_EVER_S;
    if (!made->at_s || !made->shown_s || !made->span_type || !made->types) {
        zone_free(made);
        return err_set(err, ERR_MEMORY, "no memory for a time zone");
    }
    *zone = made;
    return 0;
}

void zone_free(struct zone *zone)
{
    if (!zone)
        return;
    free(zone->at_s);
    free(zone->shown_s);
    free(zone->span_type);
    free(zone->types);
    free(zone);
}

int zone_new_utc(struct str name, struct zone **zone, struct err *err)
{
    TRY(zone_new(name, 0, zone, err));
    (*zone)->types_count = 1;
    snprintf((*zone)->types[0].abbreviation, ZONE_ABBREVIATION_BYTES, "UTC");
    zone_finish(*zone);
    return 0;
}

void zone_append(struct zone *zone, int64_t at_s, uint16_t type)
{
    if (at_s <= CIVIL_MIN_S) {
        zone->span_type[0] = type; /* before all times there are */
        return;
    }
    if (at_s > CIVIL_MAX_S)
        return;
    if (zone->count > 0 && at_s <= zone->at_s[zone->count - 1])
        zone->count--;
    zone->at_s[zone->count] = at_s;
    zone->span_type[++zone->count] = type;
}

/* Most zones have far fewer changes than there was room for; without memory to move to it stays. */
static void *shrink(void *array, size_t items, size_t item_bytes)
{
    void *smaller = realloc(array, items * item_bytes);

    return smaller ? smaller : array;
}

void zone_finish(struct zone *zone)
{
    int64_t latest_s = -ZONE_EVER_S;

    zone->at_s = shrink(zone->at_s, zone->count + 1, sizeof *zone->at_s);
    zone->shown_s = shrink(zone->shown_s, zone->count + 1, sizeof *zone->shown_s);
    zone->span_type = shrink(zone->span_type, zone->count + 1, sizeof *zone->span_type);
    zone->types = shrink(zone->types, zone->types_count, sizeof *zone->types);

    for (uint32_t i = 0; i < zone->count; i++) {
        int64_t end_s = zone->at_s[i] - 1 + zone->types[zone->span_type[i]].offset_s;

        latest_s = end_s > latest_s ? end_s : latest_s;
        zone->shown_s[i] = latest_s;
    }
}

const char *zone_name(const struct zone *zone)
{
    return zone->name;
}

/* How far a time must be moved back to lie in the table. */
static int64_t cycle_shift(const struct zone *zone, int64_t time_s)
{
    if (time_s < zone->cycle_from_s ? !zone->cycle_before
                                    : time_s - zone->cycle_from_s < CIVIL_CYCLE_S)
        return 0;
    return civil_floor_div(time_s - zone->cycle_from_s, CIVIL_CYCLE_S) * CIVIL_CYCLE_S;
}

/* The number of values that are not above `value` (or_equal) or below it. Without branches that
 * depend on the data: they would be guessed wrong half of the time. */
static uint32_t count_below(const int64_t *values, uint32_t count, int64_t value, bool or_equal)
{
    const int64_t *base = values;
    int64_t bound = value + or_equal;

    if (count == 0)
        return 0;
    while (count > 1) {
        uint32_t half = count / 2;

        base += base[half - 1] < bound ? half : 0;
        count -= half;
    }
    return (uint32_t)(base - values) + (*base < bound);
}

static int32_t span_offset(const struct zone *zone, uint32_t span)
{
    return zone->types[zone->span_type[span]].offset_s;
}

int32_t zone_offset_at(const struct zone *zone, int64_t utc_s)
{
    int64_t time_s = utc_s - cycle_shift(zone, utc_s);

    return span_offset(zone, count_below(zone->at_s, zone->count, time_s, true));
}

void zone_span_at(const struct zone *zone, int64_t utc_s, struct zone_span *span)
{
    int64_t shift_s = cycle_shift(zone, utc_s);
    uint32_t i = count_below(zone->at_s, zone->count, utc_s - shift_s, true);
    const struct zone_type *type = &zone->types[zone->span_type[i]];

    span->from_s = i > 0 ? zone->at_s[i - 1] + shift_s : -ZONE_EVER_S;
    span->until_s = i < zone->count ? zone->at_s[i] + shift_s : ZONE_EVER_S;
    span->offset_s = type->offset_s;
    span->is_daylight = type->is_daylight;
    span->abbreviation = type->abbreviation;
}

/* The span in which local_s (moved into the table) is reached first. */
static uint32_t span_reaching(const struct zone *zone, int64_t local_s, int64_t *at_s)
{
    uint32_t i = count_below(zone->shown_s, zone->count, local_s, false);
    int64_t found_s = local_s - span_offset(zone, i);

    if (i > 0 && found_s < zone->at_s[i - 1])
        found_s = zone->at_s[i - 1];
    *at_s = found_s;
    return i;
}

/* Two days into the cycle there is no doubt on which side of its start an instant lies. */
static int64_t local_shift(const struct zone *zone, int64_t local_s)
{
    return cycle_shift(zone, local_s - 2 * CIVIL_DAY_S);
}

int64_t zone_first_reaching(const struct zone *zone, int64_t local_s, int64_t *shown_s)
{
    int64_t shift_s = local_shift(zone, local_s);
    int64_t at_s;
    uint32_t i = span_reaching(zone, local_s - shift_s, &at_s);

    *shown_s = at_s + span_offset(zone, i) + shift_s;
    return at_s + shift_s;
}

int64_t zone_latest_shown(const struct zone *zone, int64_t utc_s)
{
    int64_t shift_s = cycle_shift(zone, utc_s);
    int64_t time_s = utc_s - shift_s;
    uint32_t i = count_below(zone->at_s, zone->count, time_s, true);
    int64_t shown_s = time_s + span_offset(zone, i);

    if (i > 0 && zone->shown_s[i - 1] > shown_s)
        shown_s = zone->shown_s[i - 1];
    return shown_s + shift_s;
}

struct zone_local zone_from_local(const struct zone *zone, int64_t local_s)
{
    int64_t shift_s = local_shift(zone, local_s);
    int64_t wanted_s = local_s - shift_s;
    struct zone_local found = {.kind = ZONE_UNIQUE};
    int64_t at_s;
    uint32_t i = span_reaching(zone, wanted_s, &at_s);

    found.first_s = found.second_s = at_s + shift_s;
    if (at_s + span_offset(zone, i) != wanted_s) {
        found.kind = ZONE_GAP;
        found.gap_s = at_s + span_offset(zone, i) - (zone->shown_s[i - 1] + 1);
        return found;
    }
    for (uint32_t j = i + 1; j <= zone->count && j <= i + REPEATS_MAX; j++) {
        int64_t again_s = wanted_s - span_offset(zone, j);

        if (again_s < zone->at_s[j - 1] || (j < zone->count && again_s >= zone->at_s[j]))
            continue;
        found.kind = ZONE_AMBIGUOUS;
        found.second_s = again_s + shift_s;
        break;
    }
    return found;
}
