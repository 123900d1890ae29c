-- Data lost: API tokens, and who made tasks and registered workers

DROP VIEW tasks;
ALTER TABLE task_specs DROP COLUMN created_by_principal;

CREATE VIEW tasks AS
SELECT s.id AS id, l.namespace AS namespace, o.external_id AS external_id, l.type AS type,
    p.name AS name, l.queue AS queue, p.payload AS payload, d.data AS data,
    coalesce(x.metadata, '{}') AS metadata, o.tags AS tags, o.user_id AS user_id,
    o.context_key AS context_key, o.correlation_id AS correlation_id, o.job_id AS job_id,
    o.schedule_id AS schedule_id, o.recurring_job_id AS recurring_job_id,
    o.category_id AS category_id, o.workflow_id AS workflow_id, o.parent_id AS parent_id,
    s.status AS status, s.previous_status AS previous_status, s.state AS state,
    s.progress AS progress, s.version AS version, p.created_at AS created_at,
    s.updated_at AS updated_at, s.priority AS priority, s.scheduled_at AS scheduled_at,
    s.order_key AS order_key, p.idempotency_key AS idempotency_key, o.input_hash AS input_hash,
    o.unique_until AS unique_until, s.attempts AS attempts,
    coalesce(x.retry_count, 0) AS retry_count,
    coalesce(x.crash_count, 0) AS crash_count, coalesce(x.continuations, 0) AS continuations,
    coalesce(p.max_retries, 3) AS max_retries, coalesce(o.max_crashes, 3) AS max_crashes,
    coalesce(o.max_continuations, 10000) AS max_continuations,
    coalesce(o.retry_policy, 'polynomial') AS retry_policy,
    coalesce(o.retry_delay_ms, 1000) AS retry_delay_ms,
    coalesce(o.max_retry_delay_ms, 3600000) AS max_retry_delay_ms,
    coalesce(p.timeout_ms, 300000) AS timeout_ms, x.next_retry_at AS next_retry_at,
    s.worker_id AS worker_id, s.lease_token AS lease_token,
    CASE WHEN s.held = 1 THEN CASE WHEN x.unlisted = 1 THEN s.lease_until
        ELSE max(s.lease_until, coalesce(w.lease_until, 0)) END END AS lease_until,
    s.last_heartbeat AS last_heartbeat, s.claimed_at AS claimed_at, s.started_at AS started_at,
    coalesce(x.pause_requested, 0) AS pause_requested, p.limit_key AS limit_key,
    x.checkpoint_data AS checkpoint_data, x.resumed_from AS resumed_from,
    coalesce(o.recovery_priority, 0) AS recovery_priority,
    coalesce(o.auto_recovery_enabled, 1) AS auto_recovery_enabled,
    x.recovery_metadata AS recovery_metadata, o.stall_after_ms AS stall_after_ms,
    s.completed_at AS completed_at, x.error AS error, x.last_error AS last_error,
    x.error_details AS error_details, o.callback_url AS callback_url,
    coalesce(o.on_unsatisfied, 'cancel') AS on_unsatisfied,
    o.traceparent AS traceparent, o.tracestate AS tracestate, x.note AS note
FROM task_states s
JOIN task_specs p ON p.task = s.task
JOIN lanes l ON l.lane = s.lane
LEFT JOIN task_details x ON x.task = s.details
LEFT JOIN task_options o ON o.task = p.options
LEFT JOIN task_data d ON d.task = s.task
LEFT JOIN workers w ON w.id = s.worker_id;

-- As before, and a note cannot be set by hand either: every change of it is an event.
CREATE TRIGGER tasks_not_by_hand INSTEAD OF UPDATE OF id, namespace, external_id, type, name, queue,
        payload, data, tags, user_id, context_key, correlation_id, job_id, schedule_id,
        recurring_job_id, category_id, workflow_id, parent_id, previous_status, version, created_at,
        order_key, idempotency_key, input_hash, unique_until, attempts, continuations, max_retries,
        max_crashes, max_continuations, retry_policy, retry_delay_ms, max_retry_delay_ms, timeout_ms,
        next_retry_at, worker_id, lease_token, lease_until, last_heartbeat, claimed_at, started_at,
        pause_requested, limit_key, checkpoint_data, resumed_from, recovery_priority,
        auto_recovery_enabled, stall_after_ms, completed_at, callback_url, on_unsatisfied,
        traceparent, tracestate, note ON tasks
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
    WHERE new.status = 'pending' AND old.status <> 'pending' -- as a retry: waits for no other task
        AND task = (SELECT task FROM task_states WHERE id = old.id);
    UPDATE task_states SET state = new.state, progress = new.progress, priority = new.priority,
        status = new.status, details = task, scheduled_at = new.scheduled_at,
        version = old.version + 1,
        updated_at = max(old.updated_at + 1,
            CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    WHERE id = old.id;
    UPDATE execution_rows SET -- nothing else tells of the end of its attempt
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

CREATE TRIGGER tasks_bounds INSTEAD OF UPDATE ON tasks
BEGIN
    SELECT RAISE(ABORT, 'retry_count and crash_count of a task are whole numbers from 0 to 1000000')
        WHERE (new.retry_count IS NOT old.retry_count AND (typeof(new.retry_count) <> 'integer'
                OR new.retry_count NOT BETWEEN 0 AND 1000000))
            OR (new.crash_count IS NOT old.crash_count AND (typeof(new.crash_count) <> 'integer'
                OR new.crash_count NOT BETWEEN 0 AND 1000000));
    SELECT RAISE(ABORT, 'progress and priority of a task are whole numbers')
        WHERE (new.progress IS NOT old.progress AND typeof(new.progress) <> 'integer')
            OR (new.priority IS NOT old.priority AND typeof(new.priority) <> 'integer');
    SELECT RAISE(ABORT, 'state of a task is longer than 200 bytes')
        WHERE new.state IS NOT old.state AND length(CAST(new.state AS BLOB)) > 200;
    SELECT RAISE(ABORT, 'error and last_error of a task must not be longer than 4096 bytes')
        WHERE (new.error IS NOT old.error AND length(CAST(new.error AS BLOB)) > 4096)
            OR (new.last_error IS NOT old.last_error
                AND length(CAST(new.last_error AS BLOB)) > 4096);
    SELECT RAISE(ABORT, 'metadata, error_details and recovery_metadata of a task must not be longer than 16384 bytes')
        WHERE (new.metadata IS NOT old.metadata AND length(CAST(new.metadata AS BLOB)) > 16384)
            OR (new.error_details IS NOT old.error_details
                AND length(CAST(new.error_details AS BLOB)) > 16384)
            OR (new.recovery_metadata IS NOT old.recovery_metadata
                AND length(CAST(new.recovery_metadata AS BLOB)) > 16384);
END;

ALTER TABLE workers DROP COLUMN principal;

DROP TABLE api_tokens;
CREATE TABLE api_tokens (
    id BLOB PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    name TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    user_id TEXT,
    rights TEXT NOT NULL DEFAULT '[]',
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);
