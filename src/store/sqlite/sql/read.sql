-- Queries of readers. sqlite_read_list.c builds the lists of tasks: they find keys, and then each
-- task is read by its key.

-- name: read_task
SELECT @state@, @spec@, l.namespace, l.queue, l.type, d.data, w.lease_until
FROM task_states s @joins@
JOIN lanes l ON l.lane = s.lane
LEFT JOIN task_data d ON d.task = s.task
LEFT JOIN workers w ON s.held = 1 AND w.id = s.worker_id
WHERE s.task = ?1;

-- name: read_task_id
SELECT id FROM task_states WHERE task = ?1;

-- name: read_dependencies
SELECT d.depends_on_task_id, d.dependency_type, s.status FROM task_dependencies d
LEFT JOIN task_states s ON s.task = task_key(d.depends_on_task_id) AND s.id = d.depends_on_task_id
WHERE d.task_id = ?1 ORDER BY d.depends_on_task_id LIMIT ?2;

-- name: read_dependents
SELECT task_id, dependency_type, NULL FROM task_dependencies
WHERE depends_on_task_id = ?1 ORDER BY task_id LIMIT ?2;

-- name: read_result
SELECT payload, created_at FROM task_results WHERE task_id = ?1;

-- The same as the view task_events, but each part stops at the limit.
-- name: read_events
SELECT id, seq, status, state, detail, actor, created_at, principal FROM (
    SELECT * FROM (
        SELECT id, seq, status, state, detail, actor, created_at, principal
        FROM task_event_rows WHERE task = ?1 AND seq < ?3
        ORDER BY seq DESC LIMIT ?4)
    UNION ALL
    SELECT * FROM (
        SELECT id, claim_seq, 'claimed', 'Claimed', json_object('worker_id', worker_id,
            'lease_token', lease_token, 'attempt', attempt_number), 'WORKER', created_at, NULL
        FROM execution_rows WHERE task = ?1 AND claim_seq < ?3
        ORDER BY execution DESC LIMIT ?4)
    UNION ALL
    SELECT * FROM (
        SELECT CAST(substr(id, 1, 15) || x'01' AS BLOB), start_seq, 'running', 'Running',
            json_object('worker_id', worker_id, 'attempt', attempt_number), 'WORKER', started_at,
            NULL
        FROM execution_rows WHERE task = ?1 AND start_seq < ?3
        ORDER BY execution DESC LIMIT ?4)
    UNION ALL
    SELECT * FROM (
        SELECT CAST(substr(id, 1, 15) || x'02' AS BLOB), end_seq, 'completed', 'Completed', NULL,
            'WORKER', completed_at, NULL
        FROM execution_rows WHERE task = ?1 AND end_seq < ?3
        ORDER BY execution DESC LIMIT ?4)
    UNION ALL
    SELECT CAST(substr(s.id, 1, 15) || x'00' AS BLOB), 1, 'pending', 'Queued',
        json_object('priority', p.opened, 'payload_bytes',
            coalesce(length(CAST(p.payload AS BLOB)), 0), 'dependencies', 0), 'API', p.created_at,
        p.created_by_principal
    FROM task_specs p JOIN task_states s ON s.task = p.task
    WHERE p.task = ?1 AND p.opened IS NOT NULL AND ?3 > 1)
WHERE (SELECT s.id FROM task_states s WHERE s.task = ?1) = ?2
ORDER BY seq DESC LIMIT ?4;

-- A run belongs to the row its id leads to, so no other row can show its lines as another task's.
-- name: read_logs
SELECT g.id, g.execution_id, g.seq, g.log_level, g.message, g.context, g.logged_at, g.chain_hash,
    e.attempt_number, g.removed_hash IS NOT NULL
FROM execution_rows e CROSS JOIN execution_logs g ON g.execution_id = e.id
WHERE e.task = ?1 AND e.execution >= ?2 AND e.execution = task_key(e.id)
    AND g.seq > CASE WHEN e.execution = ?2 THEN ?3 ELSE 0 END
ORDER BY e.execution, g.seq;

-- How many tasks each way of walking would see, by the list's filter on status and lane.
-- name: list_counts
SELECT count(DISTINCT CASE WHEN matches AND (?4 IS NULL OR status = ?4) THEN lane END),
    sum(CASE WHEN matches AND (?4 IS NULL OR status = ?4) THEN tasks ELSE 0 END),
    sum(CASE WHEN matches THEN tasks ELSE 0 END),
    sum(CASE WHEN ?4 IS NULL OR status = ?4 THEN tasks ELSE 0 END),
    sum(tasks)
FROM (SELECT c.lane AS lane, c.status AS status, c.tasks AS tasks,
        (?1 IS NULL OR l.namespace = ?1) AND (?2 IS NULL OR l.queue = ?2)
            AND (?3 IS NULL OR l.type = ?3) AS matches
    FROM lane_counts c JOIN lanes l ON l.lane = c.lane WHERE c.tasks > 0);

-- The first key such that it and all later tasks were created at or after a time, by bisection.
-- name: list_probe
SELECT task, created_at FROM task_specs WHERE task >= ?1 ORDER BY task LIMIT 1;
