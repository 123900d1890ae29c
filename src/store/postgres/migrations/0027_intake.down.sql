-- Data lost: tasks that were enqueued with SQL and not taken in yet; start a node first.
DELETE FROM task_uniques u USING intake_rows r WHERE u.task = r.task;
CREATE OR REPLACE VIEW tasks AS
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
    s.note, p.created_by_principal
FROM task_states s
JOIN task_specs p ON p.task = s.task
JOIN lanes l ON l.lane = s.lane
LEFT JOIN task_data d ON d.task = s.task
LEFT JOIN workers w ON w.id = s.worker_id;
DO $$
BEGIN
    IF current_setting('server_version_num')::integer >= 150000 THEN
        ALTER VIEW tasks SET (security_invoker = true);
    END IF;
END $$;
DROP TRIGGER tasks_asked ON tasks;
DROP FUNCTION intake_by_hand(), enqueue(text, text, jsonb), enqueue(text, jsonb, jsonb), enqueue_many(text, jsonb[], jsonb),
    intake_grant(text), intake_enqueue(text, text, jsonb), intake_reserve(text, text, text, text, bigint),
    intake_check_payload(text), intake_namespace(text, jsonb), intake_id(bigint, bigint),
    asked_number(jsonb, text, bigint);
DROP TABLE intake_rows;
DROP FUNCTION intake_tell(), intake_closed();
CREATE OR REPLACE FUNCTION perdura_shared() RETURNS TABLE (part text, whole boolean, condition text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT v.part, v.whole, replace(replace(replace(v.condition,
        '@namespace', '(SELECT nullif(current_setting(''app.current_namespace'', true), ''''))'),
        '@user', '(SELECT nullif(current_setting(''app.current_user_id'', true), ''''))'),
        '@task', 'EXISTS (SELECT FROM task_specs p WHERE p.task = ' || v.part || '.task)')
    FROM (VALUES
        ('lanes', false, 'namespace = @namespace AND @user IS NOT NULL'),
        ('task_specs', false, 'coalesce(user_id, @user) = @user AND lane IN (SELECT lane FROM lanes)'),
        ('task_states', false, '@task'),
        ('task_data', false, '@task'),
        ('task_event_rows', false, '@task'),
        ('execution_rows', false, '@task'),
        ('held_rows', true, '@task'),
        ('settled_rows', true, '@task'),
        ('workers', false, 'EXISTS (SELECT FROM held_rows h WHERE h.worker_id = workers.id)'),
        ('task_results', false, 'EXISTS (SELECT FROM task_states s
            WHERE s.task = perdura_key(task_id) AND s.id = task_id)'),
        ('task_checkpoints', true, 'EXISTS (SELECT FROM task_states s
            WHERE s.task = perdura_key(task_id) AND s.id = task_id)'),
        ('task_dependencies', true, 'EXISTS (SELECT FROM task_states s
            WHERE s.task = perdura_key(task_id) AND s.id = task_id)
            AND EXISTS (SELECT FROM task_states s
            WHERE s.task = perdura_key(depends_on_task_id) AND s.id = depends_on_task_id)'),
        ('execution_logs', true, 'EXISTS (SELECT FROM execution_rows e
            WHERE e.execution = perdura_key(execution_id) AND e.id = execution_id)'),
        ('job_categories', true, 'namespace = @namespace AND @user IS NOT NULL'),
        ('jobs', true, 'namespace = @namespace AND coalesce(created_by, @user) = @user'),
        ('schedules', true, 'EXISTS (SELECT FROM jobs j WHERE j.id = job_id)'),
        ('recurring_jobs', true, 'EXISTS (SELECT FROM jobs j WHERE j.id = template_job_id)'),
        ('job_dependencies', true, 'EXISTS (SELECT FROM jobs j WHERE j.id = job_id)
            AND EXISTS (SELECT FROM jobs j WHERE j.id = depends_on_job_id)'))
        AS v (part, whole, condition)
$$;
DELETE FROM store_info WHERE name IN ('sql_roles', 'sealed_types');
SELECT setval('task_keys', last_value + 10, false) FROM task_keys WHERE is_called;
ALTER SEQUENCE task_keys INCREMENT BY 100;
