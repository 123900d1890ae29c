SELECT setval('task_keys', last_value + 100, false) FROM task_keys WHERE is_called;
SELECT setval('execution_keys', last_value + 100, false) FROM execution_keys WHERE is_called;
ALTER SEQUENCE task_keys INCREMENT BY 1000;
ALTER SEQUENCE execution_keys INCREMENT BY 1000;
