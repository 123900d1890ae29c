-- What runs of jobs need beside their tasks: which of them are open (limits per job, overlap), what
-- they wait for, how the last one ended; and the categories every store begins with. Tasks without a
-- job pay nothing for it.

ALTER TABLE jobs ADD COLUMN queue TEXT;
ALTER TABLE jobs ADD COLUMN max_concurrent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN last_task_id BLOB;
ALTER TABLE jobs ADD COLUMN last_status TEXT;
ALTER TABLE jobs ADD COLUMN last_ended_at INTEGER;
ALTER TABLE schedules ADD COLUMN error TEXT;      -- why it cannot be planned
ALTER TABLE recurring_jobs ADD COLUMN error TEXT;

CREATE INDEX jobs_name ON jobs (namespace, name);
CREATE INDEX recurring_jobs_next ON recurring_jobs (next_generation)
    WHERE is_active = 1 AND next_generation IS NOT NULL;
CREATE INDEX recurring_jobs_template ON recurring_jobs (template_job_id);
CREATE INDEX job_dependencies_depends_on ON job_dependencies (depends_on_job_id);
CREATE INDEX schedule_fires_time ON schedule_fires (fire_at);
CREATE INDEX recurring_fires_time ON recurring_fires (instant);
CREATE INDEX execution_rows_job ON execution_rows (job_id, execution) WHERE job_id IS NOT NULL;

CREATE TABLE job_runs ( -- one row for every task of a job that has not ended
    task_id BLOB PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    job_id BLOB NOT NULL,
    schedule_id BLOB,
    recurring_job_id BLOB,
    waits_slot INTEGER NOT NULL DEFAULT 0, -- too many others are open
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX job_runs_job ON job_runs (job_id, created_at);
CREATE INDEX job_runs_schedule ON job_runs (schedule_id, created_at) WHERE schedule_id IS NOT NULL;
CREATE INDEX job_runs_recurring ON job_runs (recurring_job_id, created_at)
    WHERE recurring_job_id IS NOT NULL;

CREATE TABLE job_waits ( -- a task that waits for a run of another job to end
    task_id BLOB NOT NULL,
    depends_on_job_id BLOB NOT NULL,
    dependency_type TEXT NOT NULL CHECK (dependency_type = 'success' OR
        dependency_type = 'completion' OR dependency_type = 'failure'),
    namespace TEXT NOT NULL DEFAULT 'default',
    PRIMARY KEY (task_id, depends_on_job_id, dependency_type)
) WITHOUT ROWID;
CREATE INDEX job_waits_job ON job_waits (depends_on_job_id, task_id, dependency_type);

INSERT INTO job_runs (task_id, namespace, job_id, schedule_id, recurring_job_id, created_at)
SELECT s.id, l.namespace, o.job_id, o.schedule_id, o.recurring_job_id, p.created_at
FROM task_options o
JOIN task_specs p ON p.task = o.task
JOIN task_states s ON s.task = o.task
JOIN lanes l ON l.lane = s.lane
WHERE o.job_id IS NOT NULL AND s.status NOT IN ('completed', 'partial', 'failed', 'dead_letter',
    'cancelled');

-- Ids of 2025-01-01, so that they come before all others.
INSERT OR IGNORE INTO job_categories (id, name, description, default_priority, default_timeout,
    default_max_retries, configuration, created_at, updated_at)
SELECT f.id, f.name, f.description, f.priority, f.timeout, f.retries, f.configuration, n.now, n.now
FROM (SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) AS now) n
CROSS JOIN (
    SELECT x'01941f297c0070008000000000000001' AS id, 'general' AS name,
        'Tâches sans catégorie' AS description, 'medium' AS priority, 300 AS timeout, 3 AS retries,
        '{"queue": "default"}' AS configuration
    UNION ALL SELECT x'01941f297c0070008000000000000002', 'messaging',
        'Tâches liées aux messages', 'high', 30, 3,
        '{"queue": "high-priority", "service": "messaging-service"}'
    UNION ALL SELECT x'01941f297c0070008000000000000003', 'notifications',
        'Tâches de notifications', 'high', 15, 5,
        '{"queue": "high-priority", "service": "notification-service"}'
    UNION ALL SELECT x'01941f297c0070008000000000000004', 'maintenance',
        'Tâches de maintenance système', 'medium', 600, 2,
        '{"queue": "medium-priority", "allowed_windows": ["02:00-06:00"]}'
    UNION ALL SELECT x'01941f297c0070008000000000000005', 'cleanup',
        'Tâches de nettoyage', 'low', 300, 2, '{"queue": "low-priority", "batch_size": 100}'
    UNION ALL SELECT x'01941f297c0070008000000000000006', 'reports',
        'Génération de rapports', 'medium', 120, 1,
        '{"queue": "medium-priority", "service": "user-service"}'
    UNION ALL SELECT x'01941f297c0070008000000000000007', 'analytics',
        'Tâches d''analytics', 'low', 300, 1,
        '{"queue": "low-priority", "batch_processing": true}') f;

-- Hand-written SQL: updated_at follows what a person may change (D1).
CREATE TRIGGER job_categories_by_hand AFTER UPDATE OF
        name, description, default_priority, default_timeout, default_max_retries,
        configuration, is_active
    ON job_categories WHEN new.updated_at = old.updated_at
BEGIN
    UPDATE job_categories SET updated_at = max(old.updated_at + 1,
        CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) WHERE id = new.id;
END;
CREATE TRIGGER jobs_by_hand AFTER UPDATE OF
        name, description, category_id, task_type, queue, target_service, target_method,
        payload, priority, max_retries, timeout_seconds, max_concurrent, callback_url,
        is_active, created_by, deleted_at
    ON jobs WHEN new.updated_at = old.updated_at
BEGIN
    UPDATE jobs SET updated_at = max(old.updated_at + 1,
        CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) WHERE id = new.id;
END;
CREATE TRIGGER schedules_by_hand AFTER UPDATE OF
        job_id, schedule_type, cron_expression, interval_seconds, scheduled_at, timezone,
        starts_at, ends_at, is_active, misfire, misfire_grace_ms, misfire_cap, overlap, dst,
        jitter_ms, callback_url
    ON schedules WHEN new.updated_at = old.updated_at
BEGIN
    UPDATE schedules SET updated_at = max(old.updated_at + 1,
        CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) WHERE id = new.id;
END;
CREATE TRIGGER recurring_jobs_by_hand AFTER UPDATE OF
        name, pattern_type, pattern_config, template_job_id, is_active
    ON recurring_jobs WHEN new.updated_at = old.updated_at
BEGIN
    UPDATE recurring_jobs SET updated_at = max(old.updated_at + 1,
        CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) WHERE id = new.id;
END;
