-- Data lost: API tokens, and who made tasks and registered workers

-- A view loses a column only when it is made again, with what hangs on it.
DROP FUNCTION perdura_check_by_hand;
DROP VIEW tasks;
ALTER TABLE task_specs DROP COLUMN created_by_principal;

CREATE VIEW tasks AS
SELECT s.id, l.namespace, p.external_id, l.type, p.name, l.queue, p.payload, d.data,
    coalesce(s.metadata, '{}')::jsonb AS metadata, p.tags::jsonb AS tags, p.user_id,
    p.context_key, p.correlation_id, p.job_id, p.schedule_id, p.recurring_job_id, p.category_id,
    p.workflow_id, p.parent_id, s.status, s.previous_status, s.state,
    coalesce(s.progress, 0) AS progress, coalesce(s.version, 0) AS version, p.created_at,
    s.updated_at, coalesce(s.priority, 0) AS priority, s.scheduled_at, s.order_key,
    p.idempotency_key, p.input_hash, coalesce(p.unique_until, 'forever') AS unique_until,
    coalesce(s.attempts, 0) AS attempts, coalesce(s.retry_count, 0) AS retry_count,
    coalesce(s.crash_count, 0) AS crash_count, coalesce(s.continuations, 0) AS continuations,
    coalesce(p.max_retries, 3) AS max_retries, coalesce(p.max_crashes, 3) AS max_crashes,
    coalesce(p.max_continuations, 10000) AS max_continuations,
    coalesce(p.retry_policy, 'polynomial') AS retry_policy,
    coalesce(p.retry_delay_ms, 1000) AS retry_delay_ms,
    coalesce(p.max_retry_delay_ms, 3600000) AS max_retry_delay_ms,
    coalesce(p.timeout_ms, 300000) AS timeout_ms, s.next_retry_at, s.worker_id,
    coalesce(s.lease_token, 0) AS lease_token,
    CASE WHEN s.held THEN CASE WHEN s.unlisted THEN s.lease_until
        ELSE greatest(s.lease_until, w.lease_until) END END AS lease_until,
    s.last_heartbeat, s.claimed_at, s.started_at,
    coalesce(s.pause_requested, false) AS pause_requested, p.limit_key, s.checkpoint_data,
    s.resumed_from, coalesce(p.recovery_priority, 0) AS recovery_priority,
    coalesce(p.auto_recovery_enabled, true) AS auto_recovery_enabled,
    s.recovery_metadata::jsonb AS recovery_metadata, p.stall_after_ms, s.completed_at, s.error,
    s.last_error, s.error_details::jsonb AS error_details, p.callback_url,
    coalesce(p.on_unsatisfied, 'cancel') AS on_unsatisfied, p.traceparent, p.tracestate,
    s.note
FROM task_states s
JOIN task_specs p ON p.task = s.task
JOIN lanes l ON l.lane = s.lane
LEFT JOIN task_data d ON d.task = s.task
LEFT JOIN workers w ON w.id = s.worker_id;

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

CREATE TRIGGER tasks_update INSTEAD OF UPDATE ON tasks
    FOR EACH ROW EXECUTE FUNCTION perdura_task_by_hand();
CREATE TRIGGER tasks_bounds INSTEAD OF UPDATE ON tasks
    FOR EACH ROW EXECUTE FUNCTION perdura_bounds_by_hand();

ALTER TABLE workers DROP COLUMN principal;

DROP TABLE api_tokens;
CREATE TABLE api_tokens (
    id uuid PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    name text NOT NULL,
    token_hash text NOT NULL UNIQUE,
    user_id text,
    rights jsonb NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);
