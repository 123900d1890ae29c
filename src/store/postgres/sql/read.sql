-- Queries of readers. Texts can be large: a page adds up the bytes of its rows, and a row that
-- exceeds the reader's space comes as NULLs. Rows of other tables are looked up one by one, whatever
-- the statistics say: in LATERAL subqueries with OFFSET 0 (which the planner does not merge) and in
-- scalar ones.

-- name: read_task
SELECT @state@, @spec@, l.namespace, l.queue, l.type, d.data, w.lease_until
FROM task_states s
JOIN task_specs p ON p.task = s.task
JOIN lanes l ON l.lane = s.lane
LEFT JOIN task_data d ON d.task = s.task
LEFT JOIN workers w ON s.held AND w.id = s.worker_id
WHERE s.task = $1 AND s.id = $2;

-- name: read_dependencies
SELECT d.depends_on_task_id, d.dependency_type, s.status FROM task_dependencies d
LEFT JOIN task_states s ON s.task = perdura_key(d.depends_on_task_id) AND s.id = d.depends_on_task_id
WHERE d.task_id = $1 ORDER BY d.depends_on_task_id LIMIT $2;

-- name: read_dependents
SELECT task_id, dependency_type, NULL::text FROM task_dependencies
WHERE depends_on_task_id = $1 ORDER BY task_id LIMIT $2;

-- name: read_result
SELECT payload, created_at FROM task_results WHERE task_id = $1;

-- The same as the view task_events, but each part stops at the limit, and the details are the bytes
-- that were written.
-- name: read_events
SELECT v.id, v.seq, v.status, v.state, v.detail, v.actor, v.created_at, v.principal
FROM task_states s CROSS JOIN LATERAL (
    (SELECT r.id, r.seq, r.status, r.state, r.detail, r.actor, r.created_at,
        r.principal
    FROM task_event_rows r WHERE r.task = $1 AND r.seq < $3 ORDER BY r.seq DESC LIMIT $4)
    UNION ALL
    (SELECT e.id, e.claim_seq, 'claimed', 'Claimed',
        '{"worker_id":' || coalesce(to_json(e.worker_id)::text, 'null') || ',"lease_token":'
            || e.lease_token || ',"attempt":' || e.attempt_number || '}', 'WORKER', e.created_at,
        NULL
    FROM execution_rows e WHERE e.task = $1 AND e.claim_seq < $3
    ORDER BY e.execution DESC LIMIT $4)
    UNION ALL
    (SELECT perdura_event_id(e.id, '01'), e.start_seq, 'running', 'Running',
        '{"worker_id":' || coalesce(to_json(e.worker_id)::text, 'null') || ',"attempt":'
            || e.attempt_number || '}', 'WORKER', e.started_at, NULL
    FROM execution_rows e WHERE e.task = $1 AND e.start_seq < $3
    ORDER BY e.execution DESC LIMIT $4)
    UNION ALL
    (SELECT perdura_event_id(e.id, '02'), e.end_seq, 'completed', 'Completed', NULL, 'WORKER',
        e.completed_at, NULL
    FROM execution_rows e WHERE e.task = $1 AND e.end_seq < $3
    ORDER BY e.execution DESC LIMIT $4)
    UNION ALL
    (SELECT perdura_event_id($2, '00'), 1, 'pending', 'Queued',
        '{"priority":' || p.opened || ',"payload_bytes":' || coalesce(octet_length(p.payload), 0)
            || ',"dependencies":0}', 'API', p.created_at, p.created_by_principal
    FROM task_specs p WHERE p.task = $1 AND p.opened IS NOT NULL AND $3 > 1)) v
WHERE s.task = $1 AND s.id = $2 ORDER BY v.seq DESC LIMIT $4;

-- The last execution's result is the task's.
-- One run after the other, each in its own order, until the page is full. A run belongs to the row
-- its id leads to, so no other row can show its lines as another task's.
-- name: read_logs
SELECT g.id, g.execution_id, g.seq, g.log_level, g.message, g.context, g.logged_at, g.chain_hash,
    z.attempt_number, g.removed_hash IS NOT NULL
FROM (
    SELECT f.*, sum(f.bytes) OVER (ORDER BY f.execution, f.seq) AS total
    FROM (SELECT e.execution, e.id, e.attempt_number, c.seq, c.bytes
        FROM (SELECT x.execution, x.id, x.attempt_number FROM execution_rows x
            WHERE x.task = $1 AND x.execution >= $3 AND x.execution <= $11
                AND x.execution = perdura_key(x.id)
                AND (SELECT true FROM task_states s WHERE s.task = $1 AND s.id = $2)
            ORDER BY x.execution OFFSET 0) e
        CROSS JOIN LATERAL (
            SELECT g.seq, 200 + octet_length(g.message) + coalesce(octet_length(g.context), 0)
                AS bytes
            FROM execution_logs g
            WHERE g.execution_id = e.id AND g.seq > CASE WHEN e.execution = $3 THEN $4 ELSE 0 END
                AND (e.execution < $11 OR g.seq <= $12)
                AND ($5 = 0 OR CASE g.log_level WHEN 'DEBUG' THEN 0 WHEN 'INFO' THEN 1
                    WHEN 'WARN' THEN 2 WHEN 'ERROR' THEN 3 ELSE 4 END >= $5)
                AND ($6 IS NULL OR g.logged_at >= $6) AND ($7 IS NULL OR g.logged_at < $7)
                AND ($8 IS NULL OR (g.removed_hash IS NULL AND strpos(g.message, $8) > 0))
            ORDER BY g.seq LIMIT $9) c
        ORDER BY e.execution, c.seq LIMIT $9) f) z
LEFT JOIN LATERAL (SELECT * FROM execution_logs x
    WHERE x.execution_id = z.id AND x.seq = z.seq AND z.total <= $10 OFFSET 0) g ON true
ORDER BY z.execution, z.seq;

-- The last of the next $4 lines of a task, if there are that many: how far one step looks.
-- name: log_bound
SELECT e.id, c.seq
FROM (SELECT x.execution, x.id FROM execution_rows x WHERE x.task = $1 AND x.execution >= $2
        AND x.execution = perdura_key(x.id)
    ORDER BY x.execution OFFSET 0) e
CROSS JOIN LATERAL (SELECT g.seq FROM execution_logs g
    WHERE g.execution_id = e.id AND g.seq > CASE WHEN e.execution = $2 THEN $3 ELSE 0 END
    ORDER BY g.seq LIMIT $4) c
ORDER BY e.execution, c.seq OFFSET $4 - 1 LIMIT 1;

-- How many tasks each way of finding them would see, by the list's filter on status and lane. Parked
-- and held tasks are counted separately from their status.
-- name: list_counts
SELECT count(*) FILTER (WHERE v.matches AND v.in_status > 0),
    coalesce(sum(v.in_status) FILTER (WHERE v.matches), 0)::bigint,
    coalesce(sum(v.tasks) FILTER (WHERE v.matches), 0)::bigint,
    coalesce(sum(v.in_status), 0)::bigint,
    coalesce(sum(v.tasks), 0)::bigint
FROM (
    SELECT n.tasks, n.in_status, ($1 IS NULL OR l.namespace = $1)
        AND ($2 IS NULL OR l.queue = $2) AND ($3 IS NULL OR l.type = $3) AS matches
    FROM (SELECT c.lane, sum(c.tasks) AS tasks,
            coalesce(sum(c.tasks) FILTER (WHERE $4 IS NULL OR c.status = $4), 0) AS in_status
        FROM lane_counts c WHERE c.status NOT IN ('parked', 'held') GROUP BY c.lane OFFSET 0) n
    JOIN lanes l ON l.lane = n.lane) v;

-- The first key such that it and all later tasks were created at or after a time, by bisection in
-- 40 steps.
-- name: list_key_at
WITH RECURSIVE halves AS (
    SELECT 1::bigint AS low, $2 AS high
    UNION ALL
    SELECT CASE WHEN p.task IS NULL OR p.created_at >= $1 THEN h.low ELSE p.task + 1 END,
        CASE WHEN p.task IS NULL OR p.created_at >= $1 THEN h.middle ELSE h.high END
    FROM (SELECT low, high, low + (high - low) / 2 AS middle FROM halves WHERE low < high) h
    LEFT JOIN LATERAL (SELECT x.task, x.created_at FROM task_specs x WHERE x.task >= h.middle
        ORDER BY x.task LIMIT 1) p ON true)
SELECT low FROM halves WHERE low >= high;

-- The list of tasks. {found} becomes one of the parts below: they find keys, newest first, and
-- differ only in how many rows they look at. Parameters of all: $1 namespace, $2 queue, $3 type,
-- $4 status, $5 tag, $6 user, $7 outside id, $8 context key, $9 workflow, $10 correlation, $11 job,
-- $12 schedule, $13 parent, $14 created from, $15 created before (NULL = any); $16 first key, $17
-- end of the keys, $18 limit, $19 whether to check more than the status, $20 bytes.
-- name: list_tasks
WITH found AS MATERIALIZED ({found}),
sized AS MATERIALIZED (
    SELECT f.task, sum(2000
        + (SELECT coalesce(octet_length(p.payload), 0) FROM task_specs p WHERE p.task = f.task)
        + coalesce((SELECT octet_length(d.data) FROM task_data d WHERE d.task = f.task), 0)
        + (SELECT coalesce(octet_length(s.metadata), 0)
            + coalesce(octet_length(s.checkpoint_data), 0) + coalesce(octet_length(s.error), 0)
            + coalesce(octet_length(s.last_error), 0)
            + coalesce(octet_length(s.error_details), 0)
            FROM task_states s WHERE s.task = f.task)) OVER (ORDER BY f.task DESC) AS bytes
    FROM found f)
SELECT t.* FROM sized z LEFT JOIN LATERAL (
    SELECT @state@, @spec@, l.namespace, l.queue, l.type,
        (SELECT d.data FROM task_data d WHERE d.task = z.task),
        (SELECT w.lease_until FROM workers w WHERE s.held AND w.id = s.worker_id)
    FROM task_states s
    JOIN task_specs p ON p.task = z.task
    CROSS JOIN LATERAL (SELECT * FROM lanes x WHERE x.lane = s.lane OFFSET 0) l
    WHERE s.task = z.task AND z.bytes <= $20 OFFSET 0) t ON true
ORDER BY z.task DESC;

-- Does the task d.task match the filters? {fits} of the parts. A table is read only if there is a
-- filter on it.
-- name: list_fits
($4 IS NULL OR (SELECT s.status FROM task_states s WHERE s.task = d.task) = $4)
AND (NOT $19 OR (
    SELECT true FROM task_specs p
    CROSS JOIN LATERAL (SELECT * FROM lanes x WHERE x.lane = p.lane OFFSET 0) l
    WHERE p.task = d.task
        AND ($1 IS NULL OR l.namespace = $1) AND ($2 IS NULL OR l.queue = $2)
        AND ($3 IS NULL OR l.type = $3) AND ($6 IS NULL OR p.user_id = $6)
        AND ($7 IS NULL OR p.external_id = $7) AND ($8 IS NULL OR p.context_key = $8)
        AND ($9 IS NULL OR p.workflow_id = $9) AND ($10 IS NULL OR p.correlation_id = $10)
        AND ($11 IS NULL OR p.job_id = $11) AND ($12 IS NULL OR p.schedule_id = $12)
        AND ($13 IS NULL OR p.parent_id = $13) AND ($14 IS NULL OR p.created_at >= $14)
        AND ($15 IS NULL OR p.created_at < $15)
        AND ($5 IS NULL OR (SELECT true FROM task_tags t
            WHERE t.namespace = l.namespace AND t.tag = $5 AND t.task = p.task))))

-- name: list_by_external
SELECT d.task FROM task_uniques d
WHERE d.namespace = ANY (CASE WHEN $1 IS NULL THEN ARRAY(SELECT DISTINCT namespace FROM lanes)
        ELSE ARRAY[$1] END)
    AND d.kind = 'external' AND d.type = '' AND d.value = $7
    AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_parent
SELECT d.task FROM task_specs d
WHERE d.parent_id = $13 AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_context
SELECT d.task FROM task_specs d
WHERE d.context_key = $8 AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_workflow
SELECT d.task FROM task_specs d
WHERE d.workflow_id = $9 AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_correlation
SELECT d.task FROM task_specs d
WHERE d.correlation_id = $10 AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_schedule
SELECT d.task FROM task_specs d
WHERE d.schedule_id = $12 AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_job
SELECT d.task FROM task_specs d
WHERE d.job_id = $11 AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_user
SELECT d.task FROM task_specs d
WHERE d.user_id = $6 AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_tag
SELECT d.task FROM task_tags d
WHERE d.namespace = $1 AND d.tag = $5 AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_tag_anywhere
SELECT d.task FROM (SELECT DISTINCT namespace FROM lanes) n
CROSS JOIN LATERAL (
    SELECT d.task FROM task_tags d
    WHERE d.namespace = n.namespace AND d.tag = $5 AND d.task >= $16 AND d.task < $17 AND {fits}
    ORDER BY d.task DESC LIMIT $18) d
ORDER BY d.task DESC LIMIT $18

-- name: list_by_key
SELECT d.task FROM task_states d
WHERE d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- The newest of every lane that fits, then the newest of these.
-- name: list_by_lanes
SELECT d.task FROM lanes w
CROSS JOIN LATERAL (
    SELECT d.task FROM task_specs d
    WHERE d.lane = w.lane AND d.task >= $16 AND d.task < $17 AND {fits}
    ORDER BY d.task DESC LIMIT $18) d
WHERE ($1 IS NULL OR w.namespace = $1) AND ($2 IS NULL OR w.queue = $2)
    AND ($3 IS NULL OR w.type = $3)
    AND ($4 IS NULL OR (SELECT sum(c.tasks) FROM lane_counts c
        WHERE c.lane = w.lane AND c.status = $4) > 0)
ORDER BY d.task DESC LIMIT $18

-- name: list_by_settled
SELECT d.task FROM settled_rows d
WHERE d.status = $4 AND d.task >= $16 AND d.task < $17 AND {fits}
ORDER BY d.task DESC LIMIT $18

-- Stored in another order: sorts the keys first, so that only the newest tasks are read.
-- name: list_by_held
SELECT d.task FROM (
    SELECT task FROM held_rows WHERE task >= $16 AND task < $17 ORDER BY task DESC OFFSET 0) d
WHERE {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_pending
SELECT d.task FROM (
    SELECT task FROM (SELECT task FROM ready_rows UNION ALL SELECT task FROM parked_rows) w
    WHERE task >= $16 AND task < $17 ORDER BY task DESC OFFSET 0) d
WHERE {fits}
ORDER BY d.task DESC LIMIT $18

-- name: list_by_delayed
SELECT d.task FROM (
    SELECT task FROM due_rows WHERE task >= $16 AND task < $17 ORDER BY task DESC OFFSET 0) d
WHERE {fits}
ORDER BY d.task DESC LIMIT $18
