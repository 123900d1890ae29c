/* The catalog as replies show it: finds an entry by id or name, shows it, and lists when it fires
 * next. Shared by the HTTP API and the library, so that both show the same. Any thread with a
 * reader; it changes nothing. Lists are in catalog_page.h. */
#ifndef VIEW_CATALOG_VIEW_H
#define VIEW_CATALOG_VIEW_H

#include "calendar/zones.h"
#include "engine/engine.h"
#include "store/catalog_store.h"

#define UPCOMING_COUNT_DEFAULT 10
#define UPCOMING_COUNT_MAX 1000 /* each costs microseconds, at worst a millisecond */

/* Where to look, and at which time. */
struct catalog_source {
    const struct store *store;
    struct store_reader *reader;
    struct zones *zones;
    int64_t now_us;      /* by the wall */
    const struct settings *settings; /* values of jobs depend on them; NULL = there are none */
    struct arena *arena; /* what is read lives here */
    struct str namespace_name; /* nothing of another one is there; absent = default */
    bool with_deleted;   /* catalog_load finds a job that was deleted, too */
    bool redacted;       /* jobs are shown without their payloads */
    const struct principal *principal; /* who looks; NULL = one that sees the jobs of all users */
};

/* The namespace that all of it is about. */
struct str catalog_source_namespace(const struct catalog_source *source);

/* An id as it is, whether there is such a thing or not; else a category, job or pattern by its
 * name: ERR_NOT_FOUND, or ERR_CONFLICT when several have it. */
int catalog_find(const struct catalog_source *source, enum catalog_kind kind, struct str text,
                 struct uuid *id, struct err *err);

/* The thing itself in source->arena, a struct category and so on; ERR_NOT_FOUND, also for a job
 * that was deleted, unless with_deleted. Not for dependencies. */
int catalog_load(const struct catalog_source *source, enum catalog_kind kind,
                 const struct uuid *id, const void **item, struct err *err);

/* Whether who looks may know of what belongs to this job; what is of another user's job is as if it
 * were not there. */
bool catalog_shows_job(const struct catalog_source *source, const struct job *job);
/* The same for a schedule or pattern, by its job, which is read. */
int catalog_shows(const struct catalog_source *source, enum catalog_kind kind, const void *item,
                  bool *shows, struct err *err);

/* Is there this dependency, and is it one of the job's own? ERR_NOT_FOUND when not. */
int catalog_check_dependency(const struct catalog_source *source, const struct uuid *job_id,
                             const struct uuid *id, struct err *err);

/* As JSON; a job with the values in force and its next instant, which are read. */
int catalog_write(const struct catalog_source *source, enum catalog_kind kind, const void *item,
                  struct buf *out, struct err *err);
/* The same for a page of jobs, whose categories and instants are read together. */
int catalog_write_jobs(const struct catalog_source *source, const struct job *jobs, uint32_t count,
                       struct buf *out, struct err *err);

struct upcoming_wish {
    int64_t count;
    int64_t from_us; /* the first instant at or after it; 0 = now */
};

/* Writes {"items":[instants],"explain":"words"}. What is not active has no instants. */
int catalog_write_upcoming(const struct catalog_source *source, enum catalog_kind kind,
                           const void *item, const struct upcoming_wish *wish, struct buf *out,
                           struct err *err);
/* The same for a schedule or pattern that is not stored, made now (or at wish->from_us). */
int catalog_write_preview(const struct catalog_source *source, enum catalog_kind kind, void *item,
                          const struct upcoming_wish *wish, struct buf *out, struct err *err);

#endif
