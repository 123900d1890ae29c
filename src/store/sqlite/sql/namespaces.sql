-- Namespaces, and what is removed of one: at most so many rows of each table in one step.

-- name: namespaces_all
SELECT @namespace.names@ FROM namespaces ORDER BY name;

-- name: namespace_put
INSERT INTO namespaces (@namespace.names@) VALUES (@namespace.values@)
ON CONFLICT (name) DO UPDATE SET
    description = excluded.description, waiting_limit = excluded.waiting_limit,
    enqueue_rate_count = excluded.enqueue_rate_count,
    enqueue_rate_per_ms = excluded.enqueue_rate_per_ms,
    enqueue_rate_burst = excluded.enqueue_rate_burst,
    payload_bytes_limit = excluded.payload_bytes_limit,
    schedules_limit = excluded.schedules_limit, completed_ms = excluded.completed_ms,
    failed_ms = excluded.failed_ms, encrypt_all = excluded.encrypt_all, deleting_at = excluded.deleting_at,
    removed = excluded.removed, updated_at = excluded.updated_at;

-- name: namespace_delete
DELETE FROM namespaces WHERE name = ?1;

-- name: namespace_share
SELECT 1 FROM namespaces WHERE name = ?1 AND deleting_at IS NULL;

-- name: namespace_lock
SELECT 1 FROM namespaces WHERE name = ?1 AND deleting_at IS NULL;

-- name: namespace_waiting
SELECT coalesce(sum(c.tasks), 0) FROM lanes l JOIN lane_counts c ON c.lane = l.lane
WHERE l.namespace = ?1 AND c.status IN ('pending', 'delayed', 'blocked', 'paused');

-- name: namespace_plans
SELECT (SELECT count(*) FROM schedules WHERE namespace = ?1)
    + (SELECT count(*) FROM recurring_jobs WHERE namespace = ?1);

-- name: namespace_tasks
SELECT s.id FROM lanes l CROSS JOIN task_specs p ON p.lane = l.lane
CROSS JOIN task_states s ON s.task = p.task
WHERE l.namespace = ?1 LIMIT ?2;

-- name: namespace_schedule_fires
DELETE FROM schedule_fires WHERE (schedule_id, fire_at) IN (SELECT schedule_id, fire_at FROM schedule_fires WHERE schedule_id IN (SELECT id FROM schedules WHERE namespace = ?1) LIMIT ?2);

-- name: namespace_schedules
DELETE FROM schedules WHERE (id) IN (SELECT id FROM schedules WHERE namespace = ?1 LIMIT ?2);

-- name: namespace_recurring_fires
DELETE FROM recurring_fires WHERE (recurring_job_id, instant) IN (SELECT recurring_job_id, instant FROM recurring_fires WHERE recurring_job_id IN (SELECT id FROM recurring_jobs WHERE namespace = ?1) LIMIT ?2);

-- name: namespace_recurring
DELETE FROM recurring_jobs WHERE (id) IN (SELECT id FROM recurring_jobs WHERE namespace = ?1 LIMIT ?2);

-- name: namespace_dependencies
DELETE FROM job_dependencies WHERE (id) IN (SELECT id FROM job_dependencies WHERE namespace = ?1 LIMIT ?2);

-- name: namespace_jobs
DELETE FROM jobs WHERE (id) IN (SELECT id FROM jobs WHERE namespace = ?1 LIMIT ?2);

-- name: namespace_categories
DELETE FROM job_categories WHERE (id) IN (SELECT id FROM job_categories WHERE namespace = ?1 LIMIT ?2);

-- name: namespace_rates
DELETE FROM rate_limits WHERE (namespace, name) IN (SELECT namespace, name FROM rate_limits WHERE namespace = ?1 LIMIT ?2);

-- name: namespace_hours
DELETE FROM execution_hours WHERE (hour, category_id, run) IN (SELECT hour, category_id, run FROM execution_hours WHERE namespace = ?1 LIMIT ?2);

-- name: namespace_outbox
DELETE FROM outbox WHERE (message) IN (SELECT message FROM outbox WHERE namespace = ?1 LIMIT ?2);

-- name: namespace_days
DELETE FROM store_info WHERE name IN (SELECT name FROM store_info WHERE name >= 'agent_day:' || ?1 || '/' AND name < 'agent_day:' || ?1 || '0' LIMIT ?2);

-- name: days_prune
DELETE FROM store_info WHERE name >= 'agent_day:' || ?1 || '/' AND name < 'agent_day:' || ?1 || '0' AND CAST(value AS INTEGER) < ?2;

-- name: days_count
SELECT count(*) FROM store_info WHERE name >= 'agent_day:' || ?1 || '/' AND name < 'agent_day:' || ?1 || '0';
