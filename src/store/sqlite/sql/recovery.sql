-- The recovery queue, what discovery finds, and checkpoints.

-- name: recovery_put
INSERT INTO recovery_queue (@recovery.names@) VALUES (@recovery.values@);

-- name: recovery_save
UPDATE recovery_queue SET scheduled_for = ?2, processing_started = ?3, processing_completed = ?4,
    status = ?5, attempts = ?6, recovery_result = ?7, error_message = ?8
WHERE id = ?1;

-- name: recovery_by_id
SELECT @recovery@ FROM recovery_queue r WHERE r.id = ?1;

-- Follows the index of pending entries; few entries are in processing.
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
SELECT (SELECT min(scheduled_for) FROM recovery_queue
        WHERE status = 'pending' AND scheduled_for > ?1),
    (SELECT min(processing_started) FROM recovery_queue
        WHERE status = 'processing' AND processing_started > ?2);

-- name: recovery_remove
DELETE FROM recovery_queue WHERE id = ?1;

-- name: recovery_prune
DELETE FROM recovery_queue WHERE rowid IN (
    SELECT rowid FROM recovery_queue
    WHERE status IN ('completed', 'failed') AND scheduled_for < ?1 LIMIT ?2);

-- name: checkpoint_before
SELECT @checkpoint@ FROM task_checkpoints k
WHERE k.task_id = ?1 AND k.is_valid = 1 AND k.seq < ?2 ORDER BY k.seq DESC LIMIT 1;

-- name: checkpoint_invalidate
UPDATE task_checkpoints SET is_valid = 0 WHERE task_id = ?1 AND seq = ?2;

-- name: checkpoints_retire
UPDATE task_checkpoints SET is_valid = 0 WHERE task_id = ?1 AND is_valid = 1;

-- name: read_checkpoints
SELECT @checkpoint@ FROM task_checkpoints k
WHERE k.task_id = ?1 AND k.seq < ?2 ORDER BY k.seq DESC LIMIT ?3;

-- name: list_recoveries
SELECT @recovery@ FROM recovery_queue r WHERE true
    [1: AND r.namespace = ?1]
    [2: AND r.task_id = ?2]
    [3: AND r.status = ?3]
    [4: AND r.recovery_method = ?4]
    [5: AND r.id < ?5]
ORDER BY r.id DESC LIMIT ?6;

-- Tasks that were given up or ended partially, through the index of settled tasks; then held tasks,
-- of which only running ones can be stalled. ?1 now, ?2 stall_after for tasks that set none (ms),
-- ?3 auto_recovery (-1 = any), ?4 to ?7 the cursor, ?8 limit.
-- name: recovery_candidates
WITH found (task) AS (
    SELECT task FROM task_states INDEXED BY task_states_settled
    WHERE status IN ('orphaned', 'partial') AND status <> 'pending' AND status <> 'claimed'
        AND status <> 'running' AND status <> 'delayed'
    UNION ALL
    SELECT s.task FROM task_states s INDEXED BY task_states_held
    JOIN task_specs p ON p.task = s.task LEFT JOIN task_options o ON o.task = p.options
    WHERE s.held = 1 AND s.status = 'running'
        AND ?1 - s.last_heartbeat > coalesce(o.stall_after_ms, ?2) * 1000)
SELECT @state@, @lean@, l.namespace, l.queue, l.type
FROM found f CROSS JOIN task_states s ON s.task = f.task @joins@
JOIN lanes l ON l.lane = s.lane
WHERE (?3 < 0 OR coalesce(o.auto_recovery_enabled, 1) = ?3)
    AND (?9 IS NULL OR l.namespace = ?9)
    AND (?4 = 0 OR (-coalesce(o.recovery_priority, 0), s.updated_at, s.id) > (-?5, ?6, ?7))
ORDER BY coalesce(o.recovery_priority, 0) DESC, s.updated_at, s.id LIMIT ?8;
