-- Categories, jobs and their dependencies; schedules, recurring patterns and what they fired. The
-- columns come from core/plan/catalog_fields.h.

-- name: catalog_lock
INSERT INTO store_info (name, value) VALUES ('catalog_version', '1')
ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1;

-- name: catalog_version
SELECT CAST(value AS INTEGER) FROM store_info WHERE name = 'catalog_version';

-- name: categories_all
SELECT @category@ FROM job_categories c ORDER BY c.id;

-- name: categories_by_id
SELECT 1, @category@ FROM job_categories c WHERE c.id = ?1;

-- name: category_named
SELECT 1 FROM job_categories WHERE namespace = ?2 AND name = ?3 AND id <> ?1;

-- name: category_put
INSERT INTO job_categories (@category.names@)
VALUES (@category.values@)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description,
    default_priority = excluded.default_priority, default_timeout = excluded.default_timeout,
    default_max_retries = excluded.default_max_retries, configuration = excluded.configuration,
    is_active = excluded.is_active, updated_at = excluded.updated_at;

-- name: category_used
SELECT 1 FROM jobs WHERE category_id = ?1 AND deleted_at IS NULL LIMIT 1;

-- name: category_forget
UPDATE jobs SET category_id = NULL WHERE category_id = ?1;

-- name: category_delete
DELETE FROM job_categories WHERE id = ?1;

-- name: jobs_by_id
SELECT 1, @job@ FROM jobs j WHERE j.id = ?1;

-- name: job_put
INSERT INTO jobs (@job_put.names@)
VALUES (@job_put.values@)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description,
    category_id = excluded.category_id, task_type = excluded.task_type, queue = excluded.queue,
    target_service = excluded.target_service, target_method = excluded.target_method,
    payload = excluded.payload, priority = excluded.priority, max_retries = excluded.max_retries,
    timeout_seconds = excluded.timeout_seconds, max_concurrent = excluded.max_concurrent,
    callback_url = excluded.callback_url, callback_events = excluded.callback_events,
    is_active = excluded.is_active,
    created_by = excluded.created_by, created_by_principal = excluded.created_by_principal,
    updated_at = excluded.updated_at,
    deleted_at = excluded.deleted_at;

-- name: job_ended
UPDATE jobs SET last_task_id = ?2, last_status = ?3, last_ended_at = ?4 WHERE id = ?1;

-- name: job_is_template
SELECT 1 FROM recurring_jobs WHERE template_job_id = ?1 LIMIT 1;

-- name: job_delete
UPDATE jobs SET deleted_at = ?2, updated_at = ?2 WHERE id = ?1 AND deleted_at IS NULL;

-- name: job_deletes_schedules
DELETE FROM schedules WHERE job_id = ?1;

-- name: job_deletes_dependencies
DELETE FROM job_dependencies WHERE job_id = ?1 OR depends_on_job_id = ?1;

-- name: job_dependencies_all
SELECT @job_dependency@ FROM job_dependencies d ORDER BY d.id;

-- name: job_dependency_same
SELECT 1 FROM job_dependencies
WHERE job_id = ?2 AND depends_on_job_id = ?3 AND dependency_type = ?4 AND id <> ?1;

-- name: job_dependency_put
INSERT INTO job_dependencies (@job_dependency.names@)
VALUES (@job_dependency.values@)
ON CONFLICT (id) DO UPDATE SET job_id = excluded.job_id,
    depends_on_job_id = excluded.depends_on_job_id, dependency_type = excluded.dependency_type,
    dependency_config = excluded.dependency_config;

-- name: job_dependency_delete
DELETE FROM job_dependencies WHERE id = ?1;

-- name: schedules_by_id
SELECT 1, @schedule@ FROM schedules h WHERE h.id = ?1;

-- name: schedule_put
INSERT INTO schedules (@schedule.names@)
VALUES (@schedule.values@)
ON CONFLICT (id) DO UPDATE SET job_id = excluded.job_id, schedule_type = excluded.schedule_type,
    cron_expression = excluded.cron_expression, interval_seconds = excluded.interval_seconds,
    scheduled_at = excluded.scheduled_at, timezone = excluded.timezone,
    starts_at = excluded.starts_at, ends_at = excluded.ends_at, is_active = excluded.is_active,
    misfire = excluded.misfire, misfire_grace_ms = excluded.misfire_grace_ms,
    misfire_cap = excluded.misfire_cap, overlap = excluded.overlap, dst = excluded.dst,
    jitter_ms = excluded.jitter_ms, callback_url = excluded.callback_url,
    callback_events = excluded.callback_events,
    next_fire_at = excluded.next_fire_at, last_fire_at = excluded.last_fire_at,
    error = excluded.error, created_by_principal = excluded.created_by_principal,
    updated_at = excluded.updated_at;

-- name: schedule_delete
DELETE FROM schedules WHERE id = ?1;

-- The due ones, and the first that is not due yet.
-- name: schedules_due
SELECT * FROM (SELECT @schedule@ FROM schedules h INDEXED BY schedules_next
    CROSS JOIN jobs j ON j.id = h.job_id
    WHERE h.is_active = 1 AND h.next_fire_at <= ?1 AND j.deleted_at IS NULL
    ORDER BY h.next_fire_at LIMIT ?2)
UNION ALL
SELECT * FROM (SELECT @schedule@ FROM schedules h INDEXED BY schedules_next
    CROSS JOIN jobs j ON j.id = h.job_id
    WHERE h.is_active = 1 AND h.next_fire_at > ?1 AND j.deleted_at IS NULL
    ORDER BY h.next_fire_at LIMIT 1);

-- name: schedules_step
UPDATE schedules SET next_fire_at = ?3, last_fire_at = coalesce(?4, last_fire_at), error = ?5
WHERE id = ?1 AND next_fire_at IS ?2;

-- name: schedules_scan
SELECT @schedule@ FROM schedules h WHERE h.id > coalesce(?1, x'') ORDER BY h.id LIMIT ?2;

-- name: recurring_by_id
SELECT 1, @recurring@ FROM recurring_jobs r WHERE r.id = ?1;

-- name: recurring_put
INSERT INTO recurring_jobs (@recurring.names@)
VALUES (@recurring.values@)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, pattern_type = excluded.pattern_type,
    pattern_config = excluded.pattern_config, template_job_id = excluded.template_job_id,
    last_generated = excluded.last_generated, next_generation = excluded.next_generation,
    is_active = excluded.is_active, error = excluded.error,
    created_by_principal = excluded.created_by_principal, updated_at = excluded.updated_at;

-- name: recurring_delete
DELETE FROM recurring_jobs WHERE id = ?1;

-- name: recurring_due
SELECT * FROM (SELECT @recurring@ FROM recurring_jobs r INDEXED BY recurring_jobs_next
    CROSS JOIN jobs j ON j.id = r.template_job_id
    WHERE r.is_active = 1 AND r.next_generation <= ?1 AND j.deleted_at IS NULL
    ORDER BY r.next_generation LIMIT ?2)
UNION ALL
SELECT * FROM (SELECT @recurring@ FROM recurring_jobs r INDEXED BY recurring_jobs_next
    CROSS JOIN jobs j ON j.id = r.template_job_id
    WHERE r.is_active = 1 AND r.next_generation > ?1 AND j.deleted_at IS NULL
    ORDER BY r.next_generation LIMIT 1);

-- name: recurring_step
UPDATE recurring_jobs SET next_generation = ?3, last_generated = coalesce(?4, last_generated),
    error = ?5
WHERE id = ?1 AND next_generation IS ?2;

-- name: recurring_scan
SELECT @recurring@ FROM recurring_jobs r WHERE r.id > coalesce(?1, x'') ORDER BY r.id LIMIT ?2;

-- name: schedule_fires
INSERT OR IGNORE INTO schedule_fires (schedule_id, fire_at, task_id) VALUES (?1, ?2, ?3);

-- name: recurring_fires
INSERT OR IGNORE INTO recurring_fires (recurring_job_id, instant, task_id) VALUES (?1, ?2, ?3);

-- name: schedule_fires_prune
DELETE FROM schedule_fires WHERE (schedule_id, fire_at) IN (
    SELECT schedule_id, fire_at FROM schedule_fires INDEXED BY schedule_fires_time
    WHERE fire_at < ?1 ORDER BY fire_at LIMIT ?2);

-- name: recurring_fires_prune
DELETE FROM recurring_fires WHERE (recurring_job_id, instant) IN (
    SELECT recurring_job_id, instant FROM recurring_fires INDEXED BY recurring_fires_time
    WHERE instant < ?1 ORDER BY instant LIMIT ?2);
