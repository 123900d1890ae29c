-- Workers, queues, outbox and the store's own facts.

-- name: outbox_insert
INSERT INTO outbox (@outbox.names@)
SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::uuid[],
    $7::text[], $8::bigint[], $9::text[], $10::timestamptz[], $11::timestamptz[],
    $12::timestamptz[]);

-- name: outbox_due
SELECT @outbox.names@
FROM outbox WHERE next_at IS NOT NULL AND next_at <= $1 ORDER BY next_at, message LIMIT $2;

-- name: outbox_next
SELECT next_at FROM outbox WHERE next_at IS NOT NULL AND next_at > $1 ORDER BY next_at LIMIT 1;

-- name: outbox_update
UPDATE outbox SET attempts = $2, last_error = $3, next_at = $4,
    expires_at = $5
WHERE message = $1;

-- name: outbox_delete
DELETE FROM outbox WHERE message = $1;

-- name: outbox_count
SELECT count(*)::bigint FROM outbox WHERE next_at IS NOT NULL;

-- Chooses rows before removing any, and skips those that another node is removing.
-- name: outbox_prune
WITH old AS MATERIALIZED (
        SELECT message FROM outbox WHERE next_at IS NULL AND created_at < $1
        ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM outbox o USING old WHERE o.message = old.message;

-- The leadership row names the leader; a worker's row follows a little later.
-- name: workers_all
SELECT w.id, w.namespace, w.hostname, w.version, w.queues, w.types, w.categories, w.pool_size,
    w.started_at, w.last_heartbeat, w.lease_until, CASE WHEN l.holder IS NULL THEN w.is_leader
        ELSE l.holder = w.id AND l.until > clock_timestamp() END,
    CASE WHEN l.holder IS NULL THEN w.leader_until WHEN l.holder = w.id THEN l.until END, w.status,
    w.principal
FROM workers w LEFT JOIN leadership l ON l.namespace = '*'
ORDER BY w.id COLLATE "C";

-- If two rows say that they lead, one is stale.
-- name: worker_put
WITH led AS (
    UPDATE workers SET is_leader = false, leader_until = NULL WHERE is_leader AND $12 AND id <> $1)
INSERT INTO workers (@worker.names@) VALUES (@worker.values@)
ON CONFLICT (id) DO UPDATE SET
    namespace = excluded.namespace, hostname = excluded.hostname, version = excluded.version,
    queues = excluded.queues,
    types = excluded.types, categories = excluded.categories, pool_size = excluded.pool_size,
    started_at = excluded.started_at, last_heartbeat = excluded.last_heartbeat,
    lease_until = excluded.lease_until, is_leader = excluded.is_leader,
    leader_until = excluded.leader_until, status = excluded.status,
    principal = excluded.principal;

-- name: worker_renew
UPDATE workers SET last_heartbeat = greatest(last_heartbeat, $2),
    lease_until = greatest(lease_until, $3)
WHERE id = $1;

-- name: worker_delete
DELETE FROM workers WHERE id = $1;

-- name: queues_all
SELECT @queue.names@ FROM queues ORDER BY namespace COLLATE "C", name COLLATE "C";

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

-- name: queue_make
INSERT INTO queues (@queue.names@) VALUES (@queue.values@)
ON CONFLICT (namespace, name) DO NOTHING;

-- name: queue_delete
DELETE FROM queues
WHERE namespace = $1 AND name = $2 AND updated_at = $3;

-- name: info_get
SELECT value FROM store_info WHERE name = $1;

-- A secret that is there stays: of two nodes that make one at a time, the first counts.
-- name: info_put
INSERT INTO store_info (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
WHERE store_info.name NOT IN ('callback_secret', 'call_secret', 'call_key');
