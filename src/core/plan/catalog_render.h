/* Categories, jobs, schedules and the like as JSON, as replies show them. Pure. */
#ifndef CORE_PLAN_CATALOG_RENDER_H
#define CORE_PLAN_CATALOG_RENDER_H

#include "core/plan/catalog.h"

/* What a job's reply shows beside its columns. */
struct job_extra {
    const struct category *category; /* the job's, or general: values in force */
    const struct settings *settings; /* handlers and rules have their say in them; NULL = none */
    int64_t next_execution_us;       /* 0 = none planned */
    bool with_stats;
    int64_t total, completed, failed, cancelled, timed_out, open, average_ms, max_ms;
    int64_t since_us;
    bool redacted; /* without the payload */
};

void render_category(struct buf *out, const struct category *category);
void render_job(struct buf *out, const struct job *job, const struct job_extra *extra);
void render_schedule(struct buf *out, const struct schedule *schedule);
void render_recurring(struct buf *out, const struct recurring *recurring);
void render_job_dependency(struct buf *out, const struct job_dependency *dependency);

#endif
