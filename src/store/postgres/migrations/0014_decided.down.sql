ALTER TABLE task_dependencies DROP COLUMN is_decided;
