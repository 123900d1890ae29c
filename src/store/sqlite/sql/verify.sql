-- Each statement returns one line per inconsistency: table, id, what is wrong.
-- task_key(id) is the row key inside an id, uuid_text(id) its usual form.

-- name: verify_counts
SELECT 'lane_counts: lane ' || lane || ', status ' || status || ' says ' || kept
    || ' tasks, there are ' || counted
FROM (SELECT lane, status, sum(kept) AS kept, sum(counted) AS counted FROM (
        SELECT lane, status, tasks AS kept, 0 AS counted FROM lane_counts
        UNION ALL
        SELECT lane, status, 0, count(*) FROM task_states GROUP BY lane, status
        UNION ALL
        SELECT lane, 'parked', 0, count(*) FROM task_states WHERE parked IS NOT NULL GROUP BY lane)
    GROUP BY lane, status)
WHERE kept <> counted;

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
        GROUP BY k.token)
    GROUP BY token)
WHERE kept <> counted;

-- name: verify_states
SELECT 'task_states: task ' || uuid_text(s.id) || CASE
    WHEN p.task IS NULL THEN ' has no row in task_specs'
    WHEN l.lane IS NULL THEN ' has no row in lanes'
    WHEN p.lane <> s.lane THEN ' has another lane in task_specs'
    WHEN l.category_id <> coalesce(o.category_id, zeroblob(16))
        THEN ' stands in the lane of another category'
    ELSE ' is stored under key ' || s.task || ', which its id does not carry' END
FROM task_states s
LEFT JOIN task_specs p ON p.task = s.task
LEFT JOIN lanes l ON l.lane = s.lane
LEFT JOIN task_options o ON o.task = p.options
WHERE p.task IS NULL OR l.lane IS NULL OR p.lane <> s.lane OR task_key(s.id) <> s.task
    OR l.category_id <> coalesce(o.category_id, zeroblob(16));

-- name: verify_specs
SELECT 'task_specs: key ' || p.task || ' has no row in task_states' FROM task_specs p
WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = p.task);

-- Optional rows of tasks, and the columns that say whether they exist.
-- name: verify_parts
SELECT 'task_states: task ' || uuid_text(s.id) || CASE
    WHEN s.details IS NOT x.task THEN ' and task_details do not agree'
    WHEN p.options IS NOT o.task THEN ' and task_options do not agree'
    ELSE ' and task_data do not agree' END
FROM task_states s
JOIN task_specs p ON p.task = s.task
LEFT JOIN task_details x ON x.task = s.task
LEFT JOIN task_options o ON o.task = s.task
LEFT JOIN task_data d ON d.task = s.task
WHERE s.details IS NOT x.task OR p.options IS NOT o.task
    OR coalesce(s.has_data, 0) <> (d.task IS NOT NULL)
UNION ALL
SELECT 'task_details: details of task key ' || r.task || ', which is not there'
FROM task_details r WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = r.task)
UNION ALL
SELECT 'task_options: options of task key ' || r.task || ', which is not there'
FROM task_options r WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = r.task);

-- A cancelled or stalled task stays held until its handler has stopped.
-- name: verify_held
SELECT 'task_states: task ' || uuid_text(id) || ' is ' || status || CASE
    WHEN status IN ('claimed', 'running') AND held IS NOT 1 THEN ' but not held'
    WHEN held = 1 AND worker_id IS NULL THEN ' and held without a worker'
    WHEN held = 1 AND coalesce(lease_token, 0) < 1 THEN ' and held without a lease'
    WHEN held = 1 AND status NOT IN ('claimed', 'running', 'cancelled', 'orphaned')
        THEN ' but still held'
    ELSE ' but parked' END
FROM task_states
WHERE (status IN ('claimed', 'running') AND held IS NOT 1)
    OR (held = 1 AND (worker_id IS NULL OR coalesce(lease_token, 0) < 1
        OR status NOT IN ('claimed', 'running', 'cancelled', 'orphaned')))
    OR (parked IS NOT NULL AND status <> 'pending');

-- A claim that was released does not count as an attempt.
-- name: verify_executions
SELECT 'task_states: task ' || uuid_text(s.id) || ' has ' || e.rows || ' executions but only '
    || s.attempts || ' attempts'
FROM (SELECT task, count(*) AS rows FROM execution_rows WHERE status <> 'cancelled'
    GROUP BY task) e
JOIN task_states s ON s.task = e.task
WHERE e.rows > s.attempts
UNION ALL
SELECT 'task_states: task ' || uuid_text(s.id) || ' is held under execution ' || s.execution
    || ', which is not one of its own'
FROM task_states s LEFT JOIN execution_rows e ON e.execution = s.execution
WHERE s.held = 1 AND s.execution IS NOT NULL AND e.task IS NOT s.task
UNION ALL
SELECT 'execution_rows: execution ' || uuid_text(id) || ' is stored under key ' || execution
    || ', which its id does not carry'
FROM execution_rows WHERE task_key(id) <> execution
UNION ALL
SELECT 'execution_rows: task ' || uuid_text(s.id) || ' had lease token ' || d.lease_token
    || ' twice'
FROM (SELECT task, lease_token FROM execution_rows GROUP BY task, lease_token
    HAVING count(*) > 1) d
JOIN task_states s ON s.task = d.task;

-- Task by task, so that it needs no memory for all events at once. Retention removes the oldest
-- first, and only from ended tasks. So a task with its first event has all events, and a task that
-- has not ended has its last one and the row that opened it (again). Only a status set by hand has
-- no event.
-- name: verify_event_order
SELECT 'task_events: task ' || uuid_text(id) || CASE
    WHEN twice IS NOT NULL THEN ' has 2 events with seq ' || twice
    WHEN last > event_seq
        THEN ' has an event with seq ' || last || ' beyond its last, ' || event_seq
    WHEN opened THEN ' has only ' || (told + rows) || ' of its ' || event_seq || ' events'
    WHEN last < event_seq THEN ' has not ended and lacks its last event, ' || event_seq
    ELSE ' has not ended and lacks the event that opened it' END
FROM (SELECT s.id AS id, s.event_seq AS event_seq,
        s.status NOT IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
            AND coalesce(s.previous_status, '') NOT IN ('partial', 'completed', 'failed',
                'dead_letter', 'cancelled') AS open,
        p.opened IS NOT NULL
            OR EXISTS (SELECT 1 FROM task_event_rows WHERE task = s.task AND seq = 1) AS opened,
        (SELECT count(*) FROM task_event_rows WHERE task = s.task) AS rows,
        (p.opened IS NOT NULL) + (SELECT count(claim_seq) + count(start_seq) + count(end_seq)
            FROM execution_rows WHERE task = s.task) AS told,
        max(p.opened IS NOT NULL,
            coalesce((SELECT max(seq) FROM task_event_rows WHERE task = s.task), 0),
            coalesce((SELECT max(max(claim_seq, coalesce(start_seq, 0), coalesce(end_seq, 0)))
                FROM execution_rows WHERE task = s.task), 0)) AS last,
        (SELECT seq FROM (
                SELECT seq FROM task_event_rows WHERE task = s.task
                UNION ALL SELECT claim_seq FROM execution_rows WHERE task = s.task
                UNION ALL SELECT start_seq FROM execution_rows
                    WHERE task = s.task AND start_seq IS NOT NULL
                UNION ALL SELECT end_seq FROM execution_rows
                    WHERE task = s.task AND end_seq IS NOT NULL
                UNION ALL SELECT 1 FROM task_specs WHERE task = s.task AND opened IS NOT NULL)
            GROUP BY seq HAVING count(*) > 1 LIMIT 1) AS twice
    FROM task_states s JOIN task_specs p ON p.task = s.task)
WHERE twice IS NOT NULL OR last > event_seq OR (opened AND told + rows < event_seq)
    OR (open AND (last < event_seq OR (event_seq > 0 AND NOT opened AND rows = 0)));

-- After an end only a retry (pending) or a recovery (recovering) may follow, or an event of a user's
-- edit: its actor is USER, and its detail is not the reason of a cancel.
-- name: verify_event_ends
SELECT 'task_events: task ' || uuid_text(id) || wrong
FROM (SELECT s.id AS id, (
        SELECT ' is ' || status || ' at seq ' || seq || ' after it ended as ' || before
        FROM (SELECT seq, status, said, lag(status) OVER (ORDER BY seq) AS before FROM (
                SELECT seq, status, actor = 'USER' AND detail IS NOT NULL
                    AND detail NOT LIKE '{"reason":%' AS said FROM task_event_rows
                    WHERE task = s.task
                UNION ALL SELECT claim_seq, 'claimed', 0 FROM execution_rows WHERE task = s.task
                UNION ALL SELECT start_seq, 'running', 0 FROM execution_rows
                    WHERE task = s.task AND start_seq IS NOT NULL
                UNION ALL SELECT end_seq, 'completed', 0 FROM execution_rows
                    WHERE task = s.task AND end_seq IS NOT NULL))
        WHERE before IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
            AND status NOT IN ('pending', 'recovering') AND NOT (said AND status = before)
        LIMIT 1) AS wrong
    FROM task_states s)
WHERE wrong IS NOT NULL;

-- A parent that was retried after it had ended is open again, but its dependents do not wait for it.
-- So the number lies between the parents that never ended and those that are open now. A task that
-- waits for children has run, perhaps by a retry that ignored its parents. What a run waits for
-- besides its parents (other jobs, its turn) has its own tables.
-- name: verify_open_dependencies
SELECT 'task_states: task ' || uuid_text(id) || ' waits for ' || waits || ' dependencies, ' || open
    || ' are open'
FROM (SELECT s.id AS id, coalesce(x.open_dependencies, 0)
            - (SELECT count(*) FROM job_waits w WHERE w.task_id = s.id)
            - (SELECT count(*) FROM job_runs r WHERE r.task_id = s.id AND r.waits_slot = 1)
            AS waits,
        coalesce(sum(o.open), 0) AS open, coalesce(sum(o.open AND NOT o.ended_once), 0) AS never
    FROM task_states s @details@
    LEFT JOIN task_dependencies d ON d.task_id = s.id
    LEFT JOIN (SELECT task, status NOT IN ('partial', 'completed', 'failed', 'dead_letter',
            'cancelled') AS open, EXISTS (SELECT 1 FROM task_event_rows e
            WHERE e.task = p.task AND e.status IN ('partial', 'completed', 'failed',
                'dead_letter', 'cancelled')) OR EXISTS (SELECT 1 FROM execution_rows e
            WHERE e.task = p.task AND e.end_seq IS NOT NULL) AS ended_once
        FROM task_states p) o ON o.task = task_key(d.depends_on_task_id)
    WHERE s.status = 'blocked' AND s.status <> 'pending' AND s.status <> 'claimed'
        AND s.status <> 'running' AND s.status <> 'delayed' AND x.waits_children IS NOT 1
    GROUP BY s.task)
WHERE waits > open OR waits < never;

-- name: verify_open_children
SELECT 'task_states: task ' || uuid_text(id) || ' waits for ' || waits || ' children, ' || open
    || ' are open'
FROM (SELECT s.id AS id, coalesce(x.open_children, 0) AS waits, coalesce(sum(c.status NOT IN (
            'partial', 'completed', 'failed', 'dead_letter', 'cancelled')), 0) AS open,
        coalesce(sum(c.status NOT IN ('partial', 'completed', 'failed', 'dead_letter',
            'cancelled') AND NOT EXISTS (SELECT 1 FROM task_event_rows e WHERE e.task = c.task
            AND e.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled'))
            AND NOT EXISTS (SELECT 1 FROM execution_rows e WHERE e.task = c.task
            AND e.end_seq IS NOT NULL)), 0) AS never
    FROM task_states s @details@
    LEFT JOIN task_options o ON o.parent_id = s.id
    LEFT JOIN task_states c ON c.task = o.task
    WHERE s.status = 'blocked' AND s.status <> 'pending' AND s.status <> 'claimed' AND s.status <> 'running'
    AND s.status <> 'delayed'
        AND x.waits_children = 1
    GROUP BY s.task)
WHERE waits > open OR waits < never;

-- name: verify_orphans
SELECT 'task_event_rows: events of task key ' || r.task || ', which is not there'
FROM (SELECT DISTINCT task FROM task_event_rows) r
WHERE NOT EXISTS (SELECT 1 FROM task_states s WHERE s.task = r.task)
UNION ALL
SELECT 'execution_rows: execution ' || uuid_text(r.id) || ' of task key ' || r.task
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
UNION ALL
SELECT 'task_results: result of task ' || uuid_text(r.task_id) || ', which is not there'
FROM task_results r WHERE NOT EXISTS (
    SELECT 1 FROM task_states s WHERE s.task = task_key(r.task_id) AND s.id = r.task_id)
UNION ALL
SELECT 'task_dependencies: dependency of task ' || uuid_text(r.task_id) || ', which is not there'
FROM task_dependencies r WHERE NOT EXISTS (
    SELECT 1 FROM task_states s WHERE s.task = task_key(r.task_id) AND s.id = r.task_id)
UNION ALL
SELECT 'task_checkpoints: checkpoint ' || r.seq || ' of task ' || uuid_text(r.task_id)
    || ', which is not there'
FROM task_checkpoints r WHERE NOT EXISTS (
    SELECT 1 FROM task_states s WHERE s.task = task_key(r.task_id) AND s.id = r.task_id)
UNION ALL
SELECT 'recovery_queue: entry ' || uuid_text(r.id) || ' of task ' || uuid_text(r.task_id)
    || ', which is not there'
FROM recovery_queue r WHERE NOT EXISTS (
    SELECT 1 FROM task_states s WHERE s.task = task_key(r.task_id) AND s.id = r.task_id)
UNION ALL
SELECT 'execution_logs: logs of execution ' || uuid_text(r.execution_id)
    || ', which is not there'
FROM (SELECT DISTINCT execution_id FROM execution_logs) r WHERE NOT EXISTS (
    SELECT 1 FROM execution_rows e
    WHERE e.execution = task_key(r.execution_id) AND e.id = r.execution_id);

-- There is a row for every task of a job that has not ended, and for no other; only blocked ones wait.
-- name: verify_runs
SELECT 'job_runs: task ' || uuid_text(s.id) || ' of a job is ' || s.status || ' but is no open run'
FROM task_options o
JOIN task_states s ON s.task = o.task
WHERE o.job_id IS NOT NULL AND s.status NOT IN ('partial', 'completed', 'failed', 'dead_letter',
        'cancelled')
    AND NOT EXISTS (SELECT 1 FROM job_runs r WHERE r.task_id = s.id)
UNION ALL
SELECT 'job_runs: open run ' || uuid_text(r.task_id) || CASE
    WHEN s.id IS NULL THEN ', whose task is not there'
    WHEN o.job_id IS NOT r.job_id THEN ' is not of the job its task has'
    WHEN o.schedule_id IS NOT r.schedule_id THEN ' is not of the schedule its task has'
    WHEN o.recurring_job_id IS NOT r.recurring_job_id
        THEN ' is not of the recurring pattern its task has'
    WHEN r.waits_slot = 1 AND s.status NOT IN ('blocked', 'paused')
        THEN ' waits for its turn, but its task is ' || s.status
    ELSE ' is ' || s.status END
FROM job_runs r
LEFT JOIN task_states s ON s.task = task_key(r.task_id) AND s.id = r.task_id
LEFT JOIN task_options o ON o.task = s.task
WHERE s.id IS NULL OR o.job_id IS NOT r.job_id OR o.schedule_id IS NOT r.schedule_id
    OR o.recurring_job_id IS NOT r.recurring_job_id
    OR (r.waits_slot = 1 AND s.status NOT IN ('blocked', 'paused'))
    OR s.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
UNION ALL
SELECT 'job_waits: task ' || uuid_text(w.task_id) || ' waits for a job' || CASE
    WHEN s.id IS NULL THEN ', but is not there' ELSE ', but is ' || s.status END
FROM (SELECT DISTINCT task_id FROM job_waits) w
LEFT JOIN task_states s ON s.task = task_key(w.task_id) AND s.id = w.task_id
WHERE s.id IS NULL OR s.status NOT IN ('blocked', 'paused');

-- name: verify_uniques
SELECT 'task_uniques: ' || u.kind || ' ' || u.value || ' is not the one task key ' || u.task
    || ' carries'
FROM task_uniques u
JOIN task_specs p ON p.task = u.task
LEFT JOIN task_options o ON o.task = p.options
WHERE u.value IS NOT CASE u.kind WHEN 'key' THEN p.idempotency_key
    WHEN 'hash' THEN o.input_hash ELSE o.external_id END;

-- Neither SQLite nor a constraint notices a wrong letter in a text, so payloads and results carry a
-- sum, of the text. A value that is none, and no encrypted text as bytes, is damage too.
-- name: verify_sums
SELECT 'task_specs: the payload of task ' || coalesce((SELECT uuid_text(s.id) FROM task_states s
    WHERE s.task = p.task), p.task) || ' is damaged: its sum is another one'
FROM task_specs p WHERE p.payload_sum IS NOT NULL
    AND (p.payload IS NULL OR p.payload_sum <> text_sum(p.payload))
UNION ALL
SELECT 'task_results: the result of task ' || uuid_text(task_id)
    || ' is damaged: its sum is another one'
FROM task_results WHERE payload_sum IS NOT NULL AND payload_sum <> text_sum(payload);

-- name: verify_checkpoints
SELECT @checkpoint@, k.task_id FROM task_checkpoints k WHERE k.is_valid = 1;

-- Readers compare ids of one class only, so an id of another class hides its row from them.
-- name: verify_log_classes
SELECT 'execution_logs: line ' || seq || ' of execution ' || uuid_text(execution_id)
    || ' has a value of another class than its column'
FROM execution_logs WHERE typeof(execution_id) <> 'blob' OR typeof(seq) <> 'integer'
    OR typeof(id) <> 'blob' OR typeof(namespace) <> 'text' OR typeof(log_level) <> 'text'
    OR typeof(message) <> 'text' OR typeof(context) NOT IN ('text', 'null')
    OR typeof(logged_at) <> 'integer' OR typeof(chain_hash) NOT IN ('text', 'null')
    OR typeof(removed_hash) NOT IN ('text', 'null')
UNION ALL
SELECT 'log_heads: the note at line ' || seq || ' of execution ' || uuid_text(execution_id)
    || ' has a value of another class than its column'
FROM log_heads WHERE typeof(execution_id) <> 'blob' OR typeof(seq) <> 'integer'
    OR typeof(chain_hash) <> 'text' OR typeof(lines) <> 'integer' OR typeof(closed) <> 'text'
    OR typeof(task_id) NOT IN ('blob', 'null') OR typeof(task_type) NOT IN ('text', 'null')
    OR typeof(logged_at) NOT IN ('integer', 'null') OR typeof(mac) <> 'text'
    OR typeof(from_hash) NOT IN ('text', 'null')
UNION ALL
SELECT 'log_anchors: record ' || serial || ' has a value of another class than its column'
FROM log_anchors WHERE typeof(record) <> 'text' OR typeof(record_hash) <> 'text'
    OR typeof(signature) <> 'text' OR typeof(created_at) <> 'integer'
UNION ALL
SELECT 'store_info: ' || name || ' is a value of another class than its column'
FROM store_info WHERE typeof(name) <> 'text' OR typeof(value) <> 'text'
UNION ALL
SELECT 'execution_rows: execution ' || uuid_text(id) || ' has a value of another class than its column'
FROM execution_rows WHERE typeof(id) <> 'blob' OR typeof(task) <> 'integer'
    OR typeof(status) <> 'text' OR typeof(attempt_number) <> 'integer'
    OR typeof(worker_id) NOT IN ('text', 'null') OR typeof(correlation_id) NOT IN ('text', 'null')
UNION ALL
SELECT 'task_states: task ' || uuid_text(id) || ' has a value of another class than its column'
FROM task_states WHERE typeof(id) <> 'blob' OR typeof(lane) <> 'integer'
    OR typeof(status) <> 'text'
UNION ALL
SELECT 'task_specs: the row ' || task || ' has a value of another class than its column'
FROM task_specs WHERE typeof(lane) <> 'integer'
UNION ALL
SELECT 'lanes: the row ' || lane || ' has a value of another class than its column'
FROM lanes WHERE typeof(namespace) <> 'text' OR typeof(queue) <> 'text' OR typeof(type) <> 'text'
    OR typeof(category_id) <> 'blob'
UNION ALL
SELECT 'audit_log: entry ' || seq || ' has a value of another class than its column'
FROM audit_log WHERE typeof(id) <> 'blob' OR typeof(at) <> 'integer'
    OR typeof(namespace) <> 'text' OR typeof(principal) <> 'text'
    OR typeof(token_id) NOT IN ('text', 'null') OR typeof(address) NOT IN ('text', 'null')
    OR typeof(request_id) NOT IN ('text', 'null') OR typeof(action) <> 'text'
    OR typeof(object_kind) <> 'text' OR typeof(object_id) <> 'text'
    OR typeof(change) NOT IN ('text', 'null') OR typeof(outcome) <> 'text'
    OR typeof(chain_hash) <> 'text' OR typeof(mac) <> 'text';

-- As readers reach them: by the task, and by the row that the run's id leads to.
-- name: verify_log_owners
SELECT 'execution_logs: readers do not see the lines of execution ' || uuid_text(g.execution_id)
    || ': the row of the execution, or one of its task, is missing or another one'
FROM (SELECT DISTINCT execution_id FROM execution_logs) g
WHERE NOT EXISTS (SELECT 1 FROM execution_rows e JOIN task_states s ON s.task = e.task
    JOIN task_specs p ON p.task = s.task JOIN lanes l ON l.lane = s.lane
    WHERE e.execution = task_key(g.execution_id) AND e.id = g.execution_id
        AND s.task = task_key(s.id) AND p.lane = s.lane);
