-- When the callback of a task is called: a JSON array of words, as it is written; NULL = at its end.

ALTER TABLE task_options ADD COLUMN callback_events TEXT;
ALTER TABLE jobs ADD COLUMN callback_events TEXT;
ALTER TABLE schedules ADD COLUMN callback_events TEXT;
