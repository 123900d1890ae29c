-- Finding tasks by what they wait for: ready, parked, due, held, settled; and their relatives.

-- name: ready_head
SELECT order_key, task FROM task_states
WHERE lane = ?1 AND status = 'pending' AND parked IS NULL AND (order_key, task) > (?2, ?3)
ORDER BY order_key, task LIMIT ?4;

-- name: pending_orders
SELECT task, priority, order_key FROM task_states
WHERE lane = ?1 AND status = 'pending' AND parked IS NULL
UNION ALL
SELECT task, priority, order_key FROM task_states
WHERE lane = ?1 AND status = 'pending' AND parked IS NOT NULL;

-- name: order_update
UPDATE task_states SET order_key = ?2 WHERE task = ?1;

-- name: parked_first
SELECT id FROM task_states WHERE parked = ?1 ORDER BY order_key LIMIT ?2;

-- One by one through the index: one key may have millions.
-- name: parked_keys
WITH RECURSIVE keys (parked, n) AS (
    SELECT (SELECT s.parked FROM task_states s WHERE s.parked > ?1 ORDER BY s.parked LIMIT 1), 1
    UNION ALL
    SELECT (SELECT s.parked FROM task_states s WHERE s.parked > k.parked ORDER BY s.parked LIMIT 1),
        k.n + 1
    FROM keys k WHERE k.n < ?2 AND k.parked IS NOT NULL)
SELECT parked FROM keys WHERE parked IS NOT NULL ORDER BY n;

-- name: due_first
SELECT id FROM task_states
WHERE status = 'delayed' AND by_wall = ?1 AND scheduled_at <= ?2 ORDER BY scheduled_at LIMIT ?3;

-- name: due_next
SELECT scheduled_at FROM task_states
WHERE status = 'delayed' AND by_wall = ?1 ORDER BY scheduled_at LIMIT 1;

-- Finds the keys first, in the narrow index alone: in table order it would walk all tasks.
-- name: held_all
SELECT @state@, @lean@ FROM (
    SELECT task FROM task_states INDEXED BY task_states_held
    WHERE held = 1 AND task > ?1 ORDER BY task LIMIT ?2) h
CROSS JOIN task_states s ON s.task = h.task @joins@
ORDER BY s.task;

-- name: held_by_worker
SELECT @state@, @lean@ FROM task_states s @joins@
WHERE s.held = 1 AND s.worker_id = ?3 AND s.task > ?1 ORDER BY s.task LIMIT ?2;

-- name: settled_by_status
SELECT @state@, @lean@ FROM task_states s @joins@
WHERE s.status = ?3 AND s.status <> 'pending' AND s.status <> 'claimed' AND s.status <> 'running'
    AND s.status <> 'delayed'
    AND s.task > ?1 ORDER BY s.task LIMIT ?2;

-- name: any_dependency
SELECT 1 FROM task_dependencies LIMIT 1;

-- name: dependencies_insert
INSERT OR IGNORE INTO task_dependencies (task_id, depends_on_task_id, dependency_type)
VALUES (?1, ?2, ?3);

-- name: dependents_of
SELECT task_id, dependency_type, is_decided FROM task_dependencies
WHERE depends_on_task_id = ?1 AND task_id > coalesce(?2, x'') ORDER BY task_id LIMIT ?3;

-- name: dependents_decide
UPDATE task_dependencies SET is_decided = nullif(?2, 0)
WHERE depends_on_task_id = ?1 AND task_id = ?3;

-- name: dependencies_undecide
UPDATE task_dependencies SET is_decided = NULL WHERE task_id = ?1 AND is_decided IS NOT NULL;

-- name: parents_of
SELECT s.id, o.ref, s.status, r.payload, s.task, d.dependency_type
FROM task_dependencies d JOIN task_states s ON s.task = task_key(d.depends_on_task_id)
LEFT JOIN task_options o ON o.task = s.task
LEFT JOIN task_results r ON r.task_id = s.id
WHERE d.task_id = ?1 AND s.id = d.depends_on_task_id AND s.task > ?2 ORDER BY s.task LIMIT ?3;

-- name: children_of
SELECT s.id, o.ref, s.status, r.payload, s.task, NULL
FROM task_options o JOIN task_states s ON s.task = o.task
LEFT JOIN task_results r ON r.task_id = s.id
WHERE o.parent_id = ?1 AND o.task > ?2 ORDER BY o.task LIMIT ?3;
