-- Workers, queues, outbox and the store's own facts. A time that is not known yet is the epoch where
-- the column must have one: it comes back as 0.

-- name: outbox_insert
INSERT INTO outbox (message, id, kind, target, task_id, body, attempts, last_error, next_at,
    expires_at, created_at)
SELECT v.message, v.id, v.kind, v.target, v.task_id, v.body, v.attempts, v.last_error, v.next_at,
    coalesce(v.expires_at, to_timestamp(0)), coalesce(v.created_at, to_timestamp(0))
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::text[],
    $7::bigint[], $8::text[], $9::timestamptz[], $10::timestamptz[], $11::timestamptz[])
    AS v (message, id, kind, target, task_id, body, attempts, last_error, next_at, expires_at,
        created_at);

-- name: outbox_due
SELECT message, id, kind, target, task_id, body, attempts, last_error, next_at, expires_at,
    created_at
FROM outbox WHERE next_at IS NOT NULL AND next_at <= $1 ORDER BY next_at, message LIMIT $2;

-- name: outbox_next
SELECT next_at FROM outbox WHERE next_at IS NOT NULL AND next_at > $1 ORDER BY next_at LIMIT 1;

-- name: outbox_update
UPDATE outbox SET attempts = $2, last_error = $3, next_at = $4,
    expires_at = coalesce($5, to_timestamp(0))
WHERE message = $1;

-- name: outbox_delete
DELETE FROM outbox WHERE message = $1;

-- name: outbox_count
SELECT count(*)::bigint FROM outbox WHERE next_at IS NOT NULL;

-- Chosen before anything is removed, and without waiting for a node that removes the same.
-- name: outbox_prune
WITH old AS MATERIALIZED (
        SELECT message FROM outbox WHERE next_at IS NULL AND created_at < $1
        ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM outbox o USING old WHERE o.message = old.message RETURNING 1)
SELECT count(*)::bigint FROM gone;

-- Who leads is said by the leadership; a worker's row follows it a little later.
-- name: workers_all
SELECT w.id, w.hostname, w.version, w.queues, w.types, w.categories, w.pool_size, w.started_at,
    w.last_heartbeat, w.lease_until, CASE WHEN l.holder IS NULL THEN w.is_leader
        ELSE l.holder = w.id AND l.until > clock_timestamp() END,
    CASE WHEN l.holder IS NULL THEN w.leader_until WHEN l.holder = w.id THEN l.until END, w.status
FROM workers w LEFT JOIN leadership l ON l.namespace = '*'
ORDER BY w.id COLLATE "C";

-- Of two rows that say they lead one is old.
-- name: worker_put
WITH led AS (
    UPDATE workers SET is_leader = false, leader_until = NULL WHERE is_leader AND $11 AND id <> $1)
INSERT INTO workers (id, hostname, version, queues, types, categories, pool_size, started_at,
    last_heartbeat, lease_until, is_leader, leader_until, status)
VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce($8, to_timestamp(0)),
    coalesce($9, to_timestamp(0)), coalesce($10, to_timestamp(0)), $11, $12, $13)
ON CONFLICT (id) DO UPDATE SET
    hostname = excluded.hostname, version = excluded.version, queues = excluded.queues,
    types = excluded.types, categories = excluded.categories, pool_size = excluded.pool_size,
    started_at = excluded.started_at, last_heartbeat = excluded.last_heartbeat,
    lease_until = excluded.lease_until, is_leader = excluded.is_leader,
    leader_until = excluded.leader_until, status = excluded.status;

-- name: worker_renew
UPDATE workers SET last_heartbeat = greatest(last_heartbeat, $2),
    lease_until = greatest(lease_until, $3)
WHERE id = $1;

-- name: worker_delete
DELETE FROM workers WHERE id = $1;

-- name: queues_all
SELECT namespace, name, paused_at, concurrency, rate_count, rate_per_ms, rate_burst,
    key_concurrency, key_rate_count, key_rate_per_ms, key_rate_burst, type_limits,
    priority_order, ageing_ms, created_at, updated_at
FROM queues ORDER BY namespace COLLATE "C", name COLLATE "C";

-- name: queue_put
INSERT INTO queues (namespace, name, paused_at, concurrency, rate_count, rate_per_ms, rate_burst,
    key_concurrency, key_rate_count, key_rate_per_ms, key_rate_burst, type_limits,
    priority_order, ageing_ms, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
    coalesce($15, to_timestamp(0)), coalesce($16, to_timestamp(0)))
ON CONFLICT (namespace, name) DO UPDATE SET
    paused_at = excluded.paused_at, concurrency = excluded.concurrency,
    rate_count = excluded.rate_count, rate_per_ms = excluded.rate_per_ms,
    rate_burst = excluded.rate_burst, key_concurrency = excluded.key_concurrency,
    key_rate_count = excluded.key_rate_count, key_rate_per_ms = excluded.key_rate_per_ms,
    key_rate_burst = excluded.key_rate_burst, type_limits = excluded.type_limits,
    priority_order = excluded.priority_order, ageing_ms = excluded.ageing_ms,
    updated_at = excluded.updated_at;

-- name: queue_make
INSERT INTO queues (namespace, name, paused_at, concurrency, rate_count, rate_per_ms, rate_burst,
    key_concurrency, key_rate_count, key_rate_per_ms, key_rate_burst, type_limits,
    priority_order, ageing_ms, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
    coalesce($15, to_timestamp(0)), coalesce($16, to_timestamp(0)))
ON CONFLICT (namespace, name) DO NOTHING;

-- name: queue_delete
DELETE FROM queues
WHERE namespace = $1 AND name = $2 AND updated_at = coalesce($3, to_timestamp(0));

-- name: info_get
SELECT value FROM store_info WHERE name = $1;

-- name: info_put
INSERT INTO store_info (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
