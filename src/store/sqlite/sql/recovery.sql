-- The recovery queue, and what discovery finds. Columns of entries in the order of
-- sqlite_recovery.c.

-- name: recovery_put
INSERT INTO recovery_queue (id, namespace, task_id, recovery_method, recovery_priority,
    scheduled_for, processing_started, processing_completed, status, attempts, max_attempts,
    recovery_result, error_message, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14);

-- name: recovery_save
UPDATE recovery_queue SET scheduled_for = ?2, processing_started = ?3, processing_completed = ?4,
    status = ?5, attempts = ?6, recovery_result = ?7, error_message = ?8
WHERE id = ?1;

-- name: recovery_by_id
SELECT @recovery@ FROM recovery_queue r WHERE r.id = ?1;

-- In the order of an index over pending ones alone; those being processed are few.
-- name: recovery_due
SELECT * FROM (
    SELECT * FROM (SELECT @recovery@ FROM recovery_queue r INDEXED BY recovery_queue_pending
        WHERE r.status = 'pending' AND r.scheduled_for <= ?1
        ORDER BY r.recovery_priority DESC, r.scheduled_for, r.id LIMIT ?3)
    UNION ALL
    SELECT * FROM (SELECT @recovery@ FROM recovery_queue r
        WHERE r.status = 'processing' AND r.processing_started <= ?2
        ORDER BY r.recovery_priority DESC, r.scheduled_for, r.id LIMIT ?3))
ORDER BY recovery_priority DESC, scheduled_for, id LIMIT ?3;

-- name: recovery_next
SELECT min((SELECT coalesce(min(scheduled_for), ?2) FROM recovery_queue
        WHERE status = 'pending' AND scheduled_for > ?1),
    (SELECT coalesce(min(processing_started) + ?3, ?2) FROM recovery_queue
        WHERE status = 'processing' AND processing_started > ?1 - ?3));

-- name: recovery_remove
DELETE FROM recovery_queue WHERE id = ?1;

-- name: recovery_prune
DELETE FROM recovery_queue WHERE rowid IN (
    SELECT rowid FROM recovery_queue
    WHERE status IN ('completed', 'failed') AND scheduled_for < ?1 LIMIT ?2);

-- name: checkpoint_before
SELECT id, seq, checkpoint_name, progress_percent, step_description, recoverable_data,
    database_state, file_state, checkpoint_hash, is_valid, created_at
FROM task_checkpoints WHERE task_id = ?1 AND is_valid = 1 AND seq < ?2 ORDER BY seq DESC LIMIT 1;

-- name: checkpoints_retire
UPDATE task_checkpoints SET is_valid = 0 WHERE task_id = ?1 AND is_valid = 1;

-- Those that were given up or ended in part, through the index of what is settled; then what is
-- held, of which only the running ones can be silent. ?1 now, ?2 stall_after of tasks that say
-- nothing (µs), ?3 auto_recovery (-1 = any), ?4 to ?7 the cursor, ?8 limit.
-- name: recovery_candidates
WITH found (task) AS (
    SELECT task FROM task_states INDEXED BY task_states_settled
    WHERE status IN ('orphaned', 'partial') AND status <> 'pending' AND status <> 'claimed'
        AND status <> 'running' AND status <> 'delayed'
    UNION ALL
    SELECT s.task FROM task_states s INDEXED BY task_states_held
    JOIN task_specs p ON p.task = s.task LEFT JOIN task_options o ON o.task = p.options
    WHERE s.held = 1 AND s.status = 'running'
        AND ?1 - s.last_heartbeat > coalesce(o.stall_after_ms * 1000, ?2))
SELECT @state@, @lean@, l.namespace, l.queue, l.type
FROM found f CROSS JOIN task_states s ON s.task = f.task @joins@
JOIN lanes l ON l.lane = s.lane
WHERE (?3 < 0 OR coalesce(o.auto_recovery_enabled, 1) = ?3)
    AND (?9 IS NULL OR l.namespace = ?9)
    AND (?4 = 0 OR (-coalesce(o.recovery_priority, 0), s.updated_at, s.id) > (-?5, ?6, ?7))
ORDER BY coalesce(o.recovery_priority, 0) DESC, s.updated_at, s.id LIMIT ?8;
