-- Categories that were used or changed stay; the next way up leaves them as they are. Open runs are
-- found again by their tasks then; what they wait for could not be, so none may wait for a job or its
-- turn.
DO $$ BEGIN
    IF EXISTS (SELECT FROM job_waits) OR EXISTS (SELECT FROM job_runs WHERE waits_slot) THEN
        RAISE EXCEPTION 'runs wait for other jobs: let them end, or cancel them, first'
            USING ERRCODE = 'PD002';
    END IF;
END $$;

DROP TRIGGER recurring_jobs_by_hand ON recurring_jobs;
DROP TRIGGER schedules_by_hand ON schedules;
DROP TRIGGER jobs_by_hand ON jobs;
DROP TRIGGER job_categories_by_hand ON job_categories;
DROP FUNCTION perdura_touched;

DELETE FROM job_categories c WHERE c.updated_at = c.created_at AND c.name IN ('general',
    'messaging', 'notifications', 'maintenance', 'cleanup', 'reports', 'analytics')
    AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.category_id = c.id);

DROP TABLE job_waits;
DROP TABLE job_runs;
DROP INDEX execution_rows_job;
DROP INDEX recurring_fires_time;
DROP INDEX schedule_fires_time;
DROP INDEX job_dependencies_depends_on;
DROP INDEX recurring_jobs_template;
DROP INDEX recurring_jobs_next;
DROP INDEX jobs_name;
ALTER TABLE recurring_fires RESET (autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_insert_scale_factor);
ALTER TABLE schedule_fires RESET (autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_insert_scale_factor);
ALTER TABLE recurring_jobs RESET (fillfactor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_scale_factor);
ALTER TABLE schedules RESET (fillfactor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_scale_factor);
ALTER TABLE jobs RESET (fillfactor, autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor);
ALTER TABLE recurring_jobs DROP COLUMN error;
ALTER TABLE schedules DROP COLUMN error;
ALTER TABLE jobs DROP COLUMN last_ended_at, DROP COLUMN last_status, DROP COLUMN last_task_id,
    DROP COLUMN max_concurrent, DROP COLUMN queue;
DELETE FROM store_info WHERE name = 'catalog_version';
