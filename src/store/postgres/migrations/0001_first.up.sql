-- The tables of the data model on PostgreSQL. Three contract tables are laid out for speed and shown
-- under their names as views: tasks (task_specs: written once; task_states: narrow, no index but its
-- key, so that its updates stay inside their page), task_events (task_event_rows, and what tasks and
-- executions tell by themselves) and executions (execution_rows). What a task waits for is a row in
-- a small table of its own (ready_rows, parked_rows, due_rows, held_rows, settled_rows): coming and
-- going there costs less than an index over the states would. Ids are UUIDv7 whose middle 40 bits
-- are the row's integer key. User JSON that comes back byte for byte is text.

CREATE FUNCTION perdura_expect(have bigint, want bigint, what text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF have <> want THEN
        RAISE EXCEPTION '% of % %', have, want, what USING ERRCODE = 'PD001';
    END IF;
END $$;

-- The smallest id of a moment: where partitions begin.
CREATE FUNCTION perdura_first_id(moment timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0')
        || repeat('0', 20))::uuid
$$;

-- The row key an id carries.
CREATE FUNCTION perdura_key(id uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT ((('x' || right(replace(id::text, '-', ''), 16))::bit(64)::bigint) & 4611686018427387903) >> 22
$$;

-- One month of a partitioned table, made if it is not there.
CREATE FUNCTION perdura_partition(parent text, month date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    part text := parent || to_char(month, '"_"YYYY"_"MM');
    starts timestamptz := date_trunc('month', month::timestamp) AT TIME ZONE 'UTC';
    ends timestamptz := (date_trunc('month', month::timestamp) + interval '1 month')
        AT TIME ZONE 'UTC';
BEGIN
    IF to_regclass(part) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)
        WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05,
            autovacuum_vacuum_insert_scale_factor = 0.2)',
        part, parent, perdura_first_id(starts), perdura_first_id(ends));
    RETURN true;
END $$;

CREATE TABLE store_info (
    name text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE writer_marks ( -- the last transaction of every writer: whether a commit took
    writer text PRIMARY KEY,
    seq bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Raises when somebody settled in the meantime that the transaction did not take.
CREATE FUNCTION perdura_mark(by text, was bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE writer_marks SET seq = was + 1, updated_at = now() WHERE writer = by AND seq = was;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the transaction was given up' USING ERRCODE = 'PD002';
    END IF;
END $$;

-- What the columns written most may hold. Domains: their checks are compiled once per connection,
-- those of a table once per statement.
CREATE DOMAIN task_status AS text CHECK (VALUE IN ('pending', 'claimed', 'running', 'completed',
    'delayed', 'blocked', 'paused', 'orphaned', 'recovering', 'partial', 'failed', 'dead_letter',
    'cancelled'));
CREATE DOMAIN task_progress AS bigint CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN task_priority AS bigint CHECK (VALUE BETWEEN -1000 AND 1000);
CREATE DOMAIN event_actor AS text CHECK (VALUE IN ('WORKER', 'API', 'RECOVERY', 'SCHEDULER',
    'LEADER', 'USER'));
CREATE DOMAIN execution_status AS text CHECK (VALUE IN ('pending', 'running', 'completed', 'failed',
    'cancelled', 'timeout'));
CREATE DOMAIN log_level AS text CHECK (VALUE IN ('DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'));

CREATE SEQUENCE task_keys INCREMENT BY 1000;
CREATE SEQUENCE execution_keys INCREMENT BY 1000;
CREATE SEQUENCE outbox_keys INCREMENT BY 100;

CREATE TABLE lanes ( -- a queue and a type: the unit of the ready lines and of the counts
    lane bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    queue text NOT NULL,
    type text NOT NULL,
    UNIQUE (namespace, queue, type)
);

-- The sum of its rows per lane and status: everybody only adds, the leader folds. Nobody waits for
-- anybody.
CREATE TABLE lane_counts (
    lane bigint NOT NULL,
    status text NOT NULL,
    tasks bigint NOT NULL
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
CREATE INDEX lane_counts_lane ON lane_counts (lane);

CREATE TABLE key_counts ( -- what is held of a limit key, the same way
    name text NOT NULL,    -- queue and limit key, with a separator between
    held bigint NOT NULL
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
CREATE INDEX key_counts_name ON key_counts (name);

CREATE TABLE task_specs (
    task bigint PRIMARY KEY,
    lane bigint NOT NULL,
    name text,
    payload text,
    payload_sum bigint,       -- of the payload's bytes; verify compares. Absent: not known
    idempotency_key text,
    limit_key text,
    max_retries bigint,        -- absent: the default, so is timeout_ms
    timeout_ms bigint,
    created_at timestamptz NOT NULL,
    opened bigint,             -- its priority then, if its first event is told by this row
    tags text,
    user_id text,
    external_id text,
    context_key text,
    correlation_id text,
    workflow_id text,
    input_hash text,
    unique_until text,
    callback_url text,
    ref text,
    job_id uuid,
    schedule_id uuid,
    recurring_job_id uuid,
    category_id uuid,
    parent_id uuid,
    on_unsatisfied text,
    retry_policy text,         -- absent: the default, so are the figures below
    retry_delay_ms bigint,
    max_retry_delay_ms bigint,
    max_crashes bigint,
    max_continuations bigint,
    stall_after_ms bigint,
    run_at timestamptz,
    recovery_priority bigint,
    auto_recovery_enabled boolean
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE INDEX task_specs_lane ON task_specs (lane, task);
CREATE INDEX task_specs_user ON task_specs (user_id, task) WHERE user_id IS NOT NULL;
CREATE INDEX task_specs_context ON task_specs (context_key, task) WHERE context_key IS NOT NULL;
CREATE INDEX task_specs_correlation ON task_specs (correlation_id, task)
    WHERE correlation_id IS NOT NULL;
CREATE INDEX task_specs_workflow ON task_specs (workflow_id, task) WHERE workflow_id IS NOT NULL;
CREATE INDEX task_specs_parent ON task_specs (parent_id, task) WHERE parent_id IS NOT NULL;
CREATE INDEX task_specs_job ON task_specs (job_id, task) WHERE job_id IS NOT NULL;
CREATE INDEX task_specs_schedule ON task_specs (schedule_id, task) WHERE schedule_id IS NOT NULL;

CREATE TABLE task_states (
    task bigint PRIMARY KEY,
    id uuid NOT NULL,
    lane bigint NOT NULL,
    rev bigint NOT NULL DEFAULT 1, -- grows with every write: nobody writes over what he did not see
    status task_status NOT NULL,
    previous_status text,
    state text NOT NULL DEFAULT 'Queued',
    progress task_progress,
    version bigint,
    updated_at timestamptz NOT NULL,
    priority task_priority,
    scheduled_at timestamptz,
    by_wall boolean,            -- scheduled_at is compared with the wall clock
    order_key bigint NOT NULL,
    parked boolean,             -- a limit of its key keeps it out of the ready line
    attempts bigint,
    worker_id text,
    held boolean,               -- occupies a slot of worker_id
    lease_token bigint,
    lease_until timestamptz,
    last_heartbeat timestamptz,
    claimed_at timestamptz,
    started_at timestamptz,
    execution bigint,
    execution_id uuid,
    report_seq bigint,
    outcome_token bigint,
    outcome_hash bigint,
    event_seq bigint,
    completed_at timestamptz,
    has_data boolean,
    retry_count bigint,
    crash_count bigint,
    continuations bigint,
    next_retry_at timestamptz,
    unlisted boolean,
    pause_requested boolean,
    open_dependencies bigint,
    unsatisfied boolean,
    has_dependencies boolean,
    has_dependents boolean,
    open_children bigint,
    waits_children boolean,
    metadata text,
    checkpoint_data text,
    resumed_from text,
    recovery_metadata text,
    error text,
    last_error text,
    error_details text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.2);

-- What a task waits for; each has one reader: claim, limits, promotion, sweep, lists and retention.
CREATE TABLE ready_rows (
    lane bigint NOT NULL,
    order_key bigint NOT NULL,
    task bigint NOT NULL,
    PRIMARY KEY (lane, order_key, task)
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_delay = 0);
CREATE TABLE parked_rows (
    parked text NOT NULL,      -- queue and limit key, with a separator between
    order_key bigint NOT NULL,
    task bigint NOT NULL,
    PRIMARY KEY (parked, order_key, task)
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.01);
CREATE TABLE due_rows (
    by_wall boolean NOT NULL,
    scheduled_at timestamptz NOT NULL,
    task bigint NOT NULL,
    PRIMARY KEY (by_wall, scheduled_at, task)
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.01);
CREATE TABLE held_rows (
    worker_id text NOT NULL,
    task bigint NOT NULL,
    PRIMARY KEY (worker_id, task)
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_delay = 0);
CREATE TABLE settled_rows ( -- every status but pending, claimed, running and delayed
    status text NOT NULL,
    task bigint NOT NULL,
    PRIMARY KEY (status, task)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE task_data (
    task bigint PRIMARY KEY,
    data text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE task_uniques ( -- idempotency keys, input hashes, outside ids
    namespace text NOT NULL DEFAULT 'default',
    kind text NOT NULL CHECK (kind IN ('key', 'hash', 'external')),
    type text NOT NULL,
    value text NOT NULL,
    task bigint NOT NULL,
    PRIMARY KEY (namespace, kind, type, value)
);

CREATE TABLE task_tags (
    namespace text NOT NULL DEFAULT 'default',
    tag text NOT NULL,
    task bigint NOT NULL,
    PRIMARY KEY (namespace, tag, task)
);

CREATE TABLE task_event_rows (
    task bigint NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    status text NOT NULL,
    state text,
    detail text,
    actor event_actor NOT NULL,
    created_at timestamptz NOT NULL
) PARTITION BY RANGE (id);
CREATE INDEX task_event_rows_task ON task_event_rows (task, seq);

CREATE TABLE execution_rows (
    execution bigint NOT NULL,
    id uuid NOT NULL,
    task bigint NOT NULL,
    job_id uuid,
    schedule_id uuid,
    status execution_status NOT NULL,
    attempt_number bigint NOT NULL,
    lease_token bigint NOT NULL,
    worker_id text,
    correlation_id text,
    claim_seq bigint NOT NULL,
    start_seq bigint,
    end_seq bigint,            -- of the event 'completed'
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    failed_at timestamptz,
    duration_ms bigint,
    result_data text,
    error_data text,
    PRIMARY KEY (execution, id)
) PARTITION BY RANGE (id);
CREATE INDEX execution_rows_task ON execution_rows (task, execution);

-- Ids of other times than those that are made ahead of time: copied stores, clocks that are wrong.
CREATE TABLE task_event_rows_other PARTITION OF task_event_rows DEFAULT;
CREATE TABLE execution_rows_other PARTITION OF execution_rows DEFAULT WITH (fillfactor = 85);
SELECT perdura_partition(parent, (date_trunc('month', now() AT TIME ZONE 'UTC')
        + make_interval(months => ahead))::date)
FROM (VALUES ('task_event_rows'), ('execution_rows')) AS parents (parent),
    generate_series(0, 2) AS ahead;

CREATE TABLE task_results (
    namespace text NOT NULL DEFAULT 'default',
    task_id uuid PRIMARY KEY,
    payload text NOT NULL,
    payload_sum bigint,       -- as in task_specs
    created_at timestamptz NOT NULL
);

CREATE TABLE task_dependencies (
    namespace text NOT NULL DEFAULT 'default',
    task_id uuid NOT NULL,
    depends_on_task_id uuid NOT NULL,
    dependency_type text NOT NULL
        CHECK (dependency_type IN ('success', 'completion', 'failure')),
    PRIMARY KEY (task_id, depends_on_task_id)
);
CREATE INDEX task_dependencies_parent ON task_dependencies (depends_on_task_id, task_id);

CREATE TABLE task_checkpoints (
    id uuid NOT NULL,
    namespace text NOT NULL DEFAULT 'default',
    task_id uuid NOT NULL,
    seq bigint NOT NULL,
    checkpoint_name text NOT NULL,
    progress_percent bigint NOT NULL,
    step_description text,
    recoverable_data text NOT NULL DEFAULT '{}',
    database_state text,
    file_state text,
    checkpoint_hash text NOT NULL,
    is_valid boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (task_id, seq)
);

CREATE TABLE recovery_queue (
    id uuid PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    task_id uuid NOT NULL,
    recovery_method text NOT NULL
        CHECK (recovery_method IN ('resume_checkpoint', 'restart_clean', 'validate_only')),
    recovery_priority integer NOT NULL DEFAULT 0,
    scheduled_for timestamptz NOT NULL,
    processing_started timestamptz,
    processing_completed timestamptz,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 3,
    recovery_result jsonb,
    error_message text,
    created_at timestamptz NOT NULL
);
CREATE INDEX recovery_queue_scheduled ON recovery_queue (status, scheduled_for);
CREATE INDEX recovery_queue_task ON recovery_queue (task_id);

CREATE TABLE execution_logs (
    id uuid NOT NULL,
    namespace text NOT NULL DEFAULT 'default',
    execution_id uuid NOT NULL,
    seq bigint NOT NULL,
    log_level log_level NOT NULL,
    message text NOT NULL,
    context text,
    logged_at timestamptz NOT NULL,
    chain_hash text,
    PRIMARY KEY (execution_id, seq)
);

CREATE TABLE job_categories (
    id uuid PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    name text NOT NULL,
    description text,
    default_priority text NOT NULL DEFAULT 'medium',
    default_timeout integer NOT NULL DEFAULT 300,
    default_max_retries integer NOT NULL DEFAULT 3,
    configuration jsonb NOT NULL DEFAULT '{}',
    is_active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (namespace, name)
);

CREATE TABLE jobs (
    id uuid PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    name text NOT NULL,
    description text,
    category_id uuid REFERENCES job_categories (id) ON DELETE RESTRICT,
    task_type text,
    target_service text,
    target_method text,
    payload text,
    priority text,
    max_retries integer,
    timeout_seconds integer,
    callback_url text,
    is_active boolean NOT NULL DEFAULT true,
    created_by text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz
);
CREATE INDEX jobs_category ON jobs (category_id);

CREATE TABLE schedules (
    id uuid PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    job_id uuid NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    schedule_type text NOT NULL
        CHECK (schedule_type IN ('cron', 'interval', 'once', 'immediate')),
    cron_expression text,
    interval_seconds bigint,
    scheduled_at timestamptz,
    timezone text NOT NULL DEFAULT 'UTC',
    starts_at timestamptz,
    ends_at timestamptz,
    is_active boolean NOT NULL DEFAULT true,
    misfire text NOT NULL DEFAULT 'fire_once' CHECK (misfire IN ('skip', 'fire_once', 'fire_all')),
    misfire_grace_ms bigint NOT NULL DEFAULT 60000,
    misfire_cap bigint NOT NULL DEFAULT 100,
    overlap text NOT NULL DEFAULT 'allow'
        CHECK (overlap IN ('allow', 'skip', 'queue', 'replace')),
    dst text NOT NULL DEFAULT 'standard' CHECK (dst IN ('standard', 'skip', 'both')),
    jitter_ms bigint NOT NULL DEFAULT 0,
    callback_url text,
    next_fire_at timestamptz,
    last_fire_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX schedules_job ON schedules (job_id);
CREATE INDEX schedules_next ON schedules (next_fire_at)
    WHERE is_active AND next_fire_at IS NOT NULL;

CREATE TABLE schedule_fires (
    namespace text NOT NULL DEFAULT 'default',
    schedule_id uuid NOT NULL,
    fire_at timestamptz NOT NULL,
    task_id uuid,
    PRIMARY KEY (schedule_id, fire_at)
);

CREATE TABLE recurring_jobs (
    id uuid PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    name text NOT NULL,
    pattern_type text NOT NULL
        CHECK (pattern_type IN ('daily', 'weekly', 'monthly', 'yearly', 'rrule')),
    pattern_config jsonb NOT NULL DEFAULT '{}',
    template_job_id uuid NOT NULL REFERENCES jobs (id) ON DELETE RESTRICT,
    last_generated timestamptz,
    next_generation timestamptz,
    is_active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE recurring_fires (
    namespace text NOT NULL DEFAULT 'default',
    recurring_job_id uuid NOT NULL,
    instant timestamptz NOT NULL,
    task_id uuid,
    PRIMARY KEY (recurring_job_id, instant)
);

CREATE TABLE job_dependencies (
    id uuid PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    job_id uuid NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    depends_on_job_id uuid NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    dependency_type text NOT NULL
        CHECK (dependency_type IN ('success', 'completion', 'failure')),
    dependency_config jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    UNIQUE (job_id, depends_on_job_id, dependency_type),
    CHECK (job_id <> depends_on_job_id)
);

CREATE TABLE workers (
    id text PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    hostname text NOT NULL,
    started_at timestamptz NOT NULL,
    last_heartbeat timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    pool_size bigint NOT NULL,
    version text,
    queues text NOT NULL DEFAULT '[]',
    types text,
    categories text,
    status text NOT NULL DEFAULT 'idle'
        CHECK (status IN ('idle', 'working', 'error', 'offline')),
    current_tasks text,
    is_leader boolean NOT NULL DEFAULT false,
    leader_until timestamptz
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.1);

CREATE TABLE leadership (
    namespace text PRIMARY KEY,
    holder text NOT NULL,
    epoch bigint NOT NULL,
    until timestamptz NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE queues (
    namespace text NOT NULL DEFAULT 'default',
    name text NOT NULL,
    paused_at timestamptz,
    concurrency bigint NOT NULL DEFAULT 0,
    rate_count bigint NOT NULL DEFAULT 0,
    rate_per_ms bigint NOT NULL DEFAULT 0,
    rate_burst bigint NOT NULL DEFAULT 0,
    key_concurrency bigint NOT NULL DEFAULT 0,
    key_rate_count bigint NOT NULL DEFAULT 0,
    key_rate_per_ms bigint NOT NULL DEFAULT 0,
    key_rate_burst bigint NOT NULL DEFAULT 0,
    type_limits text NOT NULL DEFAULT '[]',
    priority_order text NOT NULL DEFAULT 'high_first'
        CHECK (priority_order IN ('high_first', 'low_first')),
    ageing_ms bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE outbox (
    message bigint PRIMARY KEY,
    id uuid NOT NULL,
    namespace text NOT NULL DEFAULT 'default',
    kind text NOT NULL CHECK (kind IN ('webhook', 'rabbitmq', 'redis')),
    target text NOT NULL,
    task_id uuid NOT NULL,
    body text NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    last_error text,
    next_at timestamptz,       -- NULL = given up, kept for the eye
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX outbox_next ON outbox (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX outbox_given_up ON outbox (created_at) WHERE next_at IS NULL;

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

CREATE TABLE rate_limits (
    namespace text NOT NULL DEFAULT 'default',
    name text NOT NULL,
    tokens bigint NOT NULL,    -- millionths
    rest bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (namespace, name)
);

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
    coalesce(p.on_unsatisfied, 'cancel') AS on_unsatisfied
FROM task_states s
JOIN task_specs p ON p.task = s.task
JOIN lanes l ON l.lane = s.lane
LEFT JOIN task_data d ON d.task = s.task
LEFT JOIN workers w ON w.id = s.worker_id;

CREATE VIEW executions AS
SELECT e.id, l.namespace, s.id AS task_id, e.job_id, e.schedule_id, e.status, e.attempt_number,
    e.lease_token, e.worker_id, e.correlation_id, e.started_at, e.completed_at, e.failed_at,
    e.duration_ms,
    coalesce(e.result_data, CASE WHEN e.status = 'completed' AND e.execution = s.execution THEN
        (SELECT r.payload FROM task_results r WHERE r.task_id = s.id) END) AS result_data,
    e.error_data, e.created_at
FROM execution_rows e
JOIN task_states s ON s.task = e.task
JOIN lanes l ON l.lane = s.lane;

-- An id whose last byte is replaced: events that rows tell of get ids of their own.
CREATE FUNCTION perdura_event_id(id uuid, last text) RETURNS uuid
LANGUAGE sql IMMUTABLE AS $$ SELECT (left(id::text, 34) || last)::uuid $$;

CREATE VIEW task_events AS
SELECT r.id, l.namespace, s.id AS task_id, r.seq, r.status, r.state, r.detail::jsonb AS detail,
    r.actor, r.created_at
FROM task_event_rows r JOIN task_states s ON s.task = r.task JOIN lanes l ON l.lane = s.lane
UNION ALL
SELECT e.id, l.namespace, s.id, e.claim_seq, 'claimed', 'Claimed',
    jsonb_build_object('worker_id', e.worker_id, 'lease_token', e.lease_token,
        'attempt', e.attempt_number), 'WORKER', e.created_at
FROM execution_rows e JOIN task_states s ON s.task = e.task JOIN lanes l ON l.lane = s.lane
UNION ALL
SELECT perdura_event_id(e.id, '01'), l.namespace, s.id, e.start_seq, 'running', 'Running',
    jsonb_build_object('worker_id', e.worker_id, 'attempt', e.attempt_number), 'WORKER',
    e.started_at
FROM execution_rows e JOIN task_states s ON s.task = e.task JOIN lanes l ON l.lane = s.lane
WHERE e.start_seq IS NOT NULL
UNION ALL
SELECT perdura_event_id(e.id, '02'), l.namespace, s.id, e.end_seq, 'completed', 'Completed', NULL,
    'WORKER', e.completed_at
FROM execution_rows e JOIN task_states s ON s.task = e.task JOIN lanes l ON l.lane = s.lane
WHERE e.end_seq IS NOT NULL
UNION ALL
SELECT perdura_event_id(s.id, '00'), l.namespace, s.id, 1, 'pending', 'Queued',
    jsonb_build_object('priority', p.opened, 'payload_bytes',
        coalesce(octet_length(p.payload), 0), 'dependencies', 0), 'API', p.created_at
FROM task_specs p JOIN task_states s ON s.task = p.task JOIN lanes l ON l.lane = s.lane
WHERE p.opened IS NOT NULL;
