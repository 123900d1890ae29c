-- Contexts are forgotten; a task that was given nothing else keeps an empty row of options.

DROP VIEW tasks;
ALTER TABLE task_options DROP COLUMN tracestate;
ALTER TABLE task_options DROP COLUMN traceparent;

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
    coalesce(o.on_unsatisfied, 'cancel') AS on_unsatisfied
FROM task_states s
JOIN task_specs p ON p.task = s.task
JOIN lanes l ON l.lane = s.lane
LEFT JOIN task_details x ON x.task = s.details
LEFT JOIN task_options o ON o.task = p.options
LEFT JOIN task_data d ON d.task = s.task
LEFT JOIN workers w ON w.id = s.worker_id;

CREATE TRIGGER tasks_update INSTEAD OF UPDATE ON tasks
BEGIN
    UPDATE lane_counts SET tasks = tasks - 1 WHERE status = 'parked' AND new.status <> 'pending'
        AND lane = (SELECT lane FROM task_states WHERE id = old.id AND parked IS NOT NULL);
    INSERT OR IGNORE INTO task_details (task) SELECT task FROM task_states WHERE id = old.id;
    UPDATE task_details SET metadata = new.metadata, retry_count = new.retry_count,
        crash_count = new.crash_count, error = new.error, last_error = new.last_error,
        error_details = new.error_details, recovery_metadata = new.recovery_metadata
    WHERE task = (SELECT task FROM task_states WHERE id = old.id);
    UPDATE task_states SET state = new.state, progress = new.progress, priority = new.priority,
        status = new.status, details = task,
        previous_status = CASE WHEN new.status <> old.status THEN old.status
            ELSE previous_status END,
        parked = CASE WHEN new.status = 'pending' THEN parked END,
        held = CASE WHEN new.status IN ('claimed', 'running', 'cancelled') THEN held END,
        scheduled_at = new.scheduled_at,
        version = old.version + 1,
        updated_at = max(old.updated_at + 1,
            CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    WHERE id = old.id;
    UPDATE lane_counts SET tasks = tasks - 1 WHERE status = old.status AND old.status <> new.status
        AND lane = (SELECT lane FROM task_states WHERE id = old.id);
    INSERT INTO lane_counts (lane, status, tasks)
        SELECT lane, new.status, 1 FROM task_states WHERE id = old.id AND old.status <> new.status
        ON CONFLICT (lane, status) DO UPDATE SET tasks = tasks + 1;
END;
