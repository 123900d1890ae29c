-- How executions ended, per hour and category; the longest waits; counts.

-- name: hours_put
INSERT INTO execution_hours (run, hour, category_id, namespace, successful, failed, duration_ms)
SELECT $1, v.hour, v.category_id, v.namespace, v.successful, v.failed, v.duration_ms
FROM unnest($2::timestamptz[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS v (hour, category_id, namespace, successful, failed, duration_ms)
ON CONFLICT (hour, category_id, run) DO UPDATE SET successful = excluded.successful,
    failed = excluded.failed, duration_ms = excluded.duration_ms;

-- name: hours_prune
DELETE FROM execution_hours WHERE hour < $1;

-- name: hours_sums
SELECT hour, category_id, namespace, sum(successful)::bigint, sum(failed)::bigint,
    sum(duration_ms)::bigint
FROM execution_hours WHERE hour >= $1 AND ($2::text IS NULL OR namespace = $2)
GROUP BY hour, category_id, namespace;

-- The first task in line of each lane with pending tasks.
-- name: waits_longest
SELECT l.namespace, l.queue, l.type,
    nullif(l.category_id, '00000000-0000-0000-0000-000000000000'), s.updated_at
FROM (SELECT c.lane FROM lane_counts c WHERE c.status = 'pending'
        GROUP BY c.lane HAVING sum(c.tasks) > 0) p
JOIN lanes l ON l.lane = p.lane
CROSS JOIN LATERAL (SELECT r.task FROM ready_rows r WHERE r.lane = p.lane
    ORDER BY r.order_key, r.task LIMIT 1) f
JOIN task_states s ON s.task = f.task;

-- name: counts_by_queue
SELECT l.namespace, l.queue, c.status::text, sum(c.tasks)::bigint
FROM lane_counts c JOIN lanes l ON l.lane = c.lane
GROUP BY l.namespace, l.queue, c.status HAVING sum(c.tasks) <> 0;

-- name: counts_named
SELECT l.namespace, l.queue, l.type, c.status, sum(c.tasks)::bigint
FROM lane_counts c JOIN lanes l ON l.lane = c.lane
WHERE c.status NOT IN ('held', 'parked') -- which have a status of their own, too
GROUP BY l.namespace, l.queue, l.type, c.status HAVING sum(c.tasks) <> 0
ORDER BY l.namespace COLLATE "C", l.queue COLLATE "C", l.type COLLATE "C", c.status COLLATE "C";
