-- What a task leaves behind: events, executions, result, checkpoints, logs; and their pruning.
-- Columns of executions in the order of sqlite_row.c.

-- name: event_insert
INSERT INTO task_event_rows (task, seq, id, status, state, detail, actor, created_at, principal)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: execution_insert
INSERT INTO execution_rows (
    execution, id, task, job_id, schedule_id, status, attempt_number, lease_token, worker_id,
    correlation_id, claim_seq, start_seq, end_seq, created_at, started_at, completed_at, failed_at,
    duration_ms, result_data, error_data
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    ?20);

-- name: execution_update
UPDATE execution_rows SET
    status = ?2, start_seq = coalesce(?3, start_seq), started_at = coalesce(?4, started_at),
    completed_at = ?5, failed_at = ?6,
    duration_ms = ?7, result_data = ?8, error_data = ?9, end_seq = coalesce(?10, end_seq)
WHERE execution = ?1;

-- name: execution_by_key
SELECT @execution@, s.id FROM execution_rows e LEFT JOIN task_states s ON s.task = e.task
WHERE e.execution = ?1;

-- Not an upsert: that would also compile the trigger for updates by hand, at twice the cost.
-- name: result_put
INSERT OR REPLACE INTO task_results (task_id, payload, created_at, payload_sum)
VALUES (?1, ?2, ?3, ?4);

-- name: result_delete
DELETE FROM task_results WHERE task_id = ?1;

-- name: checkpoint_seqs
SELECT seq FROM task_checkpoints WHERE task_id = ?1 ORDER BY seq DESC LIMIT 63;

-- name: checkpoint_insert
INSERT INTO task_checkpoints (
    id, task_id, seq, checkpoint_name, progress_percent, step_description, recoverable_data,
    database_state, file_state, checkpoint_hash, is_valid, created_at
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12);

-- name: checkpoint_thin
DELETE FROM task_checkpoints WHERE task_id = ?1 AND seq = ?2;

-- The next task, from a key on, that has any history left.
-- name: prune_candidates
WITH next (task) AS (
    SELECT min(task) FROM (
        SELECT min(task) AS task FROM task_event_rows WHERE task >= ?1
        UNION ALL
        SELECT min(task) FROM execution_rows WHERE task >= ?1))
SELECT n.task, s.status, s.id FROM next n LEFT JOIN task_states s ON s.task = n.task
WHERE n.task IS NOT NULL;

-- name: prune_events
DELETE FROM task_event_rows WHERE task = ?1 AND seq IN (
    SELECT seq FROM task_event_rows WHERE task = ?1 AND created_at < ?2 ORDER BY seq LIMIT ?3);

-- The first event, if the task's row stands for it. Another event always leads here.
-- name: prune_opening
UPDATE task_specs SET opened = NULL WHERE task = ?1 AND opened IS NOT NULL AND created_at < ?2;

-- Keeps an execution while it has logs, because they are found through it.
-- name: prune_execution_next
SELECT e.execution FROM execution_rows e
WHERE e.task = ?1 AND e.execution > ?3 AND e.created_at < ?2
    AND e.status NOT IN ('pending', 'running')
    AND NOT EXISTS (SELECT 1 FROM execution_logs g WHERE g.execution_id = e.id)
ORDER BY e.execution LIMIT 1;

-- Where events are kept longer, the execution's events outlive its row.
-- name: prune_keeps_claim
INSERT OR IGNORE INTO task_event_rows (task, seq, id, status, state, detail, actor, created_at)
SELECT e.task, e.claim_seq, e.id, 'claimed', 'Claimed', json_object('worker_id', e.worker_id,
    'lease_token', e.lease_token, 'attempt', e.attempt_number), 'WORKER', e.created_at
FROM execution_rows e WHERE e.execution = ?1 AND e.created_at >= ?2;

-- name: prune_keeps_start
INSERT OR IGNORE INTO task_event_rows (task, seq, id, status, state, detail, actor, created_at)
SELECT e.task, e.start_seq, CAST(substr(e.id, 1, 15) || x'01' AS BLOB), 'running', 'Running',
    json_object('worker_id', e.worker_id, 'attempt', e.attempt_number), 'WORKER', e.started_at
FROM execution_rows e
WHERE e.execution = ?1 AND e.start_seq IS NOT NULL AND e.started_at >= ?2;

-- name: prune_keeps_end
INSERT OR IGNORE INTO task_event_rows (task, seq, id, status, state, detail, actor, created_at)
SELECT e.task, e.end_seq, CAST(substr(e.id, 1, 15) || x'02' AS BLOB), 'completed', 'Completed',
    NULL, 'WORKER', e.completed_at
FROM execution_rows e
WHERE e.execution = ?1 AND e.end_seq IS NOT NULL AND e.completed_at >= ?2;

-- name: prune_executions
DELETE FROM execution_rows WHERE execution = ?1;

-- The next execution (by its id, which carries its time) that has logs and began before a time.
-- name: prune_log_next
SELECT execution_id FROM execution_logs WHERE execution_id > ?1 AND execution_id < ?2
ORDER BY execution_id, seq LIMIT 1;

-- name: prune_logs
DELETE FROM execution_logs WHERE execution_id = ?1 AND seq IN (
    SELECT seq FROM execution_logs WHERE execution_id = ?1 ORDER BY seq LIMIT ?2)
RETURNING execution_id, seq, chain_hash, logged_at;
