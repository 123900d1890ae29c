-- Data lost: how many tasks each API token may have that have not ended.
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
END $$;

DROP TABLE token_counts;
ALTER TABLE api_tokens DROP COLUMN max_tasks;
