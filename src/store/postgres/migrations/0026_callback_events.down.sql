-- Data lost: which moments callbacks of tasks, jobs and schedules tell of; they tell of ends alone

ALTER TABLE schedules DROP COLUMN callback_events;
ALTER TABLE jobs DROP COLUMN callback_events;
ALTER TABLE task_specs DROP COLUMN callback_events;
