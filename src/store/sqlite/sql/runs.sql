-- Open runs of jobs and what they wait for; executions by their jobs.

-- name: run_put
INSERT OR REPLACE INTO job_runs (task_id, job_id, schedule_id, recurring_job_id, waits_slot,
    created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: run_save
UPDATE job_runs SET waits_slot = ?2 WHERE task_id = ?1;

-- name: run_delete
DELETE FROM job_runs WHERE task_id = ?1;

-- name: runs_of_job
SELECT task_id, job_id, schedule_id, recurring_job_id, waits_slot, created_at
FROM job_runs WHERE job_id = ?1 ORDER BY created_at, task_id LIMIT ?2;

-- name: runs_of_schedule
SELECT task_id, job_id, schedule_id, recurring_job_id, waits_slot, created_at
FROM job_runs WHERE schedule_id = ?1 ORDER BY created_at, task_id LIMIT ?2;

-- name: runs_of_recurring
SELECT task_id, job_id, schedule_id, recurring_job_id, waits_slot, created_at
FROM job_runs WHERE recurring_job_id = ?1 ORDER BY created_at, task_id LIMIT ?2;

-- Counted no further than the limit.
-- name: runs_count_job
SELECT (SELECT count(*) FROM (SELECT 1 FROM job_runs WHERE job_id = ?1 AND waits_slot = 0 LIMIT ?2)),
    (SELECT count(*) FROM (SELECT 1 FROM job_runs WHERE job_id = ?1 AND waits_slot = 1 LIMIT ?2));

-- name: runs_count_schedule
SELECT (SELECT count(*) FROM (SELECT 1 FROM job_runs
        WHERE schedule_id = ?1 AND waits_slot = 0 LIMIT ?2)),
    (SELECT count(*) FROM (SELECT 1 FROM job_runs
        WHERE schedule_id = ?1 AND waits_slot = 1 LIMIT ?2));

-- name: runs_waiting
SELECT task_id, job_id, schedule_id, recurring_job_id, waits_slot, created_at
FROM job_runs WHERE job_id = ?1 AND waits_slot = 1
    AND (created_at, task_id) > (?2, coalesce(?3, x''))
ORDER BY created_at, task_id LIMIT ?4;

-- name: runs_waiting_of_schedule
SELECT task_id, job_id, schedule_id, recurring_job_id, waits_slot, created_at
FROM job_runs WHERE schedule_id = ?1 AND waits_slot = 1
    AND (created_at, task_id) > (?2, coalesce(?3, x''))
ORDER BY created_at, task_id LIMIT ?4;

-- From one job to the next by the index: one of them may have very many.
-- name: runs_waiting_jobs
WITH RECURSIVE found (job_id) AS (
    SELECT min(job_id) FROM job_runs WHERE waits_slot = 1 AND job_id > coalesce(?1, x'')
    UNION ALL
    SELECT (SELECT min(r.job_id) FROM job_runs r WHERE r.waits_slot = 1 AND r.job_id > f.job_id)
    FROM found f WHERE f.job_id IS NOT NULL)
SELECT job_id FROM found WHERE job_id IS NOT NULL LIMIT ?2;

-- name: wait_put
INSERT OR REPLACE INTO job_waits (task_id, depends_on_job_id, dependency_type) VALUES (?1, ?2, ?3);

-- name: waits_of_job
SELECT task_id, depends_on_job_id, dependency_type FROM job_waits
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
SELECT task_id, depends_on_job_id, dependency_type FROM job_waits
WHERE is_over = 1 ORDER BY task_id LIMIT ?1;

-- Delayed by the wall clock, from the earliest on: those with this state are marked.
-- name: delayed_scan
SELECT id, scheduled_at, task, state = ?4 FROM task_states
WHERE status = 'delayed' AND by_wall = 1 AND (scheduled_at, task) > (?1, ?2)
ORDER BY scheduled_at, task LIMIT ?3;

-- name: wait_delete
DELETE FROM job_waits WHERE task_id = ?1 AND depends_on_job_id = ?2 AND dependency_type = ?3;

-- name: waits_drop
DELETE FROM job_waits WHERE task_id = ?1;

-- name: next_fire_of_job
SELECT min(at) FROM (
    SELECT min(next_fire_at) AS at FROM schedules WHERE job_id = ?1 AND is_active = 1
    UNION ALL
    SELECT min(next_generation) FROM recurring_jobs WHERE template_job_id = ?1 AND is_active = 1);

-- name: read_execution
SELECT @execution@, s.id, CASE WHEN e.status = 'completed' AND e.execution = s.execution THEN
    (SELECT r.payload FROM task_results r WHERE r.task_id = s.id) END,
    (SELECT o.run_at FROM task_options o WHERE o.task = e.task)
FROM execution_rows e JOIN task_states s ON s.task = e.task
WHERE e.execution = ?1 AND e.id = ?2;

-- name: read_execution_logs
SELECT g.id, g.execution_id, g.seq, g.log_level, g.message, g.context, g.logged_at, g.chain_hash,
    e.attempt_number, g.removed_hash IS NOT NULL
FROM execution_rows e CROSS JOIN execution_logs g ON g.execution_id = e.id
WHERE e.execution = ?1 AND e.id = ?2 AND g.seq > ?3
ORDER BY g.seq;

-- The first execution from a key on, to find by halving those created since a time.
-- name: execution_probe
SELECT execution, created_at FROM execution_rows WHERE execution >= ?1 ORDER BY execution LIMIT 1;

-- name: read_job_stats
SELECT count(*), coalesce(sum(status = 'completed'), 0), coalesce(sum(status = 'failed'), 0),
    coalesce(sum(status = 'cancelled'), 0), coalesce(sum(status = 'timeout'), 0),
    coalesce(sum(status = 'pending' OR status = 'running'), 0), coalesce(sum(duration_ms), 0),
    count(duration_ms), coalesce(max(duration_ms), 0), coalesce(max(started_at), 0)
FROM execution_rows INDEXED BY execution_rows_job
WHERE job_id = ?1 AND job_id IS NOT NULL AND execution >= ?2 AND created_at >= ?3;
