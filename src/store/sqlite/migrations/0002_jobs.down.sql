-- Categories that were used or changed stay; the next way up leaves them as they are. Open runs are found
-- again by their tasks then; what they wait for could not be, so none may wait for a job or its turn.

CREATE TABLE no_waiting_runs (
    runs INTEGER CONSTRAINT "runs wait for other jobs: let them end, or cancel them, first"
        CHECK (runs = 0)
);
INSERT INTO no_waiting_runs SELECT (SELECT count(*) FROM job_waits)
    + (SELECT count(*) FROM job_runs WHERE waits_slot = 1);
DROP TABLE no_waiting_runs;

DROP TRIGGER recurring_jobs_by_hand;
DROP TRIGGER schedules_by_hand;
DROP TRIGGER jobs_by_hand;
DROP TRIGGER job_categories_by_hand;

DELETE FROM job_categories WHERE updated_at = created_at AND name IN ('general', 'messaging',
    'notifications', 'maintenance', 'cleanup', 'reports', 'analytics')
    AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.category_id = job_categories.id);

DROP TABLE job_waits;
DROP TABLE job_runs;
DROP INDEX execution_rows_job;
DROP INDEX recurring_fires_time;
DROP INDEX schedule_fires_time;
DROP INDEX job_dependencies_depends_on;
DROP INDEX recurring_jobs_template;
DROP INDEX recurring_jobs_next;
DROP INDEX jobs_name;
ALTER TABLE recurring_jobs DROP COLUMN error;
ALTER TABLE schedules DROP COLUMN error;
ALTER TABLE jobs DROP COLUMN last_ended_at;
ALTER TABLE jobs DROP COLUMN last_status;
ALTER TABLE jobs DROP COLUMN last_task_id;
ALTER TABLE jobs DROP COLUMN max_concurrent;
ALTER TABLE jobs DROP COLUMN queue;
DELETE FROM store_info WHERE name = 'catalog_version';
