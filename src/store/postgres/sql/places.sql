-- What tasks wait for: rows that come and go, and finding tasks by them.

-- name: ready_insert
INSERT INTO ready_rows (lane, order_key, task) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]);

-- name: ready_delete
DELETE FROM ready_rows r USING unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS v (lane, order_key, task)
WHERE r.lane = v.lane AND r.order_key = v.order_key AND r.task = v.task;

-- name: parked_insert
INSERT INTO parked_rows (parked, order_key, task)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]);

-- name: parked_delete
DELETE FROM parked_rows r USING unnest($1::text[], $2::bigint[], $3::bigint[]) AS v (parked, order_key, task)
WHERE r.parked = v.parked AND r.order_key = v.order_key AND r.task = v.task;

-- name: due_insert
INSERT INTO due_rows (by_wall, scheduled_at, task)
SELECT * FROM unnest($1::boolean[], $2::timestamptz[], $3::bigint[]);

-- name: due_delete
DELETE FROM due_rows r
USING unnest($1::boolean[], $2::timestamptz[], $3::bigint[]) AS v (by_wall, scheduled_at, task)
WHERE r.by_wall = v.by_wall AND r.scheduled_at = v.scheduled_at AND r.task = v.task;

-- name: held_insert
INSERT INTO held_rows (worker_id, task) SELECT * FROM unnest($1::text[], $2::bigint[]);

-- name: held_delete
DELETE FROM held_rows r USING unnest($1::text[], $2::bigint[]) AS v (worker_id, task)
WHERE r.worker_id = v.worker_id AND r.task = v.task;

-- name: settled_insert
INSERT INTO settled_rows (status, task) SELECT * FROM unnest($1::text[], $2::bigint[]);

-- name: settled_delete
DELETE FROM settled_rows r USING unnest($1::text[], $2::bigint[]) AS v (status, task)
WHERE r.status = v.status AND r.task = v.task;

-- The first tasks of these lanes that no other node is claiming, with all their columns.
-- name: ready_take
SELECT @state@, @spec@, d.data
FROM (
    SELECT c.order_key, c.task
    FROM unnest($1::bigint[]) AS wanted (lane)
    CROSS JOIN LATERAL (
        SELECT r.order_key, r.task FROM ready_rows r WHERE r.lane = wanted.lane
        ORDER BY r.order_key, r.task LIMIT $2 FOR UPDATE SKIP LOCKED) c
    ORDER BY c.order_key, c.task LIMIT $2) f
JOIN task_states s ON s.task = f.task
JOIN task_specs p ON p.task = f.task AND p.lane = s.lane
LEFT JOIN task_data d ON d.task = f.task AND s.has_data
ORDER BY f.order_key, f.task;

-- The same where no limit can refuse a task: removes them from the line in the same step.
-- name: ready_pop
WITH f AS (
    DELETE FROM ready_rows r WHERE r.ctid = ANY (ARRAY (
        SELECT c.place
        FROM unnest($1::bigint[]) AS wanted (lane)
        CROSS JOIN LATERAL (
            SELECT r.ctid AS place, r.order_key, r.task FROM ready_rows r
            WHERE r.lane = wanted.lane
            ORDER BY r.order_key, r.task LIMIT $2 FOR UPDATE SKIP LOCKED) c
        ORDER BY c.order_key, c.task LIMIT $2))
    RETURNING r.order_key, r.task)
SELECT @state@, @spec@, d.data
FROM f
JOIN task_states s ON s.task = f.task
JOIN task_specs p ON p.task = f.task AND p.lane = s.lane
LEFT JOIN task_data d ON d.task = f.task AND s.has_data
ORDER BY f.order_key, f.task;

-- name: pending_orders
SELECT s.task, coalesce(s.priority, 0), s.order_key, s.id
FROM task_states s
JOIN (SELECT r.task FROM ready_rows r WHERE r.lane = ANY ($1::bigint[])
    UNION ALL
    SELECT r.task FROM parked_rows r WHERE starts_with(r.parked, $2)) w ON w.task = s.task
WHERE s.lane = ANY ($1::bigint[]);

-- name: order_update
WITH v AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS v (task, order_key)),
    lines AS (UPDATE ready_rows r SET order_key = v.order_key FROM v WHERE r.task = v.task
        AND r.lane = ANY ($3::bigint[])),
    parked AS (UPDATE parked_rows r SET order_key = v.order_key FROM v WHERE r.task = v.task
        AND starts_with(r.parked, $4))
UPDATE task_states s SET order_key = v.order_key, rev = s.rev + 1 FROM v WHERE s.task = v.task;

-- name: parked_first
SELECT s.id FROM parked_rows r JOIN task_states s ON s.task = r.task
WHERE r.parked = $1 ORDER BY r.order_key, r.task LIMIT $2;

-- One by one through the index: one key may have millions.
-- name: parked_keys
WITH RECURSIVE keys AS (
    (SELECT parked, 1 AS n FROM parked_rows WHERE parked > $1 ORDER BY parked LIMIT 1)
    UNION ALL
    SELECT next.parked, keys.n + 1 FROM keys CROSS JOIN LATERAL (
        SELECT r.parked FROM parked_rows r WHERE r.parked > keys.parked ORDER BY r.parked LIMIT 1)
        next
    WHERE keys.n < $2)
SELECT parked FROM keys ORDER BY n;

-- name: due_first
SELECT s.id FROM (
    SELECT scheduled_at, task FROM due_rows WHERE by_wall = $1 AND scheduled_at <= $2
    ORDER BY scheduled_at, task LIMIT $3) r
JOIN task_states s ON s.task = r.task ORDER BY r.scheduled_at, r.task;

-- name: due_next
SELECT scheduled_at FROM due_rows WHERE by_wall = $1 ORDER BY scheduled_at, task LIMIT 1;

-- name: held_all
SELECT @state@, @lean@ FROM (
    SELECT task FROM held_rows WHERE task > $1 ORDER BY task LIMIT $2) h
JOIN task_states s ON s.task = h.task JOIN task_specs p ON p.task = h.task AND p.lane = s.lane ORDER BY h.task;

-- name: held_by_worker
SELECT @state@, @lean@ FROM (
    SELECT task FROM held_rows WHERE worker_id = $3 AND task > $1 ORDER BY task LIMIT $2) h
JOIN task_states s ON s.task = h.task JOIN task_specs p ON p.task = h.task AND p.lane = s.lane ORDER BY h.task;

-- name: settled_by_status
SELECT @state@, @lean@ FROM (
    SELECT task FROM settled_rows WHERE status = $3 AND task > $1 ORDER BY task LIMIT $2) h
JOIN task_states s ON s.task = h.task JOIN task_specs p ON p.task = h.task AND p.lane = s.lane ORDER BY h.task;

-- name: any_dependency
SELECT 1::bigint FROM task_dependencies LIMIT 1;

-- name: dependencies_insert
INSERT INTO task_dependencies (task_id, depends_on_task_id, dependency_type)
SELECT $1, * FROM unnest($2::uuid[], $3::text[]) ON CONFLICT DO NOTHING;

-- name: dependents_of
SELECT task_id, dependency_type, coalesce(is_decided, false) FROM task_dependencies
WHERE depends_on_task_id = $1
    AND task_id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
ORDER BY task_id LIMIT $3;

-- name: dependents_decide
UPDATE task_dependencies SET is_decided = nullif($2::boolean, false)
WHERE depends_on_task_id = $1 AND task_id = ANY ($3::uuid[]);

-- name: dependencies_undecide
UPDATE task_dependencies SET is_decided = NULL WHERE task_id = $1 AND is_decided IS NOT NULL;

-- name: parents_of
SELECT s.id, p.ref, s.status, r.payload, s.task, d.dependency_type
FROM task_dependencies d
JOIN task_states s ON s.task = perdura_key(d.depends_on_task_id) AND s.id = d.depends_on_task_id
JOIN task_specs p ON p.task = s.task AND p.lane = s.lane
LEFT JOIN task_results r ON r.task_id = s.id
WHERE d.task_id = $1 AND s.task > $2 ORDER BY s.task LIMIT $3;

-- name: children_of
SELECT s.id, p.ref, s.status, r.payload, s.task, NULL::text
FROM task_specs p JOIN task_states s ON s.task = p.task
LEFT JOIN task_results r ON r.task_id = s.id
WHERE p.parent_id = $1 AND p.task > $2 ORDER BY p.task LIMIT $3;
