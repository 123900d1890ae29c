-- Open runs of jobs and what they wait for; readers' queries of the catalog, and of executions as
-- its history. Where texts can be large, a page adds up the bytes of its rows as in read.sql.

-- name: runs_insert
INSERT INTO job_runs (@job_run.names@)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::boolean[],
    $6::timestamptz[])
ON CONFLICT (task_id) DO UPDATE SET job_id = excluded.job_id, schedule_id = excluded.schedule_id,
    recurring_job_id = excluded.recurring_job_id, waits_slot = excluded.waits_slot,
    created_at = excluded.created_at;

-- name: run_save
UPDATE job_runs SET waits_slot = $2 WHERE task_id = $1;

-- name: run_delete
DELETE FROM job_runs WHERE task_id = $1;

-- name: runs_of_job
SELECT @job_run.names@ FROM job_runs WHERE job_id = $1 ORDER BY created_at, task_id LIMIT $2;

-- name: runs_of_schedule
SELECT @job_run.names@ FROM job_runs WHERE schedule_id = $1 ORDER BY created_at, task_id LIMIT $2;

-- name: runs_of_recurring
SELECT @job_run.names@ FROM job_runs WHERE recurring_job_id = $1 ORDER BY created_at, task_id LIMIT $2;

-- Counts only up to the limit.
-- name: runs_count_job
SELECT (SELECT count(*) FROM (SELECT FROM job_runs
        WHERE job_id = $1 AND NOT waits_slot LIMIT $2) g)::bigint,
    (SELECT count(*) FROM (SELECT FROM job_runs
        WHERE job_id = $1 AND waits_slot LIMIT $2) w)::bigint;

-- name: runs_count_schedule
SELECT (SELECT count(*) FROM (SELECT FROM job_runs
        WHERE schedule_id = $1 AND NOT waits_slot LIMIT $2) g)::bigint,
    (SELECT count(*) FROM (SELECT FROM job_runs
        WHERE schedule_id = $1 AND waits_slot LIMIT $2) w)::bigint;

-- name: runs_waiting
SELECT @job_run.names@ FROM job_runs WHERE job_id = $1 AND waits_slot AND (created_at, task_id)
    > (coalesce($2, '-infinity'::timestamptz),
        coalesce($3, '00000000-0000-0000-0000-000000000000'::uuid))
ORDER BY created_at, task_id LIMIT $4;

-- name: runs_waiting_of_schedule
SELECT @job_run.names@ FROM job_runs WHERE schedule_id = $1 AND waits_slot AND (created_at, task_id)
    > (coalesce($2, '-infinity'::timestamptz),
        coalesce($3, '00000000-0000-0000-0000-000000000000'::uuid))
ORDER BY created_at, task_id LIMIT $4;

-- Jumps from one job to the next in the index: one job may have very many.
-- name: runs_waiting_jobs
WITH RECURSIVE found (job_id) AS (
    (SELECT r.job_id FROM job_runs r WHERE r.waits_slot
        AND r.job_id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid)
        ORDER BY r.job_id LIMIT 1)
    UNION ALL
    SELECT (SELECT r.job_id FROM job_runs r WHERE r.waits_slot AND r.job_id > f.job_id
        ORDER BY r.job_id LIMIT 1)
    FROM found f WHERE f.job_id IS NOT NULL)
SELECT job_id FROM found WHERE job_id IS NOT NULL LIMIT $2;

-- name: waits_insert
INSERT INTO job_waits (@job_wait.names@)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[]) ON CONFLICT DO NOTHING;

-- name: waits_of_job
SELECT @job_wait.names@ FROM job_waits
WHERE depends_on_job_id = $1 AND NOT is_over AND (task_id, dependency_type)
    > (coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid), coalesce($3, ''))
ORDER BY task_id, dependency_type LIMIT $4;

-- name: waits_end
UPDATE job_waits SET is_over = true
WHERE depends_on_job_id = $1 AND NOT is_over AND dependency_type IN ($2::text, $3::text, $4::text)
    AND ($5::uuid IS NULL OR task_id IN (SELECT r.task_id FROM job_runs r WHERE r.job_id = $5));

-- name: waits_end_of_job
UPDATE job_waits SET is_over = true
WHERE task_id IN (SELECT r.task_id FROM job_runs r WHERE r.job_id = $1) AND NOT is_over;

-- name: waits_over
SELECT @job_wait.names@ FROM job_waits
WHERE is_over ORDER BY task_id LIMIT $1;

-- Tasks delayed by the wall clock, the earliest first; marks those with this state.
-- name: delayed_scan
SELECT s.id, r.scheduled_at, r.task, s.state = $4::text FROM (
    SELECT scheduled_at, task FROM due_rows WHERE by_wall
        AND (scheduled_at, task) > (coalesce($1, '-infinity'::timestamptz), $2::bigint)
    ORDER BY scheduled_at, task LIMIT $3) r
JOIN task_states s ON s.task = r.task ORDER BY r.scheduled_at, r.task;

-- name: waits_delete
DELETE FROM job_waits w
USING unnest($1::uuid[], $2::uuid[], $3::text[]) AS v (@job_wait.names@)
WHERE w.task_id = v.task_id AND w.depends_on_job_id = v.depends_on_job_id
    AND w.dependency_type = v.dependency_type;

-- name: waits_drop
DELETE FROM job_waits WHERE task_id = $1;

-- name: delete_runs
WITH waits AS (DELETE FROM job_waits WHERE task_id = ANY ($1::uuid[]))
DELETE FROM job_runs WHERE task_id = ANY ($1::uuid[]);

-- Lists: $1 namespace, $2 name or other text, $3 job, $4 category, $5 active, $6 before
-- this id, $7 limit; then parameters of a single list. Not every list uses all.
-- name: list_categories
SELECT @category@ FROM job_categories c
WHERE ($1 IS NULL OR c.namespace = $1) AND ($2 IS NULL OR c.name = $2)
    AND ($5 IS NULL OR c.is_active = ($5 = 1)) AND ($6 IS NULL OR c.id < $6)
ORDER BY c.id DESC LIMIT $7;

-- name: list_jobs
SELECT j.* FROM (
    SELECT f.id, sum(f.bytes) OVER (ORDER BY f.id DESC) AS bytes
    FROM (SELECT x.id, 1000 + coalesce(octet_length(x.payload), 0)
            + coalesce(octet_length(x.description), 0) AS bytes
        FROM jobs x
        WHERE ($1 IS NULL OR x.namespace = $1) AND ($2 IS NULL OR x.name = $2)
            AND ($3 IS NULL OR x.id = $3)
            AND ($4 IS NULL OR x.category_id = $4)
            AND ($10 IS NULL OR x.category_id = $10 OR x.category_id IS NULL)
            AND ($5 IS NULL OR x.is_active = ($5 = 1)) AND ($6 IS NULL OR x.id < $6)
            AND (NOT $8 OR x.deleted_at IS NULL)
            AND ($11 IS NULL OR x.target_service = $11 OR (x.target_service IS NULL
                AND x.target_method IS NOT NULL AND EXISTS (SELECT 1 FROM job_categories c
                    WHERE (c.id = x.category_id OR (x.category_id IS NULL
                        AND c.namespace = x.namespace AND c.name = 'general'))
                    AND c.configuration ->> 'service' = $11)))
        ORDER BY x.id DESC LIMIT $7) f) z
LEFT JOIN LATERAL (SELECT @job@ FROM jobs j WHERE j.id = z.id AND z.bytes <= $9 OFFSET 0) j ON true
ORDER BY z.id DESC;

-- name: list_schedules
SELECT @schedule@ FROM schedules h
WHERE ($1 IS NULL OR h.namespace = $1) AND ($2 IS NULL OR h.schedule_type = $2)
    AND ($3 IS NULL OR h.job_id = $3)
    AND ($5 IS NULL OR h.is_active = ($5 = 1)) AND ($6 IS NULL OR h.id < $6)
    AND (NOT $8 OR h.error IS NOT NULL) AND ($9 IS NULL OR h.next_fire_at < $9)
ORDER BY h.id DESC LIMIT $7;

-- name: list_recurring
SELECT @recurring@ FROM recurring_jobs r
WHERE ($1 IS NULL OR r.namespace = $1) AND ($2 IS NULL OR r.name = $2)
    AND ($3 IS NULL OR r.template_job_id = $3)
    AND ($5 IS NULL OR r.is_active = ($5 = 1)) AND ($6 IS NULL OR r.id < $6)
    AND (NOT $8 OR r.error IS NOT NULL) AND ($9 IS NULL OR r.next_generation < $9)
ORDER BY r.id DESC LIMIT $7;

-- name: list_job_dependencies
SELECT @job_dependency@ FROM job_dependencies d
WHERE ($1 IS NULL OR d.namespace = $1)
    AND ($3 IS NULL OR d.job_id = $3 OR d.depends_on_job_id = $3)
    AND ($6 IS NULL OR d.id < $6)
ORDER BY d.id DESC LIMIT $7;

-- name: next_fires
SELECT v.n, least(
    (SELECT min(h.next_fire_at) FROM schedules h WHERE h.job_id = v.id AND h.is_active),
    (SELECT min(r.next_generation) FROM recurring_jobs r
        WHERE r.template_job_id = v.id AND r.is_active))
FROM unnest($1::uuid[]) WITH ORDINALITY AS v (id, n);

-- name: job_of_schedule
SELECT job_id FROM schedules WHERE id = $1;

-- name: read_executions
SELECT e.*, s.id, (SELECT p.run_at FROM task_specs p WHERE p.task = s.task),
    (SELECT r.payload FROM task_results r
        WHERE e.status = 'completed' AND e.execution = s.execution AND r.task_id = s.id)
FROM task_states s CROSS JOIN LATERAL (
    SELECT c.execution, c.id, sum(c.bytes) OVER (ORDER BY c.execution DESC) AS bytes
    FROM (SELECT x.execution, x.id, 1000 + coalesce(octet_length(x.result_data), 0)
            + coalesce(octet_length(x.error_data), 0) AS bytes
        FROM execution_rows x WHERE x.task = $1 AND x.execution < $3
        ORDER BY x.execution DESC LIMIT $4) c) z
LEFT JOIN LATERAL (SELECT @execution@ FROM execution_rows e
    WHERE e.execution = z.execution AND e.id = z.id AND z.bytes <= $5 OFFSET 0) e ON true
WHERE s.task = $1 AND s.id = $2 ORDER BY z.execution DESC;

-- The last execution's result is the task's.
-- name: read_execution
SELECT @execution@, s.id, (SELECT p.run_at FROM task_specs p WHERE p.task = s.task),
    CASE WHEN e.status = 'completed' AND e.execution = s.execution THEN
        (SELECT r.payload FROM task_results r WHERE r.task_id = s.id) END
FROM execution_rows e JOIN task_states s ON s.task = e.task
WHERE e.execution = $1 AND e.id = $2;

-- $1 job, $2 schedule, $3 status, $4 created from, $5 created before, $6 namespace (NULL = any);
-- $7 first key, $8 end of the keys, $9 limit, $10 bytes. Ids carry the time, so months without such
-- rows are not read.
-- name: list_executions
SELECT e.*, t.id, t.run_at, t.payload FROM (
    SELECT c.execution, c.id, c.task, sum(c.bytes) OVER (ORDER BY c.execution DESC) AS bytes
    FROM (SELECT x.execution, x.id, x.task, 1000 + coalesce(octet_length(x.result_data), 0)
            + coalesce(octet_length(x.error_data), 0)
            + coalesce((SELECT octet_length(r.payload) FROM task_states s, task_results r
                WHERE x.status = 'completed' AND s.task = x.task AND s.execution = x.execution
                    AND r.task_id = s.id), 0) AS bytes
        FROM execution_rows x
        WHERE ($1 IS NULL OR x.job_id = $1) AND ($2 IS NULL OR x.schedule_id = $2)
            AND ($3 IS NULL OR x.status = $3)
            AND ($4 IS NULL OR (x.created_at >= $4
                AND x.id >= perdura_first_id($4 - interval '1 minute')))
            AND ($5 IS NULL OR (x.created_at < $5
                AND x.id < perdura_first_id($5 + interval '1 minute')))
            AND ($6 IS NULL OR (SELECT l.namespace FROM task_states s, lanes l
                WHERE s.task = x.task AND l.lane = s.lane) = $6)
            AND x.execution >= $7 AND x.execution < $8
        ORDER BY x.execution DESC LIMIT $9) c) z
LEFT JOIN LATERAL (SELECT @execution@ FROM execution_rows e
    WHERE e.execution = z.execution AND e.id = z.id AND z.bytes <= $10 OFFSET 0) e ON true
LEFT JOIN LATERAL (
    SELECT s.id, (SELECT r.payload FROM task_results r WHERE e.status = 'completed'
        AND s.execution = z.execution AND r.task_id = s.id) AS payload,
        (SELECT p.run_at FROM task_specs p WHERE p.task = s.task) AS run_at
    FROM task_states s WHERE s.task = z.task AND z.bytes <= $10 OFFSET 0) t ON true
ORDER BY z.execution DESC;

-- name: execution_logs_of
SELECT g.id, g.execution_id, g.seq, g.log_level, g.message, g.context, g.logged_at, g.chain_hash,
    z.attempt_number, g.removed_hash IS NOT NULL
FROM (
    SELECT f.*, sum(f.bytes) OVER (ORDER BY f.seq) AS total
    FROM (SELECT e.attempt_number, g.seq, 200 + octet_length(g.message)
            + coalesce(octet_length(g.context), 0) AS bytes
        FROM (SELECT x.attempt_number FROM execution_rows x
            WHERE x.execution = $1 AND x.id = $2 OFFSET 0) e
        CROSS JOIN execution_logs g
        WHERE g.execution_id = $2 AND g.seq > $3 AND g.seq <= $10
            AND ($4 = 0 OR CASE g.log_level WHEN 'DEBUG' THEN 0 WHEN 'INFO' THEN 1
                WHEN 'WARN' THEN 2 WHEN 'ERROR' THEN 3 ELSE 4 END >= $4)
            AND ($5 IS NULL OR g.logged_at >= $5) AND ($6 IS NULL OR g.logged_at < $6)
            AND ($7 IS NULL OR (g.removed_hash IS NULL AND strpos(g.message, $7) > 0))
        ORDER BY g.seq LIMIT $8) f) z
LEFT JOIN LATERAL (SELECT * FROM execution_logs x
    WHERE x.execution_id = $2 AND x.seq = z.seq AND z.total <= $9 OFFSET 0) g ON true
ORDER BY z.seq;

-- The same for one execution.
-- name: execution_log_bound
SELECT g.execution_id, g.seq FROM execution_logs g WHERE g.execution_id = $1 AND g.seq > $2
ORDER BY g.seq OFFSET $3 - 1 LIMIT 1;

-- The first key such that it and all later executions were created at or after a time, by bisection
-- in 40 steps.
-- name: execution_key_at
WITH RECURSIVE halves AS (
    SELECT 1::bigint AS low, $2 AS high
    UNION ALL
    SELECT CASE WHEN p.execution IS NULL OR p.created_at >= $1 THEN h.low ELSE p.execution + 1 END,
        CASE WHEN p.execution IS NULL OR p.created_at >= $1 THEN h.middle ELSE h.high END
    FROM (SELECT low, high, low + (high - low) / 2 AS middle FROM halves WHERE low < high) h
    LEFT JOIN LATERAL (SELECT x.execution, x.created_at FROM execution_rows x
        WHERE x.execution >= h.middle ORDER BY x.execution LIMIT 1) p ON true)
SELECT low FROM halves WHERE low >= high;

-- name: job_stats
SELECT count(*)::bigint, count(*) FILTER (WHERE status = 'completed'),
    count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'cancelled'),
    count(*) FILTER (WHERE status = 'timeout'),
    count(*) FILTER (WHERE status IN ('pending', 'running')),
    coalesce(sum(duration_ms), 0)::bigint, count(duration_ms), coalesce(max(duration_ms), 0),
    max(started_at)
FROM execution_rows
WHERE job_id = $1 AND execution >= $2 AND ($3 IS NULL OR (created_at >= $3
    AND id >= perdura_first_id($3 - interval '1 minute')));
