-- API tokens: who has one, what it allows, and its SHA-256. The table of the first migration was never
-- written to. Tasks remember who made them, workers who registered them.

DROP TABLE api_tokens;
CREATE TABLE api_tokens (
    id text PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    name text NOT NULL,
    scopes text NOT NULL,
    user_id text,
    queues text NOT NULL DEFAULT '[]',
    types text NOT NULL DEFAULT '[]',
    categories text NOT NULL DEFAULT '[]',
    rate text,
    hash text NOT NULL,
    former_hash text,
    former_until timestamptz,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    created_by_id text,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    generation bigint NOT NULL
);
CREATE INDEX api_tokens_generation ON api_tokens (generation);

ALTER TABLE workers ADD COLUMN principal text;

ALTER TABLE task_specs ADD COLUMN created_by_principal text;

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
