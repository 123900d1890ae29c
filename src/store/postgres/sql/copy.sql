-- The end of a copy into this store: rebuilds what it keeps beside the copied rows. Waiting rows as
-- pg_places.c makes them, counts, and sequences that continue after the copied keys.

-- name: copy_settings
SELECT set_config(name, 'on', true)
FROM (VALUES ('enable_seqscan'), ('enable_hashjoin'), ('enable_mergejoin')) AS settings (name);

-- Makes the months of old rows, except for times that only a wrong clock can give.
-- name: copy_months
SELECT count(perdura_partition($1, m.month))
FROM (SELECT DISTINCT date_trunc('month', to_timestamp(
        ('x' || lpad(left(replace(v.id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)
        AT TIME ZONE 'UTC')::date AS month
    FROM unnest($2::uuid[]) AS v (id)) m
WHERE m.month BETWEEN (now() - interval '100 months')::date AND (now() + interval '1 month')::date
    AND to_regclass(perdura_month_name($1, m.month)) IS NULL
    AND pg_relation_size(($1 || '_other')::regclass) < 32 * 1024 * 1024;

-- name: copy_ready
INSERT INTO ready_rows (lane, order_key, task)
SELECT lane, order_key, task FROM task_states WHERE status = 'pending' AND parked IS NOT TRUE;

-- name: copy_parked
INSERT INTO parked_rows (parked, order_key, task)
SELECT perdura_queue_name(l.namespace, l.queue) || chr(31) || coalesce(p.limit_key, ''), s.order_key, s.task
FROM task_states s JOIN task_specs p ON p.task = s.task JOIN lanes l ON l.lane = s.lane
WHERE s.status = 'pending' AND s.parked;

-- name: copy_due
INSERT INTO due_rows (by_wall, scheduled_at, task)
SELECT coalesce(by_wall, false), coalesce(scheduled_at, to_timestamp(0)), task
FROM task_states WHERE status = 'delayed';

-- name: copy_held
INSERT INTO held_rows (worker_id, task)
SELECT coalesce(worker_id, ''), task FROM task_states WHERE held;

-- name: copy_settled
INSERT INTO settled_rows (status, task)
SELECT status, task FROM task_states
WHERE status NOT IN ('pending', 'claimed', 'running', 'delayed');

-- name: copy_counts
INSERT INTO lane_counts (lane, status, tasks)
SELECT lane, status, count(*) FROM task_states GROUP BY lane, status
UNION ALL
SELECT lane, 'parked', count(*) FROM task_states WHERE parked GROUP BY lane
UNION ALL
SELECT lane, 'held', count(*) FROM task_states WHERE held GROUP BY lane;

-- name: copy_key_counts
INSERT INTO key_counts (name, held)
SELECT perdura_queue_name(l.namespace, l.queue) || chr(31) || p.limit_key, count(*)
FROM task_states s JOIN task_specs p ON p.task = s.task JOIN lanes l ON l.lane = s.lane
WHERE s.held AND p.limit_key IS NOT NULL GROUP BY 1;

-- name: copy_token_counts
INSERT INTO token_counts (token, tasks)
SELECT k.id, count(s.task) FROM api_tokens k
LEFT JOIN task_specs p ON p.created_by_principal = 'token:' || k.id
LEFT JOIN task_states s ON s.task = p.task
    AND s.status NOT IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
WHERE k.max_tasks IS NOT NULL GROUP BY k.id;

-- name: copy_lanes
SELECT setval(pg_get_serial_sequence('lanes', 'lane'), max(lane)) FROM lanes HAVING count(*) > 0;

-- name: copy_task_keys
SELECT setval('task_keys', greatest(k.last_value, 1 + (SELECT max(task) FROM task_states)), false)
FROM task_keys k;

-- name: copy_execution_keys
SELECT setval('execution_keys',
    greatest(k.last_value, 1 + (SELECT max(execution) FROM execution_rows)), false)
FROM execution_keys k;

-- name: copy_outbox_keys
SELECT setval('outbox_keys', greatest(k.last_value, 1 + (SELECT max(message) FROM outbox)), false)
FROM outbox_keys k;
