-- Data lost: who asked for events, and whose rights plans run with
DROP VIEW task_events;
ALTER TABLE task_event_rows DROP COLUMN principal;
ALTER TABLE jobs DROP COLUMN created_by_principal;
ALTER TABLE schedules DROP COLUMN created_by_principal;
ALTER TABLE recurring_jobs DROP COLUMN created_by_principal;

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
