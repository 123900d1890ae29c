-- The recovery queue, what discovery finds, and checkpoints.

-- name: recovery_put
INSERT INTO recovery_queue (@recovery.names@)
SELECT v.id, v.namespace, v.task_id, v.method, v.priority, v.scheduled_for, v.started,
    v.completed, v.status, v.attempts, v.max_attempts, v.result::jsonb, v.error, v.created_at
FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::timestamptz[],
        $7::timestamptz[], $8::timestamptz[], $9::text[], $10::bigint[], $11::bigint[],
        $12::text[], $13::text[], $14::timestamptz[])
    AS v (id, namespace, task_id, method, priority, scheduled_for, started, completed, status,
        attempts, max_attempts, result, error, created_at);

-- name: recovery_save
UPDATE recovery_queue SET scheduled_for = $2, processing_started = $3, processing_completed = $4,
    status = $5, attempts = $6, recovery_result = $7::jsonb, error_message = $8
WHERE id = $1;

-- name: recovery_by_id
SELECT @recovery@ FROM recovery_queue r WHERE r.id = $1;

-- name: recovery_due
SELECT * FROM (
    (SELECT @recovery@ FROM recovery_queue r
        WHERE r.status = 'pending' AND r.scheduled_for <= $1
        ORDER BY r.recovery_priority DESC, r.scheduled_for, r.id LIMIT $3)
    UNION ALL
    (SELECT @recovery@ FROM recovery_queue r
        WHERE r.status = 'processing' AND r.processing_started <= $2
        ORDER BY r.recovery_priority DESC, r.scheduled_for, r.id LIMIT $3)) d
ORDER BY recovery_priority DESC, scheduled_for, id LIMIT $3;

-- name: recovery_next
SELECT (SELECT min(scheduled_for) FROM recovery_queue
        WHERE status = 'pending' AND scheduled_for > $1),
    (SELECT min(processing_started) FROM recovery_queue
        WHERE status = 'processing' AND processing_started > $2);

-- name: recovery_remove
DELETE FROM recovery_queue WHERE id = $1;

-- name: recovery_prune
DELETE FROM recovery_queue WHERE id IN (
    SELECT id FROM recovery_queue
    WHERE status IN ('completed', 'failed') AND scheduled_for < $1 LIMIT $2);

-- name: checkpoint_before
SELECT @checkpoint@ FROM task_checkpoints k
WHERE k.task_id = $1 AND k.is_valid AND k.seq < $2 ORDER BY k.seq DESC LIMIT 1;

-- name: checkpoint_invalidate
UPDATE task_checkpoints SET is_valid = false WHERE task_id = $1 AND seq = $2;

-- name: checkpoints_retire
UPDATE task_checkpoints SET is_valid = false WHERE task_id = $1 AND is_valid;

-- name: read_checkpoints
SELECT @checkpoint@ FROM (
    SELECT c.seq, sum(c.bytes) OVER (ORDER BY c.seq DESC) AS bytes
    FROM (SELECT x.seq, 1000 + octet_length(x.recoverable_data)
            + coalesce(octet_length(x.database_state), 0)
            + coalesce(octet_length(x.file_state), 0) AS bytes
        FROM task_checkpoints x WHERE x.task_id = $1 AND x.seq < $2
        ORDER BY x.seq DESC LIMIT $3) c) z
LEFT JOIN LATERAL (SELECT * FROM task_checkpoints x
    WHERE x.task_id = $1 AND x.seq = z.seq AND z.bytes <= $4 OFFSET 0) k ON true
ORDER BY z.seq DESC;

-- name: list_recoveries
SELECT @recovery@ FROM recovery_queue r
WHERE ($1 IS NULL OR r.namespace = $1) AND ($2 IS NULL OR r.task_id = $2)
    AND ($3 IS NULL OR r.status = $3) AND ($4 IS NULL OR r.recovery_method = $4)
    AND ($5 IS NULL OR r.id < $5)
ORDER BY r.id DESC LIMIT $6;

-- Settled and held tasks, each through their rows. $1 now, $2 stall_after for tasks that set none
-- (ms), $3 auto_recovery (-1 = any), $4 to $7 the cursor, $8 limit, $9 namespace.
-- name: recovery_candidates
WITH found AS (
    SELECT r.task FROM settled_rows r WHERE r.status IN ('orphaned', 'partial')
    UNION ALL
    SELECT h.task FROM held_rows h JOIN task_states s ON s.task = h.task
    JOIN task_specs p ON p.task = h.task AND p.lane = s.lane
    WHERE s.status = 'running'
        AND s.last_heartbeat < $1 - coalesce(p.stall_after_ms, $2) * interval '1 millisecond')
SELECT @state@, @lean@, l.namespace, l.queue, l.type, NULL::text, NULL::timestamptz
FROM found f JOIN task_states s ON s.task = f.task
JOIN task_specs p ON p.task = f.task AND p.lane = s.lane
JOIN lanes l ON l.lane = s.lane
WHERE ($3 < 0 OR coalesce(p.auto_recovery_enabled, true) = ($3 = 1))
    AND ($9 IS NULL OR l.namespace = $9)
    AND (NOT $4 OR (-coalesce(p.recovery_priority, 0), s.updated_at, s.id) > (-$5, $6, $7))
ORDER BY coalesce(p.recovery_priority, 0) DESC, s.updated_at, s.id LIMIT $8;
