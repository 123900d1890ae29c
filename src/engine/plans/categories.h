/* The catalog in memory: categories, dependencies between jobs, and what runs need of their
 * schedule (categories.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_PLANS_CATEGORIES_H
#define ENGINE_PLANS_CATEGORIES_H

#include "base/arena.h"
#include "base/map.h"
#include "calendar/window.h"
#include "core/plan/catalog.h"

struct batch;
struct engine;

/* A category as tasks meet it. */
struct category_state {
    struct category row;
    struct category_rules rules;
    struct window_set windows; /* count 0: always open */
};

/* What runs of a schedule need to know of it later. */
struct schedule_known {
    struct uuid id;
    struct str timezone; /* absent: it is gone */
    enum overlap overlap;
};

/* The part of the catalog that is kept in memory; all of it is in the arena. */
struct catalog_cache {
    struct arena arena;
    struct map names; /* struct category_state, so the next */
    struct map ids;
    struct map schedules;            /* struct schedule_known, as far as it was asked for */
    struct job_dependency *edges;    /* by who depends ... */
    struct job_dependency **parents; /* ... and the same by whom they depend on */
    uint32_t edges_count;
    int64_t version;
    uint64_t looked_in; /* the batch that made sure that it is the newest */
    bool known;
    bool doubted; /* shared stores: another node may have changed it */
};

/* Is anything planned here at all? */
bool catalog_here(const struct engine *engine);
/* Reads it from the store, at most once per batch. */
int catalog_look(struct batch *batch, struct err *err);
void catalog_doubt(struct engine *engine);  /* it may have changed */
void catalog_forget(struct engine *engine); /* it did */
void catalog_deinit(struct engine *engine);
/* Shared stores: its current version; memory of another version is dropped. */
int catalog_version(struct batch *batch, int64_t *version, struct err *err);
/* What the job waits for or is started by, and who waits for it or is started by it: so many from
 * here on. */
struct job_dependency *edges_of(struct batch *batch, const struct uuid *job_id, uint32_t *count);
struct job_dependency **edges_on(struct batch *batch, const struct uuid *job_id, uint32_t *count);
/* NULL = there is none. They hold until the batch ends. */
int categories_find(struct batch *batch, struct str namespace_name, struct str name,
                    struct category_state **state, struct err *err);
/* The same from memory, which may be a moment behind other nodes. */
int categories_known(struct batch *batch, struct str namespace_name, struct str name,
                     struct category_state **state, struct err *err);
int categories_get(struct batch *batch, const struct uuid *id, struct category_state **state,
                   struct err *err);
int category_of_job(struct batch *batch, const struct job *job, struct category_state **state,
                    struct err *err);
int schedules_know(struct batch *batch, const struct uuid *id, struct schedule_known **known,
                   struct err *err);

#endif
