DROP INDEX log_heads_open;
CREATE INDEX log_heads_open ON log_heads (execution_id) WHERE closed = '';
