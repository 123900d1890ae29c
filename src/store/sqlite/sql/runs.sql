-- Open runs of jobs and what they wait for; executions by their jobs.

-- name: runs_insert
INSERT OR REPLACE INTO job_runs (@job_run.names@) VALUES (@job_run.values@);

-- name: run_save
UPDATE job_runs SET waits_slot = ?2 WHERE task_id = ?1;

-- name: run_delete
DELETE FROM job_runs WHERE task_id = ?1;

-- name: runs_of_job
SELECT @job_run.names@ FROM job_runs WHERE job_id = ?1 ORDER BY created_at, task_id LIMIT ?2;

-- name: runs_of_schedule
SELECT @job_run.names@ FROM job_runs WHERE schedule_id = ?1 ORDER BY created_at, task_id LIMIT ?2;

-- name: runs_of_recurring
SELECT @job_run.names@ FROM job_runs WHERE recurring_job_id = ?1 ORDER BY created_at, task_id LIMIT ?2;

-- Counts only up to the limit.
-- name: runs_count_job
SELECT (SELECT count(*) FROM (SELECT 1 FROM job_runs WHERE job_id = ?1 AND waits_slot = 0 LIMIT ?2)),
    (SELECT count(*) FROM (SELECT 1 FROM job_runs WHERE job_id = ?1 AND waits_slot = 1 LIMIT ?2));

-- name: runs_count_schedule
SELECT (SELECT count(*) FROM (SELECT 1 FROM job_runs
        WHERE schedule_id = ?1 AND waits_slot = 0 LIMIT ?2)),
    (SELECT count(*) FROM (SELECT 1 FROM job_runs
        WHERE schedule_id = ?1 AND waits_slot = 1 LIMIT ?2));

-- name: runs_waiting
SELECT @job_run.names@ FROM job_runs WHERE job_id = ?1 AND waits_slot = 1
    AND (created_at, task_id) > (coalesce(?2, 0), coalesce(?3, x''))
ORDER BY created_at, task_id LIMIT ?4;

-- name: runs_waiting_of_schedule
SELECT @job_run.names@ FROM job_runs WHERE schedule_id = ?1 AND waits_slot = 1
    AND (created_at, task_id) > (coalesce(?2, 0), coalesce(?3, x''))
ORDER BY created_at, task_id LIMIT ?4;

-- Jumps from one job to the next in the index: one job may have very many.
-- name: runs_waiting_jobs
WITH RECURSIVE found (job_id) AS (
    SELECT min(job_id) FROM job_runs WHERE waits_slot = 1 AND job_id > coalesce(?1, x'')
    UNION ALL
    SELECT (SELECT min(r.job_id) FROM job_runs r WHERE r.waits_slot = 1 AND r.job_id > f.job_id)
    FROM found f WHERE f.job_id IS NOT NULL)
SELECT job_id FROM found WHERE job_id IS NOT NULL LIMIT ?2;

-- name: waits_insert
INSERT OR REPLACE INTO job_waits (@job_wait.names@) VALUES (@job_wait.values@);

-- name: waits_of_job
SELECT @job_wait.names@ FROM job_waits
WHERE depends_on_job_id = ?1 AND is_over = 0
    AND (task_id, dependency_type) > (coalesce(?2, x''), coalesce(?3, ''))
ORDER BY task_id, dependency_type LIMIT ?4;

-- name: waits_end
UPDATE job_waits SET is_over = 1
WHERE depends_on_job_id = ?1 AND is_over = 0
    AND (dependency_type = ?2 OR dependency_type = ?3 OR dependency_type = ?4)
    AND (?5 IS NULL OR task_id IN (SELECT task_id FROM job_runs WHERE job_id = ?5));

-- name: waits_end_of_job
UPDATE job_waits SET is_over = 1
WHERE task_id IN (SELECT task_id FROM job_runs WHERE job_id = ?1) AND is_over = 0;

-- name: waits_over
SELECT @job_wait.names@ FROM job_waits
WHERE is_over = 1 ORDER BY task_id LIMIT ?1;

-- Tasks delayed by the wall clock, the earliest first; marks those with this state.
-- name: delayed_scan
SELECT id, scheduled_at, task, state = ?4 FROM task_states
WHERE status = 'delayed' AND by_wall = 1 AND (scheduled_at, task)
    > (coalesce(?1, -9223372036854775808), ?2)
ORDER BY scheduled_at, task LIMIT ?3;

-- name: waits_delete
DELETE FROM job_waits WHERE task_id = ?1 AND depends_on_job_id = ?2 AND dependency_type = ?3;

-- name: waits_drop
DELETE FROM job_waits WHERE task_id = ?1;

-- name: next_fires
SELECT 1, min(at) FROM (
    SELECT min(next_fire_at) AS at FROM schedules WHERE job_id = ?1 AND is_active = 1
    UNION ALL
    SELECT min(next_generation) FROM recurring_jobs WHERE template_job_id = ?1 AND is_active = 1);

-- Lists: ?1 namespace, ?2 name or other text, ?3 job, ?4 category, ?5 active, ?6 before this id,
-- ?7 limit; then parameters of a single list.
-- name: list_categories
SELECT @category@ FROM job_categories c WHERE true
    [1: AND c.namespace = ?1]
    [2: AND c.name = ?2]
    [5: AND c.is_active = ?5]
    [6: AND c.id < ?6]
ORDER BY c.id DESC LIMIT ?7;

-- name: list_jobs
SELECT @job@ FROM jobs j WHERE true
    [8: AND j.deleted_at IS NULL]
    [1: AND j.namespace = ?1]
    [2: AND j.name = ?2]
    [3: AND j.id = ?3]
    [4: AND j.category_id = ?4]
    [10: AND (j.category_id = ?10 OR j.category_id IS NULL)]
    [11: AND (j.target_service = ?11 OR (j.target_service IS NULL AND j.target_method IS NOT NULL
        AND EXISTS (SELECT 1 FROM job_categories c
            WHERE (c.id = j.category_id OR (j.category_id IS NULL AND c.namespace = j.namespace
                AND c.name = 'general'))
            AND json_extract(c.configuration, '$.service') = ?11)))]
    [5: AND j.is_active = ?5]
    [6: AND j.id < ?6]
ORDER BY j.id DESC LIMIT ?7;

-- name: list_schedules
SELECT @schedule@ FROM schedules h WHERE true
    [1: AND h.namespace = ?1]
    [3: AND h.job_id = ?3]
    [5: AND h.is_active = ?5]
    [2: AND h.schedule_type = ?2]
    [8: AND h.error IS NOT NULL]
    [9: AND h.next_fire_at < ?9]
    [6: AND h.id < ?6]
ORDER BY h.id DESC LIMIT ?7;

-- name: list_recurring
SELECT @recurring@ FROM recurring_jobs r WHERE true
    [1: AND r.namespace = ?1]
    [2: AND r.name = ?2]
    [3: AND r.template_job_id = ?3]
    [5: AND r.is_active = ?5]
    [8: AND r.error IS NOT NULL]
    [9: AND r.next_generation < ?9]
    [6: AND r.id < ?6]
ORDER BY r.id DESC LIMIT ?7;

-- name: list_job_dependencies
SELECT @job_dependency@ FROM job_dependencies d WHERE true
    [1: AND d.namespace = ?1]
    [3: AND (d.job_id = ?3 OR d.depends_on_job_id = ?3)]
    [6: AND d.id < ?6]
ORDER BY d.id DESC LIMIT ?7;

-- The last execution's result is the task's.
-- name: read_executions
SELECT @execution@, s.id, (SELECT o.run_at FROM task_options o WHERE o.task = e.task),
    CASE WHEN e.status = 'completed' AND e.execution = s.execution THEN
        (SELECT r.payload FROM task_results r WHERE r.task_id = s.id) END
FROM execution_rows e JOIN task_states s ON s.task = e.task
WHERE e.task = ?1 AND s.id = ?2 AND e.execution < ?3 ORDER BY e.execution DESC LIMIT ?4;

-- ?1 job, ?2 schedule, ?3 status, ?4 created from, ?5 created before, ?6 namespace; ?7 first key,
-- ?8 end of the keys, ?9 limit.
-- name: list_executions
SELECT @execution@, s.id, (SELECT o.run_at FROM task_options o WHERE o.task = e.task),
    CASE WHEN e.status = 'completed' AND e.execution = s.execution THEN
        (SELECT r.payload FROM task_results r WHERE r.task_id = s.id) END
FROM execution_rows e [1: INDEXED BY execution_rows_job][!1: NOT INDEXED]
CROSS JOIN task_states s ON s.task = e.task CROSS JOIN lanes l ON l.lane = s.lane
WHERE e.execution >= ?7 AND e.execution < ?8
    [1: AND e.job_id = ?1]
    [2: AND e.schedule_id = ?2]
    [6: AND l.namespace = ?6]
    [3: AND e.status = ?3]
    [4: AND e.created_at >= ?4]
    [5: AND e.created_at < ?5]
ORDER BY e.execution DESC LIMIT ?9;

-- name: job_of_schedule
SELECT job_id FROM schedules WHERE id = ?1;

-- name: read_execution
SELECT @execution@, s.id, (SELECT o.run_at FROM task_options o WHERE o.task = e.task),
    CASE WHEN e.status = 'completed' AND e.execution = s.execution THEN
        (SELECT r.payload FROM task_results r WHERE r.task_id = s.id) END
FROM execution_rows e JOIN task_states s ON s.task = e.task
WHERE e.execution = ?1 AND e.id = ?2;

-- name: read_execution_logs
SELECT g.id, g.execution_id, g.seq, g.log_level, g.message, g.context, g.logged_at, g.chain_hash,
    e.attempt_number, g.removed_hash IS NOT NULL
FROM execution_rows e CROSS JOIN execution_logs g ON g.execution_id = e.id
WHERE e.execution = ?1 AND e.id = ?2 AND g.seq > ?3
ORDER BY g.seq;

-- The first key such that it and all later executions were created at or after a time, by bisection
-- in 40 steps.
-- name: execution_key_at
WITH RECURSIVE halves (low, high) AS (
    SELECT 1, ?2
    UNION ALL
    SELECT CASE WHEN e.created_at < ?1 THEN e.execution + 1 ELSE h.low END,
        CASE WHEN e.created_at < ?1 THEN h.high ELSE h.low + (h.high - h.low) / 2 END
    FROM halves h LEFT JOIN execution_rows e ON e.execution = (
        SELECT x.execution FROM execution_rows x
        WHERE x.execution >= h.low + (h.high - h.low) / 2 ORDER BY x.execution LIMIT 1)
    WHERE h.low < h.high)
SELECT low FROM halves WHERE low >= high;

-- name: job_stats
SELECT count(*), coalesce(sum(status = 'completed'), 0), coalesce(sum(status = 'failed'), 0),
    coalesce(sum(status = 'cancelled'), 0), coalesce(sum(status = 'timeout'), 0),
    coalesce(sum(status = 'pending' OR status = 'running'), 0), coalesce(sum(duration_ms), 0),
    count(duration_ms), coalesce(max(duration_ms), 0), coalesce(max(started_at), 0)
FROM execution_rows INDEXED BY execution_rows_job
WHERE job_id = ?1 AND job_id IS NOT NULL AND execution >= ?2 AND created_at >= coalesce(?3, 0);
