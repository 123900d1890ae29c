-- Data lost: who asked for events, and whose rights plans run with
DROP VIEW task_events;
ALTER TABLE task_event_rows DROP COLUMN principal;
ALTER TABLE jobs DROP COLUMN created_by_principal;
ALTER TABLE schedules DROP COLUMN created_by_principal;
ALTER TABLE recurring_jobs DROP COLUMN created_by_principal;

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
