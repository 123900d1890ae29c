-- Smaller blocks of keys: nodes give up what is left of theirs when another took a later one. The
-- last of the larger ones is passed by.
SELECT setval('task_keys', last_value + 1000, false) FROM task_keys WHERE is_called;
SELECT setval('execution_keys', last_value + 1000, false) FROM execution_keys WHERE is_called;
ALTER SEQUENCE task_keys INCREMENT BY 100;
ALTER SEQUENCE execution_keys INCREMENT BY 100;
