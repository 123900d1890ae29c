-- Workers, queues, outbox and the store's own facts.

-- name: outbox_insert
INSERT INTO outbox (@outbox.names@) VALUES (@outbox.values@);

-- name: outbox_due
SELECT @outbox.names@
FROM outbox WHERE next_at IS NOT NULL AND next_at <= ?1 ORDER BY next_at LIMIT ?2;

-- name: outbox_next
SELECT next_at FROM outbox WHERE next_at IS NOT NULL AND next_at > ?1 ORDER BY next_at LIMIT 1;

-- name: outbox_update
UPDATE outbox SET attempts = ?2, last_error = ?3, next_at = ?4, expires_at = ?5
WHERE message = ?1;

-- name: outbox_delete
DELETE FROM outbox WHERE message = ?1;

-- name: workers_all
SELECT @worker.names@ FROM workers ORDER BY id;

-- name: worker_put
INSERT INTO workers (@worker.names@) VALUES (@worker.values@)
ON CONFLICT (id) DO UPDATE SET
    hostname = excluded.hostname, version = excluded.version, queues = excluded.queues,
    types = excluded.types, categories = excluded.categories, pool_size = excluded.pool_size,
    started_at = excluded.started_at, last_heartbeat = excluded.last_heartbeat,
    lease_until = excluded.lease_until, is_leader = excluded.is_leader,
    leader_until = excluded.leader_until, status = excluded.status,
    principal = excluded.principal;

-- name: worker_delete
DELETE FROM workers WHERE id = ?1;

-- name: queues_all
SELECT @queue.names@ FROM queues ORDER BY namespace, name;

-- name: queue_put
INSERT INTO queues (@queue.names@) VALUES (@queue.values@)
ON CONFLICT (namespace, name) DO UPDATE SET
    paused_at = excluded.paused_at, concurrency = excluded.concurrency,
    rate_count = excluded.rate_count, rate_per_ms = excluded.rate_per_ms,
    rate_burst = excluded.rate_burst, key_concurrency = excluded.key_concurrency,
    key_rate_count = excluded.key_rate_count, key_rate_per_ms = excluded.key_rate_per_ms,
    key_rate_burst = excluded.key_rate_burst, type_limits = excluded.type_limits,
    priority_order = excluded.priority_order, ageing_ms = excluded.ageing_ms,
    updated_at = excluded.updated_at;

-- name: queue_delete
DELETE FROM queues WHERE namespace = ?1 AND name = ?2 AND updated_at = ?3;

-- name: info_get
SELECT value FROM store_info WHERE name = ?1;

-- A secret that is there stays: of two nodes that make one at a time, the first counts.
-- name: info_put
INSERT INTO store_info (name, value) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
WHERE store_info.name NOT IN ('callback_secret', 'call_secret', 'call_key');

-- The newest time in the store: the writer's note, or that of the newest task or execution.
-- name: last_time
SELECT max(
    coalesce((SELECT CAST(value AS INTEGER) FROM store_info WHERE name = 'last_time_us'), 0),
    coalesce((SELECT created_at FROM task_specs ORDER BY task DESC LIMIT 1), 0),
    coalesce((SELECT created_at FROM execution_rows ORDER BY execution DESC LIMIT 1), 0));

-- name: last_keys
SELECT coalesce((SELECT max(task) FROM task_states), 0),
    coalesce((SELECT max(execution) FROM execution_rows), 0);

-- name: outbox_count
SELECT count(*) FROM outbox WHERE next_at IS NOT NULL;

-- name: outbox_prune
DELETE FROM outbox WHERE message IN
    (SELECT message FROM outbox WHERE next_at IS NULL AND created_at < ?1 LIMIT ?2);
