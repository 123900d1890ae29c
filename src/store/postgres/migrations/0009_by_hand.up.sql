-- Hand-written SQL on the view tasks, as on SQLite (E6): updated_at and version follow, and with
-- them what tells how a task waits and how many there are. Nodes may run meanwhile: rev makes them
-- read again what they knew. What only a worker or the spec says cannot be set here.

-- What the row of a task waits for goes (direction -1) or comes (1), with its counts.
CREATE FUNCTION perdura_place(s task_states, limited text, direction bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    limit_name text := (SELECT l.queue FROM lanes l WHERE l.lane = s.lane) || chr(31)
        || coalesce(limited, '');
BEGIN
    IF direction < 0 THEN
        DELETE FROM ready_rows r
            WHERE r.lane = s.lane AND r.order_key = s.order_key AND r.task = s.task;
        DELETE FROM parked_rows r
            WHERE r.parked = limit_name AND r.order_key = s.order_key AND r.task = s.task;
        DELETE FROM due_rows r WHERE r.by_wall = coalesce(s.by_wall, false)
            AND r.scheduled_at = s.scheduled_at AND r.task = s.task;
        DELETE FROM held_rows r WHERE r.worker_id = s.worker_id AND r.task = s.task;
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
        INSERT INTO held_rows (worker_id, task) VALUES (s.worker_id, s.task);
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

CREATE FUNCTION perdura_task_by_hand() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    was task_states;
    became task_states;
BEGIN
    SELECT * INTO was FROM task_states s WHERE s.task = perdura_key(old.id) FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF coalesce(was.version, 0) <> old.version THEN
        RAISE EXCEPTION 'task % was changed by somebody else just now; try again', old.id
            USING ERRCODE = '40001';
    END IF;
    IF new.status <> was.status AND new.status IN ('claimed', 'running') THEN
        RAISE EXCEPTION 'task % can become % through a worker only', old.id, new.status
            USING ERRCODE = '23514';
    END IF;
    became := was;
    became.rev := was.rev + 1;
    became.version := old.version + 1;
    became.updated_at := greatest(was.updated_at + interval '1 microsecond', clock_timestamp());
    became.status := new.status;
    became.state := new.state;
    became.progress := nullif(new.progress, 0);
    became.priority := nullif(new.priority, 0);
    became.retry_count := nullif(new.retry_count, 0);
    became.crash_count := nullif(new.crash_count, 0);
    became.error := new.error;
    became.last_error := new.last_error;
    became.scheduled_at := new.scheduled_at;
    IF new.metadata IS DISTINCT FROM old.metadata THEN -- otherwise byte for byte as it was
        became.metadata := new.metadata::text;
    END IF;
    IF new.error_details IS DISTINCT FROM old.error_details THEN
        became.error_details := new.error_details::text;
    END IF;
    IF new.recovery_metadata IS DISTINCT FROM old.recovery_metadata THEN
        became.recovery_metadata := new.recovery_metadata::text;
    END IF;
    IF new.status <> was.status THEN
        became.previous_status := was.status;
        became.parked := NULL;
        IF new.status <> 'cancelled' THEN -- that one is held until its handler has stopped
            became.held := NULL;
        END IF;
    END IF;
    IF new.status = 'delayed' THEN
        became.scheduled_at := coalesce(new.scheduled_at, clock_timestamp());
    END IF;
    UPDATE task_states s SET rev = became.rev, version = became.version,
        updated_at = became.updated_at, status = became.status, state = became.state,
        previous_status = became.previous_status, progress = became.progress,
        priority = became.priority, retry_count = became.retry_count,
        crash_count = became.crash_count, error = became.error, last_error = became.last_error,
        scheduled_at = became.scheduled_at, metadata = became.metadata,
        error_details = became.error_details, recovery_metadata = became.recovery_metadata,
        parked = became.parked, held = became.held
    WHERE s.task = was.task;
    IF became.status <> was.status OR became.scheduled_at IS DISTINCT FROM was.scheduled_at THEN
        PERFORM perdura_place(was, old.limit_key, -1);
        PERFORM perdura_place(became, old.limit_key, 1);
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER tasks_update INSTEAD OF UPDATE ON tasks
    FOR EACH ROW EXECUTE FUNCTION perdura_task_by_hand();

-- Whoever calls these finds our tables, also with another search_path.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION perdura_task_by_hand SET search_path = %I, pg_temp',
        current_schema());
    EXECUTE format('ALTER FUNCTION discover_recoverable_tasks SET search_path = %I, pg_temp',
        current_schema());
    EXECUTE format('ALTER FUNCTION validate_task_recovery SET search_path = %I, pg_temp',
        current_schema());
END $$;
