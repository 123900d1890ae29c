-- Each statement returns one line per inconsistency (table, id, what is wrong), at most $1. It reads
-- the events of all tasks at once; the server sorts on disk what does not fit into memory.

-- One snapshot of the whole store, whatever others write meanwhile.
-- name: verify_begin
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- Compares whole tables: the settings that speed up single tasks would slow it down.
-- name: verify_settings
SELECT set_config(name, value, true) FROM (VALUES ('timezone', 'UTC'), ('jit', 'off'),
    ('enable_hashjoin', 'on'), ('enable_mergejoin', 'on'), ('enable_seqscan', 'on'),
    ('work_mem', '64MB'), ('lock_timeout', '5s'), ('statement_timeout', '0'))
    AS settings (name, value);

-- A dropped month disappears from every snapshot, also older ones: prevents drops while we look.
-- name: verify_hold
LOCK TABLE task_event_rows, execution_rows IN ACCESS SHARE MODE;

-- Without its index a key is not unique, and a month without its own is read as a whole.
-- name: verify_indexes
SELECT t.relname || ': its index ' || c.relname || ' is not valid'
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = current_schema() AND (i.indisunique OR t.relispartition OR t.relkind = 'p')
    AND NOT (i.indisvalid AND i.indisready AND i.indislive)
LIMIT $1;

-- The database enforces these itself, unless that was switched off.
-- name: verify_references
SELECT 'jobs: row ' || r.id || ' refers to a row of job_categories that is not there'
FROM jobs r WHERE r.category_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM job_categories c WHERE c.id = r.category_id)
UNION ALL
SELECT 'schedules: row ' || r.id || ' refers to a row of jobs that is not there'
FROM schedules r WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job_id)
UNION ALL
SELECT 'recurring_jobs: row ' || r.id || ' refers to a row of jobs that is not there'
FROM recurring_jobs r WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.template_job_id)
UNION ALL
SELECT 'job_dependencies: row ' || r.id || ' refers to a row of jobs that is not there'
FROM job_dependencies r WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job_id)
    OR NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.depends_on_job_id)
LIMIT $1;

-- name: verify_counts
SELECT 'lane_counts: lane ' || lane || ', status ' || status || ' says ' || kept
    || ' tasks, there are ' || counted
FROM (SELECT lane, status, sum(kept) AS kept, sum(counted) AS counted FROM (
        SELECT lane, status, tasks AS kept, 0 AS counted FROM lane_counts
        UNION ALL
        SELECT lane, status, 0, count(*) FROM task_states GROUP BY lane, status
        UNION ALL
        SELECT lane, 'parked', 0, count(*) FROM task_states WHERE parked GROUP BY lane
        UNION ALL
        SELECT lane, 'held', 0, count(*) FROM task_states WHERE held GROUP BY lane) both_sides
    GROUP BY lane, status) sums
WHERE kept <> counted
LIMIT $1;

-- name: verify_key_counts
SELECT 'key_counts: key ' || split_part(name, chr(31), 2) || ' of queue '
    || translate(split_part(name, chr(31), 1), chr(30), '/') || ' says ' || kept
    || ' held tasks, there are ' || counted
FROM (SELECT name, sum(kept) AS kept, sum(counted) AS counted FROM (
        SELECT name, held AS kept, 0 AS counted FROM key_counts
        UNION ALL
        SELECT perdura_queue_name(l.namespace, l.queue) || chr(31) || p.limit_key, 0, count(*)
        FROM task_states s
        JOIN task_specs p ON p.task = s.task
        JOIN lanes l ON l.lane = s.lane
        WHERE s.held AND p.limit_key IS NOT NULL
        GROUP BY l.namespace, l.queue, p.limit_key) both_sides
    GROUP BY name) sums
WHERE kept <> counted
LIMIT $1;

-- name: verify_token_counts
SELECT 'token_counts: token ' || token || ' says ' || kept || ' tasks that have not ended, there are '
    || counted
FROM (SELECT token, sum(kept) AS kept, sum(counted) AS counted FROM (
        SELECT token, tasks AS kept, 0 AS counted FROM token_counts
        UNION ALL
        SELECT k.token, 0, count(*) FROM (
            SELECT token FROM token_counts UNION SELECT id FROM api_tokens WHERE max_tasks IS NOT NULL) k
        JOIN task_specs p ON p.created_by_principal = 'token:' || k.token
        JOIN task_states s ON s.task = p.task
        WHERE s.status NOT IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
        GROUP BY k.token) both_sides
    GROUP BY token) sums
WHERE kept <> counted
LIMIT $1;

-- name: verify_states
SELECT 'task_states: task ' || s.id || CASE
    WHEN p.task IS NULL THEN ' has no row in task_specs'
    WHEN l.lane IS NULL THEN ' has no row in lanes'
    WHEN p.lane <> s.lane THEN ' has another lane in task_specs'
    WHEN l.category_id <> coalesce(p.category_id, '00000000-0000-0000-0000-000000000000')
        THEN ' stands in the lane of another category'
    ELSE ' is stored under key ' || s.task || ', which its id does not carry' END
FROM task_states s
LEFT JOIN task_specs p ON p.task = s.task
LEFT JOIN lanes l ON l.lane = s.lane
WHERE p.task IS NULL OR l.lane IS NULL OR p.lane <> s.lane OR perdura_key(s.id) <> s.task
    OR l.category_id <> coalesce(p.category_id, '00000000-0000-0000-0000-000000000000')
LIMIT $1;

-- name: verify_specs
SELECT 'task_specs: key ' || p.task || ' has no row in task_states' FROM task_specs p
WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = p.task)
LIMIT $1;

-- An optional row of tasks, and the column that says whether it exists.
-- name: verify_data
SELECT 'task_states: task ' || s.id || ' and task_data do not agree'
FROM task_states s LEFT JOIN task_data d ON d.task = s.task
WHERE coalesce(s.has_data, false) <> (d.task IS NOT NULL)
LIMIT $1;

-- A cancelled or stalled task stays held until its handler has stopped.
-- name: verify_held
SELECT 'task_states: task ' || id || ' is ' || status || CASE
    WHEN status IN ('claimed', 'running') AND held IS NOT TRUE THEN ' but not held'
    WHEN held AND worker_id IS NULL THEN ' and held without a worker'
    WHEN held AND coalesce(lease_token, 0) < 1 THEN ' and held without a lease'
    WHEN held AND status NOT IN ('claimed', 'running', 'cancelled', 'orphaned')
        THEN ' but still held'
    ELSE ' but parked' END
FROM task_states
WHERE (status IN ('claimed', 'running') AND held IS NOT TRUE)
    OR (held AND (worker_id IS NULL OR coalesce(lease_token, 0) < 1
        OR status NOT IN ('claimed', 'running', 'cancelled', 'orphaned')))
    OR (parked AND status <> 'pending')
LIMIT $1;

-- What a task waits for is a row beside its state: a state without its row is never found again, and
-- a row without its state is found without need.
-- name: verify_ready_rows
SELECT 'ready_rows: ' || CASE
    WHEN s.task IS NULL THEN 'a row of task key ' || r.task || ', which is not there'
    ELSE 'a row of task ' || s.id || ', which is ' || s.status || ', does not fit its state' END
FROM ready_rows r LEFT JOIN task_states s ON s.task = r.task
WHERE (s.status = 'pending' AND s.parked IS NOT TRUE AND s.lane = r.lane
    AND s.order_key = r.order_key) IS NOT TRUE
UNION ALL
SELECT 'task_states: task ' || s.id || ' is pending but has no row in ready_rows'
FROM task_states s
WHERE s.status = 'pending' AND s.parked IS NOT TRUE AND NOT EXISTS (
    SELECT 1 FROM ready_rows r
    WHERE r.lane = s.lane AND r.order_key = s.order_key AND r.task = s.task)
LIMIT $1;

-- name: verify_parked_rows
SELECT 'parked_rows: ' || CASE
    WHEN s.task IS NULL THEN 'a row of task key ' || r.task || ', which is not there'
    ELSE 'a row of task ' || s.id || ', which is ' || s.status || ', does not fit its state' END
FROM parked_rows r
LEFT JOIN task_states s ON s.task = r.task
LEFT JOIN task_specs p ON p.task = s.task
LEFT JOIN lanes l ON l.lane = s.lane
WHERE (s.status = 'pending' AND s.parked AND s.order_key = r.order_key
    AND r.parked = perdura_queue_name(l.namespace, l.queue) || chr(31)
        || coalesce(p.limit_key, '')) IS NOT TRUE
UNION ALL
SELECT 'task_states: task ' || s.id || ' is parked but has no row in parked_rows'
FROM task_states s
JOIN task_specs p ON p.task = s.task
JOIN lanes l ON l.lane = s.lane
WHERE s.status = 'pending' AND s.parked AND NOT EXISTS (
    SELECT 1 FROM parked_rows r
    WHERE r.parked = perdura_queue_name(l.namespace, l.queue) || chr(31)
        || coalesce(p.limit_key, '')
        AND r.order_key = s.order_key AND r.task = s.task)
LIMIT $1;

-- name: verify_due_rows
SELECT 'due_rows: ' || CASE
    WHEN s.task IS NULL THEN 'a row of task key ' || r.task || ', which is not there'
    ELSE 'a row of task ' || s.id || ', which is ' || s.status || ', does not fit its state' END
FROM due_rows r LEFT JOIN task_states s ON s.task = r.task
WHERE (s.status = 'delayed' AND coalesce(s.by_wall, false) = r.by_wall
    AND coalesce(s.scheduled_at, to_timestamp(0)) = r.scheduled_at) IS NOT TRUE
UNION ALL
SELECT 'task_states: task ' || s.id || ' is delayed but has no row in due_rows'
FROM task_states s
WHERE s.status = 'delayed' AND NOT EXISTS (
    SELECT 1 FROM due_rows r WHERE r.by_wall = coalesce(s.by_wall, false)
        AND r.scheduled_at = coalesce(s.scheduled_at, to_timestamp(0)) AND r.task = s.task)
LIMIT $1;

-- name: verify_held_rows
SELECT 'held_rows: ' || CASE
    WHEN s.task IS NULL THEN 'a row of task key ' || r.task || ', which is not there'
    WHEN s.held THEN 'task ' || s.id || ' is held by another worker than ' || r.worker_id
    ELSE 'a row of task ' || s.id || ', which is ' || s.status || ' and not held' END
FROM held_rows r LEFT JOIN task_states s ON s.task = r.task
WHERE (s.held AND coalesce(s.worker_id, '') = r.worker_id) IS NOT TRUE
UNION ALL
SELECT 'task_states: task ' || s.id || ' is held but has no row in held_rows'
FROM task_states s
WHERE s.held AND NOT EXISTS (
    SELECT 1 FROM held_rows r
    WHERE r.worker_id = coalesce(s.worker_id, '') AND r.task = s.task)
LIMIT $1;

-- name: verify_settled_rows
SELECT 'settled_rows: ' || CASE
    WHEN s.task IS NULL THEN 'a row of task key ' || r.task || ', which is not there'
    ELSE 'a row of task ' || s.id || ' says ' || r.status || ', but it is ' || s.status END
FROM settled_rows r LEFT JOIN task_states s ON s.task = r.task
WHERE s.task IS NULL OR s.status <> r.status
    OR s.status IN ('pending', 'claimed', 'running', 'delayed')
UNION ALL
SELECT 'task_states: task ' || s.id || ' is ' || s.status || ' but has no row in settled_rows'
FROM task_states s
WHERE s.status NOT IN ('pending', 'claimed', 'running', 'delayed') AND NOT EXISTS (
    SELECT 1 FROM settled_rows r WHERE r.status = s.status AND r.task = s.task)
LIMIT $1;

-- A claim that was released does not count as an attempt.
-- name: verify_executions
SELECT 'task_states: task ' || s.id || ' has ' || e.rows || ' executions but only '
    || coalesce(s.attempts, 0) || ' attempts'
FROM (SELECT task, count(*) AS rows FROM execution_rows WHERE status <> 'cancelled'
    GROUP BY task) e
JOIN task_states s ON s.task = e.task
WHERE e.rows > coalesce(s.attempts, 0)
UNION ALL
SELECT 'task_states: task ' || s.id || ' is held under execution ' || s.execution
    || ', which is not one of its own'
FROM task_states s
WHERE s.held AND s.execution IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM execution_rows e WHERE e.execution = s.execution AND e.task = s.task
        AND e.id = coalesce(s.execution_id, e.id))
UNION ALL
SELECT 'execution_rows: execution ' || id || ' is stored under key ' || execution
    || ', which its id does not carry'
FROM execution_rows WHERE perdura_key(id) <> execution
UNION ALL
SELECT 'execution_rows: key ' || execution || ' is there ' || count(*) || ' times'
FROM execution_rows GROUP BY execution HAVING count(*) > 1
UNION ALL
SELECT 'execution_rows: task ' || s.id || ' had lease token ' || d.lease_token || ' twice'
FROM (SELECT task, lease_token FROM execution_rows GROUP BY task, lease_token
    HAVING count(*) > 1) d
JOIN task_states s ON s.task = d.task
LIMIT $1;

-- Retention removes the oldest first, and only from ended tasks. So a task with its first event has
-- all events, and a task that has not ended has its last one and the row that opened it (again).
-- Only a status set by hand has no event.
-- name: verify_event_order
SELECT 'task_events: task ' || id || CASE
    WHEN twice IS NOT NULL THEN ' has 2 events with seq ' || twice
    WHEN last > event_seq
        THEN ' has an event with seq ' || last || ' beyond its last, ' || event_seq
    WHEN opened THEN ' has only ' || events || ' of its ' || event_seq || ' events'
    WHEN last < event_seq THEN ' has not ended and lacks its last event, ' || event_seq
    ELSE ' has not ended and lacks the event that opened it' END
FROM (SELECT s.id, coalesce(s.event_seq, 0) AS event_seq,
        s.status NOT IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
            AND coalesce(s.previous_status, '') NOT IN ('partial', 'completed', 'failed',
                'dead_letter', 'cancelled') AS open,
        p.opened IS NOT NULL OR coalesce(e.has_first, false) AS opened,
        coalesce(e.rows, 0) AS rows, coalesce(e.events, 0) AS events,
        coalesce(e.last, 0) AS last, e.twice
    FROM task_states s
    JOIN task_specs p ON p.task = s.task
    LEFT JOIN (SELECT task, sum(events) AS events, sum(rows) AS rows, max(seq) AS last,
            min(seq) FILTER (WHERE events > 1) AS twice,
            bool_or(seq = 1 AND rows > 0) AS has_first
        FROM (SELECT task, seq, count(*)::int AS events,
                (count(*) FILTER (WHERE is_row))::int AS rows
            FROM (SELECT task, seq, true AS is_row FROM task_event_rows
                UNION ALL SELECT task, claim_seq, false FROM execution_rows
                UNION ALL SELECT task, start_seq, false FROM execution_rows
                    WHERE start_seq IS NOT NULL
                UNION ALL SELECT task, end_seq, false FROM execution_rows
                    WHERE end_seq IS NOT NULL
                UNION ALL SELECT task, 1, false FROM task_specs WHERE opened IS NOT NULL) told
            GROUP BY task, seq) by_seq
        GROUP BY task) e ON e.task = s.task) tasks
WHERE twice IS NOT NULL OR last > event_seq OR (opened AND events < event_seq)
    OR (open AND (last < event_seq OR (event_seq > 0 AND NOT opened AND rows = 0)))
LIMIT $1;

-- After an end only a retry (pending) or a recovery (recovering) may follow, or an event of a user's
-- edit: its actor is USER, and its detail is not the reason of a cancel.
-- name: verify_event_ends
SELECT 'task_events: task ' || s.id || ' is ' || wrong.status || ' at seq ' || wrong.seq
    || ' after it ended as ' || wrong.before
FROM (SELECT DISTINCT ON (task) task, seq, status, before
    FROM (SELECT task, seq, status, said,
            lag(status) OVER (PARTITION BY task ORDER BY seq) AS before
        FROM (SELECT task, seq, status, actor = 'USER' AND detail IS NOT NULL
                    AND detail NOT LIKE '{"reason":%' AS said FROM task_event_rows
            UNION ALL SELECT task, claim_seq, 'claimed', false FROM execution_rows
            UNION ALL SELECT task, start_seq, 'running', false FROM execution_rows
                WHERE start_seq IS NOT NULL
            UNION ALL SELECT task, end_seq, 'completed', false FROM execution_rows
                WHERE end_seq IS NOT NULL) told) followed
    WHERE before IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
        AND status NOT IN ('pending', 'recovering') AND NOT (said AND status = before)
    ORDER BY task, seq) wrong
JOIN task_states s ON s.task = wrong.task
LIMIT $1;

-- A parent that was retried after it had ended is open again, but its dependents do not wait for it.
-- So the number lies between the parents that never ended and those that are open now. A task that
-- waits for children has run, perhaps by a retry that ignored its parents.
-- name: verify_open_dependencies
SELECT 'task_states: task ' || id || ' waits for ' || waits || ' dependencies, ' || open
    || ' are open'
FROM (SELECT s.id, coalesce(s.open_dependencies, 0)
            - (SELECT count(*) FROM job_waits w WHERE w.task_id = s.id)
            - (SELECT count(*) FROM job_runs r WHERE r.task_id = s.id AND r.waits_slot) AS waits,
        count(o.task) AS open,
        count(o.task) FILTER (WHERE NOT EXISTS (
                SELECT 1 FROM task_event_rows e WHERE e.task = o.task AND e.status IN ('partial',
                    'completed', 'failed', 'dead_letter', 'cancelled'))
            AND NOT EXISTS (SELECT 1 FROM execution_rows e WHERE e.task = o.task
                AND e.end_seq IS NOT NULL)) AS never
    FROM task_states s
    LEFT JOIN task_dependencies d ON d.task_id = s.id
    LEFT JOIN task_states o ON o.task = perdura_key(d.depends_on_task_id)
        AND o.status NOT IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
    WHERE s.status = 'blocked' AND s.waits_children IS NOT TRUE
    GROUP BY s.task) blocked
WHERE waits > open OR waits < never
LIMIT $1;

-- name: verify_open_children
SELECT 'task_states: task ' || id || ' waits for ' || waits || ' children, ' || open
    || ' are open'
FROM (SELECT s.id, coalesce(s.open_children, 0) AS waits, count(c.task) AS open,
        count(c.task) FILTER (WHERE NOT EXISTS (
                SELECT 1 FROM task_event_rows e WHERE e.task = c.task AND e.status IN ('partial',
                    'completed', 'failed', 'dead_letter', 'cancelled'))
            AND NOT EXISTS (SELECT 1 FROM execution_rows e WHERE e.task = c.task
                AND e.end_seq IS NOT NULL)) AS never
    FROM task_states s
    LEFT JOIN task_specs p ON p.parent_id = s.id
    LEFT JOIN task_states c ON c.task = p.task
        AND c.status NOT IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
    WHERE s.status = 'blocked' AND s.waits_children
    GROUP BY s.task) blocked
WHERE waits > open OR waits < never
LIMIT $1;

-- There is a row for every task of a job that has not ended, and for no other; only blocked ones wait.
-- name: verify_runs
SELECT 'job_runs: task ' || s.id || ' of a job is ' || s.status || ' but is no open run'
FROM task_specs p
JOIN task_states s ON s.task = p.task
WHERE p.job_id IS NOT NULL AND s.status NOT IN ('partial', 'completed', 'failed', 'dead_letter',
        'cancelled')
    AND NOT EXISTS (SELECT 1 FROM job_runs r WHERE r.task_id = s.id)
UNION ALL
SELECT 'job_runs: open run ' || r.task_id || CASE
    WHEN s.id IS NULL THEN ', whose task is not there'
    WHEN p.job_id IS DISTINCT FROM r.job_id THEN ' is not of the job its task has'
    WHEN p.schedule_id IS DISTINCT FROM r.schedule_id THEN ' is not of the schedule its task has'
    WHEN p.recurring_job_id IS DISTINCT FROM r.recurring_job_id
        THEN ' is not of the recurring pattern its task has'
    WHEN r.waits_slot AND s.status NOT IN ('blocked', 'paused')
        THEN ' waits for its turn, but its task is ' || s.status
    ELSE ' is ' || s.status END
FROM job_runs r
LEFT JOIN task_states s ON s.task = perdura_key(r.task_id) AND s.id = r.task_id
LEFT JOIN task_specs p ON p.task = s.task
WHERE s.id IS NULL OR p.job_id IS DISTINCT FROM r.job_id
    OR p.schedule_id IS DISTINCT FROM r.schedule_id
    OR p.recurring_job_id IS DISTINCT FROM r.recurring_job_id
    OR (r.waits_slot AND s.status NOT IN ('blocked', 'paused'))
    OR s.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
UNION ALL
SELECT 'job_waits: task ' || w.task_id || ' waits for a job' || CASE
    WHEN s.id IS NULL THEN ', but is not there' ELSE ', but is ' || s.status END
FROM (SELECT DISTINCT task_id FROM job_waits) w
LEFT JOIN task_states s ON s.task = perdura_key(w.task_id) AND s.id = w.task_id
WHERE s.id IS NULL OR s.status NOT IN ('blocked', 'paused')
LIMIT $1;

-- name: verify_orphans
SELECT 'task_event_rows: events of task key ' || r.task || ', which is not there'
FROM (SELECT DISTINCT task FROM task_event_rows) r
WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = r.task)
UNION ALL
SELECT 'execution_rows: execution ' || r.id || ' of task key ' || r.task
    || ', which is not there'
FROM execution_rows r WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = r.task)
UNION ALL
SELECT 'task_data: data of task key ' || r.task || ', which is not there'
FROM task_data r WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = r.task)
UNION ALL
SELECT 'task_tags: tag ' || r.tag || ' of task key ' || r.task || ', which is not there'
FROM task_tags r WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = r.task)
UNION ALL
SELECT 'task_uniques: ' || r.kind || ' ' || r.value || ' of task key ' || r.task
    || ', which is not there'
FROM task_uniques r WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = r.task)
    AND NOT EXISTS (SELECT 1 FROM intake_rows i WHERE i.task = r.task)
UNION ALL
SELECT 'intake_rows: ' || r.id || ', which is a task already'
FROM intake_rows r WHERE EXISTS (SELECT 1 FROM task_states s WHERE s.task = r.task)
UNION ALL
SELECT 'task_results: result of task ' || r.task_id || ', which is not there'
FROM task_results r WHERE NOT EXISTS (
    SELECT 1 FROM task_states s WHERE s.task = perdura_key(r.task_id) AND s.id = r.task_id)
UNION ALL
SELECT 'task_dependencies: dependency of task ' || r.task_id || ', which is not there'
FROM task_dependencies r WHERE NOT EXISTS (
    SELECT 1 FROM task_states s WHERE s.task = perdura_key(r.task_id) AND s.id = r.task_id)
UNION ALL
SELECT 'task_checkpoints: checkpoint ' || r.seq || ' of task ' || r.task_id
    || ', which is not there'
FROM task_checkpoints r WHERE NOT EXISTS (
    SELECT 1 FROM task_states s WHERE s.task = perdura_key(r.task_id) AND s.id = r.task_id)
UNION ALL
SELECT 'recovery_queue: entry ' || r.id || ' of task ' || r.task_id || ', which is not there'
FROM recovery_queue r WHERE NOT EXISTS (
    SELECT 1 FROM task_states s WHERE s.task = perdura_key(r.task_id) AND s.id = r.task_id)
UNION ALL
SELECT 'execution_logs: logs of execution ' || r.execution_id || ', which is not there'
FROM (SELECT DISTINCT execution_id FROM execution_logs) r WHERE NOT EXISTS (
    SELECT 1 FROM execution_rows e
    WHERE e.execution = perdura_key(r.execution_id) AND e.id = r.execution_id)
LIMIT $1;

-- Lines that no reader reaches: readers go from the task to its executions, and find tasks by the
-- keys in their ids. Rows of one key, which an index made unique afterwards does not notice: a walk in
-- steps may pass over the second one.
-- name: verify_log_runs
SELECT 'execution_logs: no reader finds the lines of execution ' || r.execution_id
    || coalesce(' of task ' || s.id, '') || CASE
    WHEN e.id IS NULL THEN ': its row in execution_rows is gone, or under another key'
    WHEN s.id IS NULL THEN ': its task has no row in task_states'
    WHEN perdura_key(s.id) <> s.task THEN ': its row in task_states is under another key'
    WHEN p.task IS NULL THEN ': its task has no row in task_specs'
    ELSE ': the lane of its task has no row in lanes' END
FROM (SELECT DISTINCT execution_id FROM execution_logs) r
LEFT JOIN execution_rows e ON e.execution = perdura_key(r.execution_id) AND e.id = r.execution_id
LEFT JOIN task_states s ON s.task = e.task
LEFT JOIN task_specs p ON p.task = s.task
LEFT JOIN lanes l ON l.lane = s.lane
WHERE p.task IS NULL OR l.lane IS NULL OR perdura_key(s.id) <> s.task
UNION ALL
SELECT 'execution_logs: line ' || seq || ' of execution ' || execution_id || ' is there ' || count(*)
    || ' times'
FROM execution_logs GROUP BY execution_id, seq HAVING count(*) > 1
UNION ALL
SELECT 'audit_log: entry ' || seq || ' is there ' || count(*) || ' times'
FROM audit_log GROUP BY seq HAVING count(*) > 1
UNION ALL
SELECT 'log_anchors: record ' || serial || ' is there ' || count(*) || ' times'
FROM log_anchors GROUP BY serial HAVING count(*) > 1
LIMIT $1;

-- name: verify_uniques
SELECT 'task_uniques: ' || u.kind || ' ' || u.value || ' is not the one task key ' || u.task
    || ' carries'
FROM task_uniques u JOIN task_specs p ON p.task = u.task
WHERE u.value IS DISTINCT FROM CASE u.kind WHEN 'key' THEN p.idempotency_key
    WHEN 'hash' THEN p.input_hash ELSE p.external_id END
LIMIT $1;

-- The next texts after $1 that carry a sum: at most $2 rows, and no more once they have $3 bytes.
-- No constraint notices a wrong letter in a text, so the caller computes the sums again.
-- name: verify_payloads
SELECT task, coalesce(id::text, task::text), payload, payload_sum
FROM (SELECT p.task, s.id, p.payload, p.payload_sum,
        sum(octet_length(p.payload)) OVER (ORDER BY p.task) - octet_length(p.payload) AS before
    FROM (SELECT task, payload, payload_sum FROM task_specs
        WHERE task > $1 AND payload IS NOT NULL AND payload_sum IS NOT NULL
        ORDER BY task LIMIT $2) p
    LEFT JOIN task_states s ON s.task = p.task) sized
WHERE before < $3 ORDER BY task;

-- name: verify_results
SELECT task_id, task_id::text AS named, payload, payload_sum
FROM (SELECT task_id, payload, payload_sum,
        sum(octet_length(payload)) OVER (ORDER BY task_id) - octet_length(payload) AS before
    FROM (SELECT task_id, payload, payload_sum FROM task_results
        WHERE task_id > coalesce($1, '00000000-0000-0000-0000-000000000000')
            AND payload_sum IS NOT NULL
        ORDER BY task_id LIMIT $2) r) sized
WHERE before < $3 ORDER BY task_id;

-- name: verify_checkpoints
SELECT task_id, seq, checkpoint_name, progress_percent, step_description, recoverable_data,
    database_state, file_state, checkpoint_hash
FROM (SELECT *, sum(bytes) OVER (ORDER BY task_id, seq) - bytes AS before
    FROM (SELECT *, octet_length(recoverable_data) + coalesce(octet_length(database_state), 0)
            + coalesce(octet_length(file_state), 0) AS bytes
        FROM task_checkpoints
        WHERE (task_id, seq) > (coalesce($1, '00000000-0000-0000-0000-000000000000'), $4)
            AND is_valid
        ORDER BY task_id, seq LIMIT $2) c) sized
WHERE before < $3 ORDER BY task_id, seq;
