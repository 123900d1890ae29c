-- The tables of the data model on SQLite. Three contract tables are laid out for speed and shown
-- under their names as views: tasks (task_specs: written once, task_states: narrow and hot, and
-- task_options and task_details: what most tasks leave empty of the one and of the other),
-- task_events (task_event_rows, and what tasks and executions tell by themselves) and executions
-- (execution_rows). Times are integer microseconds UTC. Ids are UUIDv7 whose middle 40 bits are the
-- row's integer key, so that no index over ids is paid for on the hot path. Checks and partial
-- indexes compare one by one: SQLite builds a temporary tree for every IN list, at every insert.

CREATE TABLE store_info (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE lanes ( -- a queue and a type: the unit of the ready lines and of the counts
    lane INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    UNIQUE (namespace, queue, type)
);

CREATE TABLE lane_counts ( -- kept in the same transaction as what they count; verify compares
    lane INTEGER NOT NULL,
    status TEXT NOT NULL,
    tasks INTEGER NOT NULL,
    PRIMARY KEY (lane, status)
) WITHOUT ROWID;

CREATE TABLE task_specs (
    task INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    name TEXT,
    payload TEXT,
    payload_sum INTEGER,       -- of the payload's bytes; verify compares. Absent: not known
    idempotency_key TEXT,
    limit_key TEXT,
    max_retries INTEGER,       -- absent: the default, so is timeout_ms
    timeout_ms INTEGER,
    created_at INTEGER NOT NULL,
    opened INTEGER,            -- its priority then, if its first event is told by this row
    options INTEGER            -- the task again, if it has a row in task_options
);
CREATE INDEX task_specs_lane ON task_specs (lane, task);
CREATE TRIGGER task_specs_by_hand AFTER UPDATE OF payload ON task_specs
BEGIN
    UPDATE task_specs SET payload_sum = NULL WHERE task = new.task;
END;

CREATE TABLE task_options ( -- what most tasks do not ask for; no row where nothing was
    task INTEGER PRIMARY KEY,
    tags TEXT,
    user_id TEXT,
    external_id TEXT,
    context_key TEXT,
    correlation_id TEXT,
    workflow_id TEXT,
    input_hash TEXT,
    unique_until TEXT,
    callback_url TEXT,
    ref TEXT,
    job_id BLOB,
    schedule_id BLOB,
    recurring_job_id BLOB,
    category_id BLOB,
    parent_id BLOB,
    on_unsatisfied TEXT,
    retry_policy TEXT,         -- absent: the default, so are the figures below
    retry_delay_ms INTEGER,
    max_retry_delay_ms INTEGER,
    max_crashes INTEGER,
    max_continuations INTEGER,
    stall_after_ms INTEGER,
    run_at INTEGER,
    recovery_priority INTEGER,
    auto_recovery_enabled INTEGER
);
CREATE INDEX task_options_user ON task_options (user_id, task) WHERE user_id IS NOT NULL;
CREATE INDEX task_options_context ON task_options (context_key, task)
    WHERE context_key IS NOT NULL;
CREATE INDEX task_options_correlation ON task_options (correlation_id, task)
    WHERE correlation_id IS NOT NULL;
CREATE INDEX task_options_workflow ON task_options (workflow_id, task)
    WHERE workflow_id IS NOT NULL;
CREATE INDEX task_options_parent ON task_options (parent_id, task) WHERE parent_id IS NOT NULL;
CREATE INDEX task_options_job ON task_options (job_id, task) WHERE job_id IS NOT NULL;
CREATE INDEX task_options_schedule ON task_options (schedule_id, task)
    WHERE schedule_id IS NOT NULL;

CREATE TABLE task_states (
    task INTEGER PRIMARY KEY,
    id BLOB NOT NULL CHECK (length(id) = 16),
    lane INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status = 'pending' OR status = 'claimed' OR status = 'running'
        OR status = 'completed' OR status = 'delayed' OR status = 'blocked' OR status = 'paused'
        OR status = 'orphaned' OR status = 'recovering' OR status = 'partial' OR status = 'failed'
        OR status = 'dead_letter' OR status = 'cancelled'),
    previous_status TEXT,
    state TEXT NOT NULL DEFAULT 'Queued',
    progress INTEGER NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 100),
    version INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -1000 AND 1000),
    scheduled_at INTEGER,
    by_wall INTEGER,            -- scheduled_at is compared with the wall clock
    order_key INTEGER NOT NULL,
    parked TEXT,                -- queue and limit key whose limit keeps it out of the ready line
    attempts INTEGER NOT NULL DEFAULT 0,
    worker_id TEXT,
    held INTEGER,               -- 1: occupies a slot of worker_id
    lease_token INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    last_heartbeat INTEGER,
    claimed_at INTEGER,
    started_at INTEGER,
    execution INTEGER,
    report_seq INTEGER,
    outcome_token INTEGER,
    outcome_hash INTEGER,
    event_seq INTEGER NOT NULL DEFAULT 0,
    completed_at INTEGER,
    has_data INTEGER,           -- 1: there is a row in task_data
    details INTEGER             -- the task again, if it has a row in task_details
);
-- One reader each: refill of the ready lines, limits, promotion, sweep, lists and retention.
CREATE INDEX task_states_ready ON task_states (lane, order_key)
    WHERE status = 'pending' AND parked IS NULL;
CREATE INDEX task_states_parked ON task_states (parked, order_key) WHERE parked IS NOT NULL;
CREATE INDEX task_states_due ON task_states (by_wall, scheduled_at) WHERE status = 'delayed';
CREATE INDEX task_states_held ON task_states (worker_id) WHERE held = 1;
CREATE INDEX task_states_settled ON task_states (status, task)
    WHERE status <> 'pending' AND status <> 'claimed' AND status <> 'running' AND status <> 'delayed';

CREATE TABLE task_details ( -- the rest of the state: no row where all of it is empty
    task INTEGER PRIMARY KEY,
    retry_count INTEGER NOT NULL DEFAULT 0,
    crash_count INTEGER NOT NULL DEFAULT 0,
    continuations INTEGER NOT NULL DEFAULT 0,
    next_retry_at INTEGER,
    unlisted INTEGER,
    pause_requested INTEGER,
    open_dependencies INTEGER,
    unsatisfied INTEGER,
    open_children INTEGER,
    waits_children INTEGER,
    metadata TEXT,
    checkpoint_data TEXT,
    resumed_from TEXT,
    recovery_metadata TEXT,
    error TEXT,
    last_error TEXT,
    error_details TEXT
);

CREATE TABLE task_data (
    task INTEGER PRIMARY KEY,
    data TEXT NOT NULL
);

CREATE TABLE task_uniques ( -- idempotency keys, input hashes, outside ids
    namespace TEXT NOT NULL DEFAULT 'default',
    kind TEXT NOT NULL CHECK (kind = 'key' OR kind = 'hash' OR kind = 'external'),
    type TEXT NOT NULL,
    value TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, type, value)
) WITHOUT ROWID;

CREATE TABLE task_tags (
    namespace TEXT NOT NULL DEFAULT 'default',
    tag TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (namespace, tag, task)
) WITHOUT ROWID;

CREATE TABLE task_event_rows (
    task INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    id BLOB NOT NULL,
    status TEXT NOT NULL,
    state TEXT,
    detail TEXT,
    actor TEXT NOT NULL CHECK (actor = 'WORKER' OR actor = 'API' OR actor = 'RECOVERY'
        OR actor = 'SCHEDULER' OR actor = 'LEADER' OR actor = 'USER'),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (task, seq)
) WITHOUT ROWID;

CREATE TABLE execution_rows (
    execution INTEGER PRIMARY KEY,
    id BLOB NOT NULL CHECK (length(id) = 16),
    task INTEGER NOT NULL,
    job_id BLOB,
    schedule_id BLOB,
    status TEXT NOT NULL CHECK (status = 'pending' OR status = 'running' OR status = 'completed' OR
        status = 'failed' OR status = 'cancelled' OR status = 'timeout'),
    attempt_number INTEGER NOT NULL,
    lease_token INTEGER NOT NULL,
    worker_id TEXT,
    correlation_id TEXT,
    claim_seq INTEGER NOT NULL,
    start_seq INTEGER,
    end_seq INTEGER,           -- of the event 'completed'
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    failed_at INTEGER,
    duration_ms INTEGER,
    result_data TEXT,
    error_data TEXT
);
CREATE INDEX execution_rows_task ON execution_rows (task);

CREATE TABLE task_results (
    namespace TEXT NOT NULL DEFAULT 'default',
    task_id BLOB PRIMARY KEY,
    payload TEXT NOT NULL,
    payload_sum INTEGER,        -- as in task_specs
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER task_results_by_hand AFTER UPDATE OF payload ON task_results
    WHEN new.payload <> old.payload AND new.payload_sum IS old.payload_sum
BEGIN
    UPDATE task_results SET payload_sum = NULL WHERE task_id = new.task_id;
END;

CREATE TABLE task_dependencies (
    namespace TEXT NOT NULL DEFAULT 'default',
    task_id BLOB NOT NULL,
    depends_on_task_id BLOB NOT NULL,
    dependency_type TEXT NOT NULL CHECK (dependency_type = 'success' OR dependency_type = 'completion' OR
        dependency_type = 'failure'),
    PRIMARY KEY (task_id, depends_on_task_id)
) WITHOUT ROWID;
CREATE INDEX task_dependencies_parent ON task_dependencies (depends_on_task_id, task_id);

CREATE TABLE task_checkpoints (
    id BLOB NOT NULL,
    namespace TEXT NOT NULL DEFAULT 'default',
    task_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    checkpoint_name TEXT NOT NULL,
    progress_percent INTEGER NOT NULL,
    step_description TEXT,
    recoverable_data TEXT NOT NULL DEFAULT '{}',
    database_state TEXT,
    file_state TEXT,
    checkpoint_hash TEXT NOT NULL,
    is_valid INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    UNIQUE (task_id, seq)
);

CREATE TABLE recovery_queue (
    id BLOB PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    task_id BLOB NOT NULL,
    recovery_method TEXT NOT NULL
        CHECK (recovery_method = 'resume_checkpoint' OR recovery_method = 'restart_clean' OR
        recovery_method = 'validate_only'),
    recovery_priority INTEGER NOT NULL DEFAULT 0,
    scheduled_for INTEGER NOT NULL,
    processing_started INTEGER,
    processing_completed INTEGER,
    status TEXT NOT NULL DEFAULT 'pending'
        CHECK (status = 'pending' OR status = 'processing' OR status = 'completed' OR
        status = 'failed'),
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL DEFAULT 3,
    recovery_result TEXT,
    error_message TEXT,
    created_at INTEGER NOT NULL
);
CREATE INDEX recovery_queue_scheduled ON recovery_queue (status, scheduled_for);
CREATE INDEX recovery_queue_task ON recovery_queue (task_id);

CREATE TABLE execution_logs (
    id BLOB NOT NULL,
    namespace TEXT NOT NULL DEFAULT 'default',
    execution_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    log_level TEXT NOT NULL CHECK (log_level = 'DEBUG' OR log_level = 'INFO' OR log_level = 'WARN' OR
        log_level = 'ERROR' OR log_level = 'FATAL'),
    message TEXT NOT NULL,
    context TEXT,
    logged_at INTEGER NOT NULL,
    chain_hash TEXT,
    PRIMARY KEY (execution_id, seq)
) WITHOUT ROWID;

CREATE TABLE job_categories (
    id BLOB PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    name TEXT NOT NULL,
    description TEXT,
    default_priority TEXT NOT NULL DEFAULT 'medium',
    default_timeout INTEGER NOT NULL DEFAULT 300,
    default_max_retries INTEGER NOT NULL DEFAULT 3,
    configuration TEXT NOT NULL DEFAULT '{}',
    is_active INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (namespace, name)
);

CREATE TABLE jobs (
    id BLOB PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    name TEXT NOT NULL,
    description TEXT,
    category_id BLOB REFERENCES job_categories (id) ON DELETE RESTRICT,
    task_type TEXT,
    target_service TEXT,
    target_method TEXT,
    payload TEXT,
    priority TEXT,
    max_retries INTEGER,
    timeout_seconds INTEGER,
    callback_url TEXT,
    is_active INTEGER NOT NULL DEFAULT 1,
    created_by TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
);
CREATE INDEX jobs_category ON jobs (category_id);

CREATE TABLE schedules (
    id BLOB PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    job_id BLOB NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    schedule_type TEXT NOT NULL CHECK (schedule_type = 'cron' OR schedule_type = 'interval' OR schedule_type = 'once' OR
        schedule_type = 'immediate'),
    cron_expression TEXT,
    interval_seconds INTEGER,
    scheduled_at INTEGER,
    timezone TEXT NOT NULL DEFAULT 'UTC',
    starts_at INTEGER,
    ends_at INTEGER,
    is_active INTEGER NOT NULL DEFAULT 1,
    misfire TEXT NOT NULL DEFAULT 'fire_once' CHECK (misfire = 'skip' OR misfire = 'fire_once' OR misfire = 'fire_all'),
    misfire_grace_ms INTEGER NOT NULL DEFAULT 60000,
    misfire_cap INTEGER NOT NULL DEFAULT 100,
    overlap TEXT NOT NULL DEFAULT 'allow'
        CHECK (overlap = 'allow' OR overlap = 'skip' OR overlap = 'queue' OR overlap = 'replace'),
    dst TEXT NOT NULL DEFAULT 'standard' CHECK (dst = 'standard' OR dst = 'skip' OR dst = 'both'),
    jitter_ms INTEGER NOT NULL DEFAULT 0,
    callback_url TEXT,
    next_fire_at INTEGER,
    last_fire_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX schedules_job ON schedules (job_id);
CREATE INDEX schedules_next ON schedules (next_fire_at)
    WHERE is_active = 1 AND next_fire_at IS NOT NULL;

CREATE TABLE schedule_fires (
    namespace TEXT NOT NULL DEFAULT 'default',
    schedule_id BLOB NOT NULL,
    fire_at INTEGER NOT NULL,
    task_id BLOB,
    PRIMARY KEY (schedule_id, fire_at)
) WITHOUT ROWID;

CREATE TABLE recurring_jobs (
    id BLOB PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    name TEXT NOT NULL,
    pattern_type TEXT NOT NULL
        CHECK (pattern_type = 'daily' OR pattern_type = 'weekly' OR pattern_type = 'monthly' OR
        pattern_type = 'yearly' OR pattern_type = 'rrule'),
    pattern_config TEXT NOT NULL DEFAULT '{}',
    template_job_id BLOB NOT NULL REFERENCES jobs (id) ON DELETE RESTRICT,
    last_generated INTEGER,
    next_generation INTEGER,
    is_active INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE recurring_fires (
    namespace TEXT NOT NULL DEFAULT 'default',
    recurring_job_id BLOB NOT NULL,
    instant INTEGER NOT NULL,
    task_id BLOB,
    PRIMARY KEY (recurring_job_id, instant)
) WITHOUT ROWID;

CREATE TABLE job_dependencies (
    id BLOB PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    job_id BLOB NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    depends_on_job_id BLOB NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    dependency_type TEXT NOT NULL CHECK (dependency_type = 'success' OR dependency_type = 'completion' OR
        dependency_type = 'failure'),
    dependency_config TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL,
    UNIQUE (job_id, depends_on_job_id, dependency_type),
    CHECK (job_id <> depends_on_job_id)
);

CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    hostname TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    last_heartbeat INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    pool_size INTEGER NOT NULL,
    version TEXT,
    queues TEXT NOT NULL DEFAULT '[]',
    types TEXT,
    categories TEXT,
    status TEXT NOT NULL DEFAULT 'idle' CHECK (status = 'idle' OR status = 'working' OR status = 'error' OR status = 'offline'),
    current_tasks TEXT,
    is_leader INTEGER NOT NULL DEFAULT 0,
    leader_until INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX workers_leader ON workers (namespace) WHERE is_leader = 1;

CREATE TABLE leadership (
    namespace TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE queues (
    namespace TEXT NOT NULL DEFAULT 'default',
    name TEXT NOT NULL,
    paused_at INTEGER,
    concurrency INTEGER NOT NULL DEFAULT 0,
    rate_count INTEGER NOT NULL DEFAULT 0,
    rate_per_ms INTEGER NOT NULL DEFAULT 0,
    rate_burst INTEGER NOT NULL DEFAULT 0,
    key_concurrency INTEGER NOT NULL DEFAULT 0,
    key_rate_count INTEGER NOT NULL DEFAULT 0,
    key_rate_per_ms INTEGER NOT NULL DEFAULT 0,
    key_rate_burst INTEGER NOT NULL DEFAULT 0,
    type_limits TEXT NOT NULL DEFAULT '[]',
    priority_order TEXT NOT NULL DEFAULT 'high_first'
        CHECK (priority_order = 'high_first' OR priority_order = 'low_first'),
    ageing_ms INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE TABLE outbox (
    message INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    namespace TEXT NOT NULL DEFAULT 'default',
    kind TEXT NOT NULL CHECK (kind = 'webhook' OR kind = 'rabbitmq' OR kind = 'redis'),
    target TEXT NOT NULL,
    task_id BLOB NOT NULL,
    body TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    next_at INTEGER,           -- NULL = given up, kept for the eye
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX outbox_next ON outbox (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX outbox_given_up ON outbox (created_at) WHERE next_at IS NULL;

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

CREATE TABLE rate_limits (
    namespace TEXT NOT NULL DEFAULT 'default',
    name TEXT NOT NULL,
    tokens REAL NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

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

-- Hand-written SQL: what a person may change by hand; updated_at and version follow (E6), and so do
-- the counts. Only what waits can be parked, only what runs (or was just cancelled) be held.
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

CREATE VIEW executions AS
SELECT e.id AS id, l.namespace AS namespace, s.id AS task_id, e.job_id AS job_id,
    e.schedule_id AS schedule_id, e.status AS status, e.attempt_number AS attempt_number,
    e.lease_token AS lease_token, e.worker_id AS worker_id, e.correlation_id AS correlation_id,
    e.started_at AS started_at, e.completed_at AS completed_at, e.failed_at AS failed_at,
    e.duration_ms AS duration_ms,
    coalesce(e.result_data, CASE WHEN e.status = 'completed' AND e.execution = s.execution THEN
        (SELECT r.payload FROM task_results r WHERE r.task_id = s.id) END) AS result_data,
    e.error_data AS error_data,
    e.created_at AS created_at
FROM execution_rows e
JOIN task_states s ON s.task = e.task
JOIN lanes l ON l.lane = s.lane;

-- A claim and a start are told by the execution itself; its id ends in a zero byte, so that the
-- two events get ids of their own from it.
CREATE VIEW task_events AS
SELECT r.id AS id, l.namespace AS namespace, s.id AS task_id, r.seq AS seq, r.status AS status,
    r.state AS state, r.detail AS detail, r.actor AS actor, r.created_at AS created_at
FROM task_event_rows r
JOIN task_states s ON s.task = r.task
JOIN lanes l ON l.lane = s.lane
UNION ALL
SELECT e.id, l.namespace, s.id, e.claim_seq, 'claimed', 'Claimed',
    json_object('worker_id', e.worker_id, 'lease_token', e.lease_token,
        'attempt', e.attempt_number), 'WORKER', e.created_at
FROM execution_rows e
JOIN task_states s ON s.task = e.task
JOIN lanes l ON l.lane = s.lane
UNION ALL
SELECT CAST(substr(e.id, 1, 15) || x'01' AS BLOB), l.namespace, s.id, e.start_seq, 'running',
    'Running', json_object('worker_id', e.worker_id, 'attempt', e.attempt_number), 'WORKER',
    e.started_at
FROM execution_rows e
JOIN task_states s ON s.task = e.task
JOIN lanes l ON l.lane = s.lane
WHERE e.start_seq IS NOT NULL
UNION ALL
SELECT CAST(substr(e.id, 1, 15) || x'02' AS BLOB), l.namespace, s.id, e.end_seq, 'completed',
    'Completed', NULL, 'WORKER', e.completed_at
FROM execution_rows e
JOIN task_states s ON s.task = e.task
JOIN lanes l ON l.lane = s.lane
WHERE e.end_seq IS NOT NULL
UNION ALL
SELECT CAST(substr(s.id, 1, 15) || x'00' AS BLOB), l.namespace, s.id, 1, 'pending', 'Queued',
    json_object('priority', p.opened, 'payload_bytes',
        coalesce(length(CAST(p.payload AS BLOB)), 0), 'dependencies', 0), 'API', p.created_at
FROM task_specs p
JOIN task_states s ON s.task = p.task
JOIN lanes l ON l.lane = s.lane
WHERE p.opened IS NOT NULL;
