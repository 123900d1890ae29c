-- What runs of jobs need beside their tasks: which of them are open (limits per job, overlap), what
-- they wait for, how the last one ended; and the categories every store begins with. Tasks without a
-- job pay nothing for it.

ALTER TABLE jobs ADD COLUMN queue text, ADD COLUMN max_concurrent bigint NOT NULL DEFAULT 0,
    ADD COLUMN last_task_id uuid, ADD COLUMN last_status text, ADD COLUMN last_ended_at timestamptz;
ALTER TABLE schedules ADD COLUMN error text;      -- why it cannot be planned
ALTER TABLE recurring_jobs ADD COLUMN error text;
-- Written at every end of a run, and at every fire.
ALTER TABLE jobs SET (fillfactor = 70, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_scale_factor = 0.1);
ALTER TABLE schedules SET (fillfactor = 70, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_scale_factor = 0.1);
ALTER TABLE recurring_jobs SET (fillfactor = 70, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_scale_factor = 0.1);
ALTER TABLE schedule_fires SET (autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.2);
ALTER TABLE recurring_fires SET (autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.2);

CREATE INDEX jobs_name ON jobs (namespace, name);
CREATE INDEX recurring_jobs_next ON recurring_jobs (next_generation)
    WHERE is_active AND next_generation IS NOT NULL;
CREATE INDEX recurring_jobs_template ON recurring_jobs (template_job_id);
CREATE INDEX job_dependencies_depends_on ON job_dependencies (depends_on_job_id);
CREATE INDEX schedule_fires_time ON schedule_fires (fire_at);
CREATE INDEX recurring_fires_time ON recurring_fires (instant);
CREATE INDEX execution_rows_job ON execution_rows (job_id, execution) WHERE job_id IS NOT NULL;

CREATE TABLE job_runs ( -- one row for every task of a job that has not ended
    task_id uuid PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    job_id uuid NOT NULL,
    schedule_id uuid,
    recurring_job_id uuid,
    waits_slot boolean NOT NULL DEFAULT false, -- too many others are open
    created_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.1);
CREATE INDEX job_runs_job ON job_runs (job_id, created_at, task_id);
CREATE INDEX job_runs_schedule ON job_runs (schedule_id, created_at, task_id)
    WHERE schedule_id IS NOT NULL;
CREATE INDEX job_runs_recurring ON job_runs (recurring_job_id, created_at, task_id)
    WHERE recurring_job_id IS NOT NULL;

CREATE TABLE job_waits ( -- a task that waits for a run of another job to end
    task_id uuid NOT NULL,
    depends_on_job_id uuid NOT NULL,
    dependency_type text COLLATE "C" NOT NULL
        CHECK (dependency_type IN ('success', 'completion', 'failure')),
    namespace text NOT NULL DEFAULT 'default',
    PRIMARY KEY (task_id, depends_on_job_id, dependency_type)
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.1);
CREATE INDEX job_waits_job ON job_waits (depends_on_job_id, task_id, dependency_type);

INSERT INTO job_runs (task_id, namespace, job_id, schedule_id, recurring_job_id, created_at)
SELECT s.id, l.namespace, p.job_id, p.schedule_id, p.recurring_job_id, p.created_at
FROM task_specs p
JOIN task_states s ON s.task = p.task
JOIN lanes l ON l.lane = s.lane
WHERE p.job_id IS NOT NULL AND s.status NOT IN ('completed', 'partial', 'failed', 'dead_letter',
    'cancelled');

-- Ids of 2025-01-01, so that they come before all others.
INSERT INTO job_categories (id, name, description, default_priority, default_timeout,
    default_max_retries, configuration, created_at, updated_at)
SELECT f.id::uuid, f.name, f.description, f.priority, f.timeout, f.retries, f.configuration::jsonb,
    now(), now()
FROM (VALUES
    ('01941f29-7c00-7000-8000-000000000001', 'general', 'Tâches sans catégorie', 'medium', 300, 3,
        '{"queue": "default"}'),
    ('01941f29-7c00-7000-8000-000000000002', 'messaging', 'Tâches liées aux messages', 'high',
        30, 3, '{"queue": "high-priority", "service": "messaging-service"}'),
    ('01941f29-7c00-7000-8000-000000000003', 'notifications', 'Tâches de notifications', 'high',
        15, 5, '{"queue": "high-priority", "service": "notification-service"}'),
    ('01941f29-7c00-7000-8000-000000000004', 'maintenance', 'Tâches de maintenance système',
        'medium', 600, 2, '{"queue": "medium-priority", "allowed_windows": ["02:00-06:00"]}'),
    ('01941f29-7c00-7000-8000-000000000005', 'cleanup', 'Tâches de nettoyage', 'low', 300, 2,
        '{"queue": "low-priority", "batch_size": 100}'),
    ('01941f29-7c00-7000-8000-000000000006', 'reports', 'Génération de rapports', 'medium', 120, 1,
        '{"queue": "medium-priority", "service": "user-service"}'),
    ('01941f29-7c00-7000-8000-000000000007', 'analytics', 'Tâches d''analytics', 'low', 300, 1,
        '{"queue": "low-priority", "batch_processing": true}'))
    AS f (id, name, description, priority, timeout, retries, configuration)
ON CONFLICT DO NOTHING;

-- Hand-written SQL: updated_at follows what a person may change (D1).
CREATE FUNCTION perdura_touched() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    new.updated_at := greatest(old.updated_at + interval '1 microsecond', clock_timestamp());
    RETURN new;
END $$;
CREATE TRIGGER job_categories_by_hand BEFORE UPDATE OF
        name, description, default_priority, default_timeout, default_max_retries,
        configuration, is_active
    ON job_categories FOR EACH ROW WHEN (new.updated_at = old.updated_at) EXECUTE FUNCTION perdura_touched();
CREATE TRIGGER jobs_by_hand BEFORE UPDATE OF
        name, description, category_id, task_type, queue, target_service, target_method,
        payload, priority, max_retries, timeout_seconds, max_concurrent, callback_url,
        is_active, created_by, deleted_at
    ON jobs FOR EACH ROW WHEN (new.updated_at = old.updated_at) EXECUTE FUNCTION perdura_touched();
CREATE TRIGGER schedules_by_hand BEFORE UPDATE OF
        job_id, schedule_type, cron_expression, interval_seconds, scheduled_at, timezone,
        starts_at, ends_at, is_active, misfire, misfire_grace_ms, misfire_cap, overlap, dst,
        jitter_ms, callback_url
    ON schedules FOR EACH ROW WHEN (new.updated_at = old.updated_at) EXECUTE FUNCTION perdura_touched();
CREATE TRIGGER recurring_jobs_by_hand BEFORE UPDATE OF
        name, pattern_type, pattern_config, template_job_id, is_active
    ON recurring_jobs FOR EACH ROW WHEN (new.updated_at = old.updated_at) EXECUTE FUNCTION perdura_touched();
