-- Tokens with a limit of tasks that have not ended, and how many there are of each.
ALTER TABLE api_tokens ADD COLUMN max_tasks bigint;

-- The sum of its rows per token, as in key_counts. Only tokens with a limit have rows.
CREATE TABLE token_counts (
    token text NOT NULL,
    tasks bigint NOT NULL
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
CREATE INDEX token_counts_token ON token_counts (token);
ALTER TABLE token_counts ENABLE ROW LEVEL SECURITY;
CREATE POLICY perdura_others ON token_counts USING (NOT (SELECT perdura_outside(current_user)));

-- As in migration 0023, and the count of its token follows.
CREATE OR REPLACE FUNCTION perdura_place(s task_states, limited text, direction bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    limit_name text := (SELECT perdura_queue_name(l.namespace, l.queue) FROM lanes l
        WHERE l.lane = s.lane) || chr(31) || coalesce(limited, '');
BEGIN
    IF direction < 0 THEN
        DELETE FROM ready_rows r
            WHERE r.lane = s.lane AND r.order_key = s.order_key AND r.task = s.task;
        DELETE FROM parked_rows r
            WHERE r.parked = limit_name AND r.order_key = s.order_key AND r.task = s.task;
        DELETE FROM due_rows r WHERE r.by_wall = coalesce(s.by_wall, false)
            AND r.scheduled_at = coalesce(s.scheduled_at, to_timestamp(0)) AND r.task = s.task;
        DELETE FROM held_rows r WHERE r.worker_id = coalesce(s.worker_id, '') AND r.task = s.task;
        DELETE FROM settled_rows r WHERE r.status = s.status AND r.task = s.task;
    ELSIF s.status = 'pending' AND s.parked THEN
        INSERT INTO parked_rows (parked, order_key, task)
            VALUES (limit_name, s.order_key, s.task);
    ELSIF s.status = 'pending' THEN
        INSERT INTO ready_rows (lane, order_key, task) VALUES (s.lane, s.order_key, s.task);
    ELSIF s.status = 'delayed' THEN
        INSERT INTO due_rows (by_wall, scheduled_at, task)
            VALUES (coalesce(s.by_wall, false), s.scheduled_at, s.task);
    ELSIF s.status NOT IN ('claimed', 'running') THEN
        INSERT INTO settled_rows (status, task) VALUES (s.status, s.task);
    END IF;
    IF s.held AND direction > 0 THEN
        INSERT INTO held_rows (worker_id, task) VALUES (coalesce(s.worker_id, ''), s.task);
    END IF;
    INSERT INTO lane_counts (lane, status, tasks)
        SELECT s.lane, c.status, direction
        FROM (VALUES (s.status::text, true), ('parked', s.parked), ('held', s.held))
            AS c (status, counts)
        WHERE c.counts;
    IF s.held AND limited IS NOT NULL THEN
        INSERT INTO key_counts (name, held) VALUES (limit_name, direction);
    END IF;
    IF s.status <> ALL ('{partial,completed,failed,dead_letter,cancelled}') THEN
        INSERT INTO token_counts (token, tasks)
            SELECT DISTINCT c.token, direction FROM token_counts c
            JOIN task_specs p ON p.created_by_principal = 'token:' || c.token
            WHERE p.task = s.task;
    END IF;
END $$;
