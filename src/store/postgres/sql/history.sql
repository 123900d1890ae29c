-- What a task leaves behind: events, executions, result, checkpoints, logs; and their pruning.

-- name: events_insert
INSERT INTO task_event_rows (task, seq, id, status, state, detail, actor, created_at, principal)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[],
    $7::text[], $8::timestamptz[], $9::text[]);

-- name: executions_save
UPDATE execution_rows e SET
    status = v.status, start_seq = coalesce(v.start_seq, e.start_seq),
    end_seq = coalesce(v.end_seq, e.end_seq), started_at = coalesce(v.started_at, e.started_at),
    completed_at = v.completed_at, failed_at = v.failed_at, result_data = v.result_data,
    error_data = v.error_data, duration_ms = v.duration_ms
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[],
    $7::timestamptz[], $8::timestamptz[], $9::text[], $10::text[], $11::bigint[])
    AS v (execution, id, status, start_seq, end_seq, started_at, completed_at, failed_at,
        result_data, error_data, duration_ms)
WHERE e.execution = v.execution AND e.id = v.id;

-- The same without their ids, which name the partition: searches all partitions.
-- name: executions_save_keyed
UPDATE execution_rows e SET
    status = v.status, start_seq = coalesce(v.start_seq, e.start_seq),
    end_seq = coalesce(v.end_seq, e.end_seq), started_at = coalesce(v.started_at, e.started_at),
    completed_at = v.completed_at, failed_at = v.failed_at, result_data = v.result_data,
    error_data = v.error_data, duration_ms = v.duration_ms
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[],
    $7::timestamptz[], $8::timestamptz[], $9::text[], $10::text[], $11::bigint[])
    AS v (execution, id, status, start_seq, end_seq, started_at, completed_at, failed_at,
        result_data, error_data, duration_ms)
WHERE e.execution = v.execution;

-- name: execution_by_key
SELECT @execution@, s.id FROM execution_rows e LEFT JOIN task_states s ON s.task = e.task
WHERE e.execution = $1;

-- name: results_put
INSERT INTO task_results (task_id, payload, created_at, payload_sum)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::bigint[])
ON CONFLICT (task_id) DO UPDATE SET payload = excluded.payload, created_at = excluded.created_at,
    payload_sum = excluded.payload_sum;

-- name: result_delete
DELETE FROM task_results WHERE task_id = $1;

-- name: checkpoint_seqs
SELECT seq FROM task_checkpoints WHERE task_id = $1 ORDER BY seq DESC LIMIT 63;

-- Another node may have used the same number since it was read: then the transaction is retried.
-- name: checkpoint_insert
WITH made AS (
    INSERT INTO task_checkpoints (id, task_id, seq, checkpoint_name, progress_percent,
        step_description, recoverable_data, database_state, file_state, checkpoint_hash,
        created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (task_id, seq) DO NOTHING RETURNING 1)
SELECT perdura_expect(count(*), 1, 'task_checkpoints') FROM made;

-- name: checkpoint_thin
DELETE FROM task_checkpoints WHERE task_id = $1 AND seq = $2;

-- The next tasks, from a key on, that have any history left, one by one through the indexes.
-- name: prune_candidates
WITH RECURSIVE next AS (
    SELECT least((SELECT min(r.task) FROM task_event_rows r WHERE r.task >= $1),
        (SELECT min(e.task) FROM execution_rows e WHERE e.task >= $1)) AS task, 1::bigint AS nth
    UNION ALL
    SELECT least((SELECT min(r.task) FROM task_event_rows r WHERE r.task > next.task),
        (SELECT min(e.task) FROM execution_rows e WHERE e.task > next.task)), next.nth + 1
    FROM next WHERE next.nth < $2 AND next.task IS NOT NULL)
SELECT n.task, s.status, s.id FROM next n LEFT JOIN task_states s ON s.task = n.task
WHERE n.task IS NOT NULL ORDER BY n.nth;

-- The first event, if the task's row stands for it. Another event always leads here.
-- name: prune_opening
UPDATE task_specs SET opened = NULL
WHERE task = ANY ($1::bigint[]) AND opened IS NOT NULL AND created_at < $2;

-- name: prune_events
DELETE FROM task_event_rows r
USING (
    SELECT old.task, old.seq, old.id
    FROM unnest($1::bigint[]) AS ended (task)
    CROSS JOIN LATERAL (
        SELECT x.task, x.seq, x.id FROM task_event_rows x
        WHERE x.task = ended.task AND x.created_at < $2 ORDER BY x.seq LIMIT $3) old
    LIMIT $3) gone
WHERE r.task = gone.task AND r.seq = gone.seq AND r.id = gone.id;

-- Keeps an execution while it has logs, because they are found through it. Where events are kept
-- longer, its events outlive its row. One statement, so that of two nodes only the one that removes
-- an execution writes its events.
-- name: prune_executions
WITH gone AS (
    DELETE FROM execution_rows e
    USING (
        SELECT old.execution, old.id
        FROM unnest($1::bigint[]) AS ended (task)
        CROSS JOIN LATERAL (
            SELECT x.execution, x.id FROM execution_rows x
            WHERE x.task = ended.task AND x.created_at < $2
                AND x.status NOT IN ('pending', 'running')
                AND NOT EXISTS (SELECT 1 FROM execution_logs g WHERE g.execution_id = x.id)
            ORDER BY x.execution LIMIT $3) old
        LIMIT $3) d
    WHERE e.execution = d.execution AND e.id = d.id
    RETURNING e.*, coalesce(to_json(e.worker_id)::text, 'null') AS worker),
kept AS (
    INSERT INTO task_event_rows (task, seq, id, status, state, detail, actor, created_at)
    SELECT t.task, t.seq, t.id, t.status, t.state, t.detail, 'WORKER', t.created_at
    FROM (
        SELECT task, claim_seq, id, 'claimed', 'Claimed', '{"worker_id":' || worker
            || ',"lease_token":' || lease_token || ',"attempt":' || attempt_number || '}',
            created_at
        FROM gone
        UNION ALL
        SELECT task, start_seq, perdura_event_id(id, '01'), 'running', 'Running',
            '{"worker_id":' || worker || ',"attempt":' || attempt_number || '}', started_at
        FROM gone
        UNION ALL
        SELECT task, end_seq, perdura_event_id(id, '02'), 'completed', 'Completed', NULL,
            completed_at
        FROM gone) AS t (task, seq, id, status, state, detail, created_at)
    WHERE t.seq IS NOT NULL AND t.created_at >= coalesce($4, '-infinity')
        AND NOT EXISTS (SELECT 1 FROM task_event_rows r WHERE r.task = t.task AND r.seq = t.seq))
SELECT count(*) FROM gone;

-- The next executions (by their ids, which carry their times) that have logs and began before a
-- time; and whether they are still open.
-- name: prune_logs_next
WITH RECURSIVE next AS (
    (SELECT g.execution_id, 1::bigint AS nth FROM execution_logs g
    WHERE g.execution_id > coalesce($1, '00000000-0000-0000-0000-000000000000')
        AND g.execution_id < $2
    ORDER BY g.execution_id LIMIT 1)
    UNION ALL
    SELECT later.execution_id, next.nth + 1 FROM next CROSS JOIN LATERAL (
        SELECT g.execution_id FROM execution_logs g
        WHERE g.execution_id > next.execution_id AND g.execution_id < $2
        ORDER BY g.execution_id LIMIT 1) later
    WHERE next.nth < $3)
SELECT n.execution_id, l.seq, l.chain_hash, l.logged_at, h.seq, h.chain_hash, h.lines, h.task_id,
    h.task_type, h.logged_at, h.closed, h.mac, h.from_hash, EXISTS (
    SELECT 1 FROM execution_rows e
    WHERE e.execution = perdura_key(n.execution_id) AND e.id = n.execution_id
        AND e.status IN ('pending', 'running'))
FROM next n
CROSS JOIN LATERAL (SELECT g.seq, g.chain_hash, g.logged_at FROM execution_logs g
    WHERE g.execution_id = n.execution_id ORDER BY g.seq DESC LIMIT 1) l
LEFT JOIN log_heads h ON h.execution_id = n.execution_id AND h.seq = l.seq
ORDER BY n.nth;

-- name: prune_logs
WITH gone AS (
    DELETE FROM execution_logs g
    USING (
        SELECT old.execution_id, old.seq
        FROM unnest($1::uuid[]) AS ended (execution_id)
        CROSS JOIN LATERAL (
            SELECT x.execution_id, x.seq FROM execution_logs x
            WHERE x.execution_id = ended.execution_id ORDER BY x.seq LIMIT $2) old
        LIMIT $2) old
    WHERE g.execution_id = old.execution_id AND g.seq = old.seq
    RETURNING g.execution_id, g.seq, g.chain_hash, g.logged_at),
forgotten AS (
    DELETE FROM log_heads h USING (SELECT execution_id, max(seq) AS seq FROM gone
        GROUP BY execution_id) o
    WHERE h.execution_id = o.execution_id AND h.seq <= o.seq)
SELECT DISTINCT ON (execution_id) execution_id, seq, chain_hash,
    count(*) OVER (PARTITION BY execution_id), max(logged_at) OVER (PARTITION BY execution_id)
FROM gone ORDER BY execution_id, seq DESC;
