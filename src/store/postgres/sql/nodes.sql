-- Only for stores that several nodes share: workers of other nodes, limits over all nodes.

-- The database's timeline: another number means another past. None on a standby.
-- name: timeline
SELECT CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END;

-- name: timeline_first
INSERT INTO store_info (name, value) VALUES ('timeline', $1) ON CONFLICT (name) DO NOTHING;

-- Voids leases of another timeline; tokens continue from the clock, above all that were given there.
-- name: timeline_note
WITH changed AS (
    UPDATE store_info SET value = $1 WHERE name = 'timeline' AND value <> $1 RETURNING 1)
INSERT INTO store_info (name, value)
SELECT 'lease_base', (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text FROM changed
ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING value;

-- name: worker_one
SELECT w.id, w.namespace, w.hostname, w.version, w.queues, w.types, w.categories, w.pool_size,
    w.started_at, w.last_heartbeat, w.lease_until, CASE WHEN l.holder IS NULL THEN w.is_leader
        ELSE l.holder = w.id AND l.until > clock_timestamp() END,
    CASE WHEN l.holder IS NULL THEN w.leader_until WHEN l.holder = w.id THEN l.until END, w.status,
    w.principal
FROM workers w LEFT JOIN leadership l ON l.namespace = '*'
WHERE w.id = $1;

-- name: queue_lock
SELECT 1::bigint FROM queues WHERE namespace = $1 AND name = $2 FOR NO KEY UPDATE;

-- Bytewise, the order every node uses.
-- name: queues_lock
SELECT 1::bigint FROM queues q
JOIN unnest($1::text[], $2::text[]) AS v (namespace, name)
    ON q.namespace = v.namespace AND q.name = v.name
ORDER BY q.namespace COLLATE "C", q.name COLLATE "C" FOR NO KEY UPDATE OF q;

-- name: held_of_queue
SELECT l.type, sum(c.tasks)::bigint
FROM lanes l JOIN lane_counts c ON c.lane = l.lane AND c.status = 'held'
WHERE l.namespace = $1 AND l.queue = $2 GROUP BY l.type;

-- name: key_counts_add
INSERT INTO key_counts (name, held) SELECT * FROM unnest($1::text[], $2::bigint[]);

-- name: key_counts_fold
WITH gone AS (DELETE FROM key_counts RETURNING name, held)
INSERT INTO key_counts (name, held)
SELECT name, sum(held) FROM gone GROUP BY name HAVING sum(held) <> 0;

-- Every token keeps a row, by which hand-written SQL knows it.
-- name: token_counts_fold
WITH gone AS (DELETE FROM token_counts RETURNING token, tasks)
INSERT INTO token_counts (token, tasks) SELECT token, sum(tasks) FROM gone GROUP BY token;

-- name: key_held
SELECT coalesce(sum(held), 0)::bigint FROM key_counts WHERE name = $1;

-- name: bucket_one
SELECT tokens, rest, updated_at, starts FROM rate_limits WHERE namespace = $1 AND name = $2;

-- name: bucket_put
INSERT INTO rate_limits (namespace, name, tokens, rest, updated_at, starts)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (namespace, name) DO UPDATE SET tokens = excluded.tokens, rest = excluded.rest,
    updated_at = excluded.updated_at, starts = excluded.starts;
