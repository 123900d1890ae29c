/* Three bounded sets below one mutex. It is asked for names that a writer has not counted yet, so
 * mostly never; for those beyond the bound it is every time, at the price of a look-up. */
#include "core/measure/measure_names.h"

#include "base/map.h"
#include "core/measure/measure.h"

#include <pthread.h>
#include <stdlib.h>

struct taken_name {
    size_t len;
    char text[];
};

struct measure_names {
    pthread_mutex_t mutex;
    struct map taken[NAMES_KINDS];
};

static const uint32_t most[NAMES_KINDS] = {MEASURE_QUEUES_MAX, MEASURE_LANES_MAX,
                                           MEASURE_CATEGORIES_MAX};

struct measure_names *measure_names_new(void)
{
    struct measure_names *names = calloc(1, sizeof *names);

    if (names)
        pthread_mutex_init(&names->mutex, NULL);
    return names;
}

void measure_names_free(struct measure_names *names)
{
    struct taken_name *name;

    if (!names)
        return;
    for (int kind = 0; kind < NAMES_KINDS; kind++) {
        uint32_t cursor = 0;

        while ((name = map_next(&names->taken[kind], &cursor)) != NULL)
            free(name);
        map_deinit(&names->taken[kind]);
    }
    pthread_mutex_destroy(&names->mutex);
    free(names);
}

/* Without memory it has none yet. */
static bool add(struct map *taken, struct str name)
{
    struct taken_name *added = malloc(sizeof *added + name.len);

    if (!added)
        return false;
    added->len = name.len;
    memcpy(added->text, name.data, name.len);
    if (map_put(taken, str_span(added->text, added->len), added) == 0)
        return true;
    free(added);
    return false;
}

bool measure_names_take(struct measure_names *names, enum measure_names_kind kind,
                        struct str name)
{
    struct map *taken = &names->taken[kind];
    bool has;

    pthread_mutex_lock(&names->mutex);
    has = map_get(taken, name) != NULL || (map_count(taken) < most[kind] && add(taken, name));
    pthread_mutex_unlock(&names->mutex);
    return has;
}
