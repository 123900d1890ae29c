DROP TRIGGER job_categories_given ON job_categories;
DROP TRIGGER jobs_payload ON jobs;
DROP TRIGGER schedules_new ON schedules;
DROP TRIGGER schedules_times ON schedules;
DROP TRIGGER recurring_jobs_new ON recurring_jobs;
DROP TRIGGER recurring_jobs_times ON recurring_jobs;
DROP TRIGGER job_categories_tell ON job_categories;
DROP TRIGGER jobs_tell ON jobs;
DROP TRIGGER schedules_tell ON schedules;
DROP TRIGGER recurring_jobs_tell ON recurring_jobs;
DROP TRIGGER job_dependencies_tell ON job_dependencies;
DROP FUNCTION perdura_catalog_by_hand(), perdura_category_by_hand(), perdura_job_by_hand(), perdura_plan_by_hand(),
    perdura_of_node();
ALTER TABLE job_categories ALTER id DROP DEFAULT, ALTER created_at DROP DEFAULT, ALTER updated_at DROP DEFAULT,
    DROP CONSTRAINT chk_category_priority;
ALTER TABLE jobs ALTER id DROP DEFAULT, ALTER payload DROP DEFAULT, ALTER created_at DROP DEFAULT, ALTER updated_at DROP DEFAULT,
    DROP CONSTRAINT chk_job_priority;
ALTER TABLE schedules ALTER id DROP DEFAULT, ALTER created_at DROP DEFAULT, ALTER updated_at DROP DEFAULT,
    DROP CONSTRAINT chk_schedule_config;
ALTER TABLE recurring_jobs ALTER id DROP DEFAULT, ALTER created_at DROP DEFAULT, ALTER updated_at DROP DEFAULT;
ALTER TABLE job_dependencies ALTER id DROP DEFAULT, ALTER created_at DROP DEFAULT;
DELETE FROM store_info WHERE name = 'catalog_by_hand';
