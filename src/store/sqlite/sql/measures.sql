-- How executions ended, per hour and category; the longest waits; counts.

-- name: hours_put
INSERT INTO execution_hours (run, hour, category_id, namespace, successful, failed, duration_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (hour, category_id, run) DO UPDATE SET successful = excluded.successful,
    failed = excluded.failed, duration_ms = excluded.duration_ms;

-- name: hours_prune
DELETE FROM execution_hours WHERE hour < ?1;

-- name: hours_sums
SELECT hour, category_id, namespace, sum(successful), sum(failed), sum(duration_ms)
FROM execution_hours WHERE hour >= ?1 AND (?2 IS NULL OR namespace = ?2)
GROUP BY hour, category_id, namespace;

-- The first task in line of each lane with pending tasks.
-- name: waits_longest
SELECT * FROM (
    SELECT l.namespace, l.queue, l.type, nullif(l.category_id, zeroblob(16)) AS category_id, (SELECT s.updated_at FROM task_states s INDEXED BY task_states_ready
        WHERE s.lane = c.lane AND s.status = 'pending' AND s.parked IS NULL
        ORDER BY s.order_key LIMIT 1) AS since
    FROM lane_counts c JOIN lanes l ON l.lane = c.lane
    WHERE c.status = 'pending' AND c.tasks > 0)
WHERE since IS NOT NULL;

-- name: counts_by_queue
SELECT l.namespace, l.queue, c.status, sum(c.tasks) FROM lane_counts c JOIN lanes l ON l.lane = c.lane
WHERE c.tasks <> 0 GROUP BY l.namespace, l.queue, c.status;

-- name: counts_named
SELECT l.namespace, l.queue, l.type, c.status, sum(c.tasks)
FROM lane_counts c JOIN lanes l ON l.lane = c.lane
WHERE c.tasks <> 0 AND c.status <> 'parked' -- which are pending, too
GROUP BY l.namespace, l.queue, l.type, c.status
ORDER BY l.namespace, l.queue, l.type, c.status;
