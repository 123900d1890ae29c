-- Categories, jobs and their dependencies; schedules, recurring patterns and what they fired. The
-- columns come from core/plan/catalog_fields.h.

-- Locks the row until the transaction ends, so that no other node changes the catalog meanwhile.
-- name: catalog_lock
INSERT INTO store_info AS i (name, value) VALUES ('catalog_version', '1')
ON CONFLICT (name) DO UPDATE SET value = (i.value::bigint + 1)::text;

-- name: catalog_version
SELECT value::bigint FROM store_info WHERE name = 'catalog_version';

-- name: categories_all
SELECT @category@ FROM job_categories c ORDER BY c.id;

-- name: categories_by_id
SELECT v.n, @category@ FROM unnest($1::uuid[]) WITH ORDINALITY AS v (id, n)
JOIN job_categories c ON c.id = v.id;

-- name: category_named
SELECT 1 FROM job_categories WHERE namespace = $2 AND name = $3 AND id <> $1;

-- name: category_put
INSERT INTO job_categories (@category.names@)
VALUES (@category.values@)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description,
    default_priority = excluded.default_priority, default_timeout = excluded.default_timeout,
    default_max_retries = excluded.default_max_retries, configuration = excluded.configuration,
    is_active = excluded.is_active, updated_at = excluded.updated_at;

-- name: category_used
SELECT 1 FROM jobs WHERE category_id = $1 AND deleted_at IS NULL LIMIT 1;

-- name: category_forget
UPDATE jobs SET category_id = NULL WHERE category_id = $1;

-- name: category_delete
DELETE FROM job_categories WHERE id = $1;

-- name: jobs_by_id
SELECT v.n, @job@ FROM unnest($1::uuid[]) WITH ORDINALITY AS v (id, n)
JOIN jobs j ON j.id = v.id;

-- name: jobs_hold
SELECT v.n, @job@ FROM unnest($1::uuid[]) WITH ORDINALITY AS v (id, n)
JOIN jobs j ON j.id = v.id ORDER BY j.id FOR NO KEY UPDATE OF j;

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
UPDATE jobs SET last_task_id = $2, last_status = $3, last_ended_at = $4 WHERE id = $1;

-- name: job_is_template
SELECT 1 FROM recurring_jobs WHERE template_job_id = $1 LIMIT 1;

-- name: job_delete
UPDATE jobs SET deleted_at = $2, updated_at = $2 WHERE id = $1 AND deleted_at IS NULL;

-- name: job_deletes_schedules
DELETE FROM schedules WHERE job_id = $1;

-- name: job_deletes_dependencies
DELETE FROM job_dependencies WHERE job_id = $1 OR depends_on_job_id = $1;

-- name: job_dependencies_all
SELECT @job_dependency@ FROM job_dependencies d ORDER BY d.id;

-- name: job_dependency_same
SELECT 1 FROM job_dependencies
WHERE job_id = $2 AND depends_on_job_id = $3 AND dependency_type = $4 AND id <> $1;

-- name: job_dependency_put
INSERT INTO job_dependencies (@job_dependency.names@)
VALUES (@job_dependency.values@)
ON CONFLICT (id) DO UPDATE SET job_id = excluded.job_id,
    depends_on_job_id = excluded.depends_on_job_id, dependency_type = excluded.dependency_type,
    dependency_config = excluded.dependency_config;

-- name: job_dependency_delete
DELETE FROM job_dependencies WHERE id = $1;

-- name: schedules_by_id
SELECT v.n, @schedule@ FROM unnest($1::uuid[]) WITH ORDINALITY AS v (id, n)
JOIN schedules h ON h.id = v.id;

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
DELETE FROM schedules WHERE id = $1;

-- The due ones, and the first that is not due yet. Jobs are looked up one by one, because the
-- planner might begin a join with them.
-- name: schedules_due
(SELECT @schedule@ FROM schedules h
WHERE h.is_active AND h.next_fire_at <= $1
    AND (SELECT j.deleted_at IS NULL FROM jobs j WHERE j.id = h.job_id)
ORDER BY h.next_fire_at LIMIT $2)
UNION ALL
(SELECT @schedule@ FROM schedules h
WHERE h.is_active AND h.next_fire_at > $1
    AND (SELECT j.deleted_at IS NULL FROM jobs j WHERE j.id = h.job_id)
ORDER BY h.next_fire_at LIMIT 1);

-- name: schedules_step
UPDATE schedules h SET next_fire_at = v.goes_to,
    last_fire_at = coalesce(v.fired_at, h.last_fire_at), error = v.error
FROM (SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[],
        $5::text[]) WITH ORDINALITY AS u (id, stood_at, goes_to, fired_at, error, n)
    ORDER BY u.id) v
WHERE h.id = v.id AND h.next_fire_at IS NOT DISTINCT FROM v.stood_at
RETURNING v.n;

-- name: schedules_scan
SELECT @schedule@ FROM schedules h
WHERE h.id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid) ORDER BY h.id LIMIT $2;

-- name: recurring_by_id
SELECT v.n, @recurring@ FROM unnest($1::uuid[]) WITH ORDINALITY AS v (id, n)
JOIN recurring_jobs r ON r.id = v.id;

-- name: recurring_put
INSERT INTO recurring_jobs (@recurring.names@)
VALUES (@recurring.values@)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, pattern_type = excluded.pattern_type,
    pattern_config = excluded.pattern_config, template_job_id = excluded.template_job_id,
    last_generated = excluded.last_generated, next_generation = excluded.next_generation,
    is_active = excluded.is_active, error = excluded.error,
    created_by_principal = excluded.created_by_principal, updated_at = excluded.updated_at;

-- name: recurring_delete
DELETE FROM recurring_jobs WHERE id = $1;

-- name: recurring_due
(SELECT @recurring@ FROM recurring_jobs r
WHERE r.is_active AND r.next_generation <= $1
    AND (SELECT j.deleted_at IS NULL FROM jobs j WHERE j.id = r.template_job_id)
ORDER BY r.next_generation LIMIT $2)
UNION ALL
(SELECT @recurring@ FROM recurring_jobs r
WHERE r.is_active AND r.next_generation > $1
    AND (SELECT j.deleted_at IS NULL FROM jobs j WHERE j.id = r.template_job_id)
ORDER BY r.next_generation LIMIT 1);

-- name: recurring_step
UPDATE recurring_jobs r SET next_generation = v.goes_to,
    last_generated = coalesce(v.fired_at, r.last_generated), error = v.error
FROM (SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[],
        $5::text[]) WITH ORDINALITY AS u (id, stood_at, goes_to, fired_at, error, n)
    ORDER BY u.id) v
WHERE r.id = v.id AND r.next_generation IS NOT DISTINCT FROM v.stood_at
RETURNING v.n;

-- name: recurring_scan
SELECT @recurring@ FROM recurring_jobs r
WHERE r.id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid) ORDER BY r.id LIMIT $2;

-- Returns the positions of new rows; of two rows for the same instant, that of the first.
-- name: schedule_fires
WITH given AS (
        SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::uuid[]) WITH ORDINALITY
            AS v (id, at, task_id, n)),
    made AS (INSERT INTO schedule_fires (schedule_id, fire_at, task_id)
        SELECT id, at, task_id FROM given ORDER BY n
        ON CONFLICT DO NOTHING RETURNING schedule_id, fire_at)
SELECT min(g.n) FROM given g JOIN made m ON m.schedule_id = g.id AND m.fire_at = g.at GROUP BY g.id, g.at;

-- name: recurring_fires
WITH given AS (
        SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::uuid[]) WITH ORDINALITY
            AS v (id, at, task_id, n)),
    made AS (INSERT INTO recurring_fires (recurring_job_id, instant, task_id)
        SELECT id, at, task_id FROM given ORDER BY n
        ON CONFLICT DO NOTHING RETURNING recurring_job_id, instant)
SELECT min(g.n) FROM given g JOIN made m ON m.recurring_job_id = g.id AND m.instant = g.at GROUP BY g.id, g.at;

-- Chooses rows by time and skips those that another node is removing; removes them by their place
-- (ctid), which cannot change while we hold the lock, so that no plan scans the whole table.
-- name: schedule_fires_prune
DELETE FROM schedule_fires WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM schedule_fires WHERE fire_at < $1
        ORDER BY fire_at LIMIT $2 FOR UPDATE SKIP LOCKED));

-- name: recurring_fires_prune
DELETE FROM recurring_fires WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM recurring_fires WHERE instant < $1
        ORDER BY instant LIMIT $2 FOR UPDATE SKIP LOCKED));
