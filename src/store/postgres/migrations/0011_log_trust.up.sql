-- Notes about chains carry a code that only the log key makes, and stay while their lines do: so no
-- node goes on from lines, or removes or signs lines, that somebody put there without the key.

ALTER TABLE log_heads ADD COLUMN task_id uuid;
ALTER TABLE log_heads ADD COLUMN task_type text;
ALTER TABLE log_heads ADD COLUMN logged_at timestamptz; -- of the line at which the chain stands
ALTER TABLE log_heads ADD COLUMN closed text NOT NULL DEFAULT ''; -- how the execution ended
ALTER TABLE log_heads ADD COLUMN mac text NOT NULL DEFAULT '';
CREATE INDEX log_heads_open ON log_heads (execution_id) WHERE closed = '';
