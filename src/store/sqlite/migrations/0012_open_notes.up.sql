-- A note is open when nothing says how its execution ended, whatever class of value that nothing is.

DROP INDEX log_heads_open;
CREATE INDEX log_heads_open ON log_heads (execution_id) WHERE length(closed) = 0;
