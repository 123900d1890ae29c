-- Namespaces, and what is removed of one: at most so many rows of each table in one step.

-- name: namespaces_all
SELECT @namespace.names@ FROM namespaces ORDER BY name COLLATE "C";

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
DELETE FROM namespaces WHERE name = $1;

-- name: namespace_share
SELECT 1::bigint FROM namespaces WHERE name = $1 AND deleting_at IS NULL FOR SHARE;

-- name: namespace_lock
SELECT 1::bigint FROM namespaces WHERE name = $1 AND deleting_at IS NULL FOR UPDATE;

-- name: namespace_waiting
SELECT coalesce(sum(c.tasks), 0)::bigint FROM lanes l JOIN lane_counts c ON c.lane = l.lane
WHERE l.namespace = $1 AND c.status IN ('pending', 'delayed', 'blocked', 'paused');

-- name: namespace_plans
SELECT (SELECT count(*) FROM schedules WHERE namespace = $1)
    + (SELECT count(*) FROM recurring_jobs WHERE namespace = $1);

-- name: namespace_tasks
SELECT s.id FROM (SELECT lane FROM lanes WHERE namespace = $1 ORDER BY lane) l
CROSS JOIN LATERAL (SELECT p.task FROM task_specs p WHERE p.lane = l.lane
    ORDER BY p.task LIMIT $2) p
JOIN task_states s ON s.task = p.task LIMIT $2;

-- name: namespace_schedule_fires
DELETE FROM schedule_fires WHERE ctid = ANY (ARRAY(SELECT ctid FROM schedule_fires WHERE schedule_id IN (SELECT id FROM schedules WHERE namespace = $1) LIMIT $2));

-- name: namespace_schedules
DELETE FROM schedules WHERE ctid = ANY (ARRAY(SELECT ctid FROM schedules WHERE namespace = $1 LIMIT $2));

-- name: namespace_recurring_fires
DELETE FROM recurring_fires WHERE ctid = ANY (ARRAY(SELECT ctid FROM recurring_fires WHERE recurring_job_id IN (SELECT id FROM recurring_jobs WHERE namespace = $1) LIMIT $2));

-- name: namespace_recurring
DELETE FROM recurring_jobs WHERE ctid = ANY (ARRAY(SELECT ctid FROM recurring_jobs WHERE namespace = $1 LIMIT $2));

-- name: namespace_dependencies
DELETE FROM job_dependencies WHERE ctid = ANY (ARRAY(SELECT ctid FROM job_dependencies WHERE namespace = $1 LIMIT $2));

-- name: namespace_jobs
DELETE FROM jobs WHERE ctid = ANY (ARRAY(SELECT ctid FROM jobs WHERE namespace = $1 LIMIT $2));

-- name: namespace_categories
DELETE FROM job_categories WHERE ctid = ANY (ARRAY(SELECT ctid FROM job_categories WHERE namespace = $1 LIMIT $2));

-- name: namespace_rates
DELETE FROM rate_limits WHERE ctid = ANY (ARRAY(SELECT ctid FROM rate_limits WHERE namespace = $1 LIMIT $2));

-- name: namespace_hours
DELETE FROM execution_hours WHERE ctid = ANY (ARRAY(SELECT ctid FROM execution_hours WHERE namespace = $1 LIMIT $2));

-- name: namespace_outbox
DELETE FROM outbox WHERE ctid = ANY (ARRAY(SELECT ctid FROM outbox WHERE namespace = $1 LIMIT $2));

-- name: namespace_days
DELETE FROM store_info WHERE ctid = ANY (ARRAY(SELECT ctid FROM store_info WHERE starts_with(name, 'agent_day:' || $1 || '/') LIMIT $2));

-- name: days_prune
DELETE FROM store_info WHERE starts_with(name, 'agent_day:' || $1 || '/') AND split_part(value, E'\n', 1)::bigint < $2;

-- name: days_count
SELECT count(*) FROM store_info WHERE starts_with(name, 'agent_day:' || $1 || '/');
