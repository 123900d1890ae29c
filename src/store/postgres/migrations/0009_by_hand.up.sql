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

-- Where a pending task stands in its line; the same as core/order.c, by the rules of its queue.
CREATE FUNCTION perdura_order_key(of_lane bigint, priority bigint, eligible timestamptz)
RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT least(9223372036854775807, greatest(0, CASE WHEN ageing_ms > 0
        THEN 1000 * 4503599627370496 + rank * ageing_ms * 1000
        ELSE (1000 + rank) * 4503599627370496 END
        + least(4503599627370495, greatest(0, trunc(extract(epoch FROM eligible) * 1000000)))))::bigint
    FROM (SELECT coalesce(q.ageing_ms, 0)::numeric AS ageing_ms,
            CASE q.priority_order WHEN 'low_first' THEN priority ELSE -priority END::numeric AS rank
        FROM lanes l LEFT JOIN queues q ON q.namespace = l.namespace AND q.name = l.queue
        WHERE l.lane = of_lane) AS rule
$$;

-- Raises where a change is not one for SQL: nothing is passed over in silence.
CREATE FUNCTION perdura_check_by_hand(was task_states, o tasks, n tasks) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    ended CONSTANT text[] := '{partial,completed,failed,dead_letter,cancelled}';
    can_be_set CONSTANT text[] := '{status,state,progress,priority,retry_count,crash_count,error,'
        'last_error,error_details,scheduled_at,metadata,recovery_metadata,updated_at}';
    others text := (SELECT string_agg(a.key, ', ') FROM jsonb_each(to_jsonb(n)) a
        JOIN jsonb_each(to_jsonb(o)) b USING (key)
        WHERE a.value <> b.value AND a.key <> ALL (can_be_set));
    reason text := CASE
        WHEN others IS NOT NULL THEN others || ' cannot be set here'
        WHEN n.status IS NULL OR n.state IS NULL OR n.progress IS NULL OR n.priority IS NULL
            OR n.retry_count IS NULL OR n.crash_count IS NULL
            THEN 'status, state, progress, priority and counts cannot be null'
        WHEN n.retry_count < 0 OR n.crash_count < 0 THEN 'counts cannot be negative'
        WHEN jsonb_typeof(n.metadata) <> 'object' THEN 'metadata must be an object'
        WHEN n.scheduled_at NOT BETWEEN '1970-01-01 00:00Z' AND '9999-12-31 23:59Z'
            THEN 'scheduled_at must lie between 1970 and 9999'
        WHEN n.status = was.status THEN NULL
        WHEN n.status IN ('claimed', 'running')
            THEN 'it becomes ' || n.status || ' through a worker only'
        WHEN was.held AND n.status <> ALL (ended || '{orphaned}')
            THEN 'its worker has not stopped; cancel it first'
        WHEN n.status = 'blocked' AND was.has_dependencies THEN 'its dependencies are decided'
        WHEN o.job_id IS NOT NULL THEN 'it is a run of a job'
        WHEN (n.status = ANY (ended)) = (was.status = ANY (ended)) THEN NULL
        WHEN was.has_dependents THEN 'other tasks wait for its end'
        WHEN o.parent_id IS NOT NULL THEN 'its parent waits for its end'
        WHEN o.unique_until = 'ended' AND coalesce(o.idempotency_key, o.input_hash) IS NOT NULL
            THEN 'its key is free when it has ended' END;
BEGIN
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION 'task % cannot be changed like this with SQL: %', o.id, reason
            USING ERRCODE = '23514';
    END IF;
END $$;

CREATE FUNCTION perdura_task_by_hand() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    ended CONSTANT text[] := '{partial,completed,failed,dead_letter,cancelled}';
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
    PERFORM perdura_check_by_hand(was, old, new);
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
            became.unlisted := NULL;
            became.lease_until := NULL;
            became.pause_requested := NULL;
        END IF;
        became.completed_at := CASE WHEN new.status = ANY (ended) THEN -- retention counts from it
            coalesce(was.completed_at, became.updated_at) END;
    END IF;
    IF new.status = 'delayed' THEN
        became.scheduled_at := coalesce(new.scheduled_at, clock_timestamp());
    ELSIF new.status = 'pending' AND was.status <> 'pending' THEN -- as a retry: waits for nobody
        became.open_dependencies := NULL;
        became.unsatisfied := NULL;
        became.waits_children := NULL;
        became.outcome_token := NULL;
        became.order_key := perdura_order_key(was.lane, new.priority, became.updated_at);
    ELSIF new.priority <> old.priority THEN
        became.order_key := perdura_order_key(was.lane, new.priority,
            coalesce(new.scheduled_at, old.created_at));
    END IF;
    IF was.held AND new.status <> was.status THEN -- nobody else tells of the end of its attempt
        UPDATE execution_rows e SET
            status = CASE new.status WHEN 'cancelled' THEN 'cancelled' ELSE 'failed' END,
            failed_at = became.updated_at, error_data = '{"reason":"by_hand"}',
            duration_ms = greatest(0, extract(epoch FROM became.updated_at - e.started_at) * 1000)
        WHERE e.task = was.task AND e.execution = was.execution
            AND e.status IN ('pending', 'running');
    END IF;
    IF was.status = ANY (ended) AND became.status <> ALL (ended) THEN
        DELETE FROM task_results r WHERE r.task_id = old.id;
    END IF;
    UPDATE task_states s SET rev = became.rev, version = became.version,
        updated_at = became.updated_at, status = became.status, state = became.state,
        previous_status = became.previous_status, progress = became.progress,
        priority = became.priority, retry_count = became.retry_count,
        crash_count = became.crash_count, error = became.error, last_error = became.last_error,
        scheduled_at = became.scheduled_at, metadata = became.metadata,
        error_details = became.error_details, recovery_metadata = became.recovery_metadata,
        parked = became.parked, held = became.held, unlisted = became.unlisted,
        lease_until = became.lease_until, pause_requested = became.pause_requested,
        completed_at = became.completed_at, open_dependencies = became.open_dependencies,
        unsatisfied = became.unsatisfied, waits_children = became.waits_children,
        outcome_token = became.outcome_token, order_key = became.order_key
    WHERE s.task = was.task;
    IF became.status <> was.status OR became.scheduled_at IS DISTINCT FROM was.scheduled_at
        OR became.order_key <> was.order_key THEN
        PERFORM perdura_place(was, old.limit_key, -1);
        PERFORM perdura_place(became, old.limit_key, 1);
    END IF;
    new.version := became.version; -- for RETURNING: what it is now
    new.updated_at := became.updated_at;
    new.previous_status := became.previous_status;
    new.scheduled_at := became.scheduled_at;
    new.completed_at := became.completed_at;
    new.order_key := became.order_key;
    new.metadata := coalesce(new.metadata, '{}');
    IF became.held IS NULL THEN
        new.lease_until := NULL;
        new.pause_requested := coalesce(became.pause_requested, false);
    END IF;
    RETURN new;
END $$;
-- Rights on the view are enough; nobody hangs the function on a table of his own.
REVOKE EXECUTE ON FUNCTION perdura_task_by_hand FROM PUBLIC;

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
