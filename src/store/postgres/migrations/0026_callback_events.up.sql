-- When the callback of a task is called: a JSON array of words, as it is written; NULL = at its end.

ALTER TABLE task_specs ADD COLUMN callback_events text;
ALTER TABLE jobs ADD COLUMN callback_events text;
ALTER TABLE schedules ADD COLUMN callback_events text;
