-- Notes about chains carry a code that only the log key makes, and stay while their lines do: so no
-- server goes on from lines, or removes or signs lines, that somebody put there without the key.

ALTER TABLE log_heads ADD COLUMN task_id BLOB;
ALTER TABLE log_heads ADD COLUMN task_type TEXT;
ALTER TABLE log_heads ADD COLUMN logged_at INTEGER; -- of the line at which the chain stands
ALTER TABLE log_heads ADD COLUMN closed TEXT NOT NULL DEFAULT ''; -- how the execution ended
ALTER TABLE log_heads ADD COLUMN mac TEXT NOT NULL DEFAULT '';
CREATE INDEX log_heads_open ON log_heads (execution_id) WHERE closed = '';
