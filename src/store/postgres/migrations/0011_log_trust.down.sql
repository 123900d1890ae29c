DROP INDEX log_heads_open;
DELETE FROM log_heads WHERE lines = 0;
ALTER TABLE log_heads DROP COLUMN mac;
ALTER TABLE log_heads DROP COLUMN closed;
ALTER TABLE log_heads DROP COLUMN logged_at;
ALTER TABLE log_heads DROP COLUMN task_type;
ALTER TABLE log_heads DROP COLUMN task_id;
