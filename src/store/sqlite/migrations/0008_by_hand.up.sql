-- Hand-written SQL on the view tasks says what it does not do, and does the rest as PostgreSQL's
-- migration of the same name: what only a worker, the spec or others decide cannot be set, a task
-- moves in its line with its priority, and an end has its time, from which retention counts.

DROP TRIGGER tasks_update;

CREATE TRIGGER tasks_not_by_hand INSTEAD OF UPDATE OF id, namespace, external_id, type, name, queue,
        payload, data, tags, user_id, context_key, correlation_id, job_id, schedule_id,
        recurring_job_id, category_id, workflow_id, parent_id, previous_status, version, created_at,
        order_key, idempotency_key, input_hash, unique_until, attempts, continuations, max_retries,
        max_crashes, max_continuations, retry_policy, retry_delay_ms, max_retry_delay_ms, timeout_ms,
        next_retry_at, worker_id, lease_token, lease_until, last_heartbeat, claimed_at, started_at,
        pause_requested, limit_key, checkpoint_data, resumed_from, recovery_priority,
        auto_recovery_enabled, stall_after_ms, completed_at, callback_url, on_unsatisfied,
        traceparent, tracestate ON tasks
BEGIN
    SELECT RAISE(ABORT, 'of a task only status, state, progress, priority, scheduled_at, metadata, error, last_error, error_details, recovery_metadata, retry_count and crash_count can be set with SQL');
END;

CREATE TRIGGER tasks_update INSTEAD OF UPDATE ON tasks
BEGIN
    SELECT RAISE(ABORT, 'counts of a task cannot be null or negative')
        WHERE (new.retry_count >= 0 AND new.crash_count >= 0) IS NOT 1;
    SELECT RAISE(ABORT, 'metadata of a task must be an object')
        WHERE json_type(CASE WHEN json_valid(coalesce(new.metadata, '{}'))
            THEN coalesce(new.metadata, '{}') ELSE '0' END) <> 'object';
    SELECT RAISE(ABORT, 'error_details and recovery_metadata of a task must be JSON')
        WHERE NOT json_valid(coalesce(new.error_details, '0'))
            OR NOT json_valid(coalesce(new.recovery_metadata, '0'));
    SELECT RAISE(ABORT, 'scheduled_at of a task is in microseconds since 1970')
        WHERE new.scheduled_at IS NOT NULL AND (typeof(new.scheduled_at) <> 'integer'
            OR new.scheduled_at NOT BETWEEN 0 AND 253402300740000000);
    SELECT RAISE(ABORT, 'a task becomes claimed or running through a worker only')
        WHERE new.status <> old.status AND new.status IN ('claimed', 'running');
    SELECT RAISE(ABORT, 'the worker of the task has not stopped; cancel it first')
        WHERE new.status <> old.status AND new.status NOT IN ('partial', 'completed', 'failed',
            'dead_letter', 'cancelled', 'orphaned')
            AND EXISTS (SELECT 1 FROM task_states s WHERE s.id = old.id AND s.held = 1);
    SELECT RAISE(ABORT, 'the dependencies of the task are decided')
        WHERE new.status <> old.status AND new.status = 'blocked'
            AND EXISTS (SELECT 1 FROM task_dependencies d WHERE d.task_id = old.id);
    SELECT RAISE(ABORT, 'the status of a run of a job cannot be set with SQL')
        WHERE new.status <> old.status AND old.job_id IS NOT NULL;
    SELECT RAISE(ABORT, 'others wait for the end of the task, or its key for it; use the API')
        WHERE (new.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled'))
            <> (old.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled'))
            AND (old.parent_id IS NOT NULL
                OR EXISTS (SELECT 1 FROM task_dependencies d WHERE d.depends_on_task_id = old.id)
                OR (old.unique_until = 'ended'
                    AND coalesce(old.idempotency_key, old.input_hash) IS NOT NULL));

    UPDATE lane_counts SET tasks = tasks - 1 WHERE status = 'parked' AND new.status <> 'pending'
        AND lane = (SELECT lane FROM task_states WHERE id = old.id AND parked IS NOT NULL);
    INSERT OR IGNORE INTO task_details (task) SELECT task FROM task_states WHERE id = old.id;
    UPDATE task_details SET metadata = new.metadata, retry_count = new.retry_count,
        crash_count = new.crash_count, error = new.error, last_error = new.last_error,
        error_details = new.error_details, recovery_metadata = new.recovery_metadata
    WHERE task = (SELECT task FROM task_states WHERE id = old.id);
    UPDATE task_details SET unlisted = NULL, pause_requested = NULL
    WHERE new.status <> old.status AND new.status <> 'cancelled'
        AND task = (SELECT task FROM task_states WHERE id = old.id);
    UPDATE task_details SET open_dependencies = NULL, unsatisfied = NULL, waits_children = NULL
    WHERE new.status = 'pending' AND old.status <> 'pending' -- as a retry: waits for nobody
        AND task = (SELECT task FROM task_states WHERE id = old.id);
    UPDATE task_states SET state = new.state, progress = new.progress, priority = new.priority,
        status = new.status, details = task, scheduled_at = new.scheduled_at,
        version = old.version + 1,
        updated_at = max(old.updated_at + 1,
            CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    WHERE id = old.id;
    UPDATE execution_rows SET -- nobody else tells of the end of its attempt
        status = CASE new.status WHEN 'cancelled' THEN 'cancelled' ELSE 'failed' END,
        failed_at = (SELECT updated_at FROM task_states WHERE id = old.id),
        duration_ms = max(0, ((SELECT updated_at FROM task_states WHERE id = old.id) - started_at)
            / 1000),
        error_data = '{"reason":"by_hand"}'
    WHERE new.status <> old.status AND status IN ('pending', 'running') AND execution = (
        SELECT execution FROM task_states WHERE id = old.id AND held = 1);
    UPDATE task_states SET previous_status = old.status, parked = NULL,
        held = CASE WHEN new.status = 'cancelled' THEN held END,
        lease_until = CASE WHEN new.status = 'cancelled' THEN lease_until END,
        scheduled_at = CASE WHEN new.status = 'delayed' THEN coalesce(scheduled_at, updated_at)
            ELSE scheduled_at END,
        by_wall = CASE WHEN new.status = 'delayed' THEN coalesce(by_wall, 0) ELSE by_wall END,
        outcome_token = CASE WHEN new.status <> 'pending' THEN outcome_token END,
        completed_at = CASE WHEN new.status IN ('partial', 'completed', 'failed', 'dead_letter',
            'cancelled') THEN coalesce(completed_at, updated_at) END
    WHERE id = old.id AND new.status <> old.status;
    UPDATE task_states SET order_key = (
        SELECT CAST(max(0, CASE WHEN rule.ageing_ms > 0
                THEN (1000 << 52) + rule.rank * rule.ageing_ms * 1000
                ELSE (1000 + rule.rank) << 52 END
            + min(4503599627370495, max(0, CASE WHEN old.status <> new.status
                THEN task_states.updated_at ELSE coalesce(new.scheduled_at, old.created_at) END)))
            AS INTEGER)
        FROM (SELECT l.lane, coalesce(q.ageing_ms, 0) AS ageing_ms,
                CASE q.priority_order WHEN 'low_first' THEN new.priority ELSE -new.priority END
                    AS rank
            FROM lanes l LEFT JOIN queues q ON q.namespace = l.namespace AND q.name = l.queue) rule
        WHERE rule.lane = task_states.lane)
    WHERE id = old.id AND (new.priority <> old.priority
        OR (new.status = 'pending' AND old.status <> 'pending'));
    DELETE FROM task_results WHERE task_id = old.id
        AND old.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
        AND new.status NOT IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled');
    UPDATE lane_counts SET tasks = tasks - 1 WHERE status = old.status AND old.status <> new.status
        AND lane = (SELECT lane FROM task_states WHERE id = old.id);
    INSERT INTO lane_counts (lane, status, tasks)
        SELECT lane, new.status, 1 FROM task_states WHERE id = old.id AND old.status <> new.status
        ON CONFLICT (lane, status) DO UPDATE SET tasks = tasks + 1;
END;
