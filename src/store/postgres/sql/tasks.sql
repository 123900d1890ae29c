-- Tasks: rows, data, tags, uniqueness; lanes, counts, keys and marks. Arrays come as parameters and
-- become rows by unnest, in the order they are given.

-- name: mark
SELECT perdura_mark($1, $2);

-- name: mark_make
INSERT INTO writer_marks (writer, seq) VALUES ($1, $2)
ON CONFLICT (writer) DO UPDATE SET seq = excluded.seq;

-- Did a transaction commit? Waits for it if it is still open. If it did not, it never will.
-- name: mark_settle
WITH seen AS (SELECT seq FROM writer_marks WHERE writer = $1 FOR UPDATE)
UPDATE writer_marks m SET seq = $2 + 2 FROM seen WHERE m.writer = $1 AND seen.seq >= $2
RETURNING seen.seq; -- one that is behind belongs to another past, and stays so that it is noticed

-- Waits only for a node that is taking over; a node that wants to take over waits for us.
-- name: lead_guard
SELECT perdura_expect(count(*), 1, 'leader')
FROM (SELECT FROM leadership WHERE namespace = '*' AND epoch = $1 AND holder = $2
    AND until > clock_timestamp() FOR SHARE) l;

-- The newest time in the store: a writer's note, or that of the newest task or execution.
-- name: last_time
SELECT greatest(
    (SELECT timestamptz 'epoch' + value::bigint * interval '1 microsecond' FROM store_info
        WHERE name = 'last_time_us'),
    (SELECT created_at FROM task_specs ORDER BY task DESC LIMIT 1),
    (SELECT created_at FROM execution_rows ORDER BY execution DESC LIMIT 1));

-- Blocks of keys; none if the last block given out is still $2.
-- name: task_keys
SELECT nextval('task_keys') FROM generate_series(1, $1::bigint)
WHERE pg_sequence_last_value('task_keys') IS DISTINCT FROM $2::bigint;

-- name: execution_keys
SELECT nextval('execution_keys') FROM generate_series(1, $1::bigint)
WHERE pg_sequence_last_value('execution_keys') IS DISTINCT FROM $2::bigint;

-- name: outbox_keys
SELECT nextval('outbox_keys');

-- name: lanes_all
SELECT lane, namespace, queue, type, category_id FROM lanes;

-- name: lane_make
INSERT INTO lanes (namespace, queue, type, category_id) VALUES ($1, $2, $3,
    coalesce($4, '00000000-0000-0000-0000-000000000000'))
ON CONFLICT (namespace, queue, type, category_id) DO NOTHING;

-- name: lane_find
SELECT lane, namespace, queue, type, category_id FROM lanes
WHERE namespace = $1 AND queue = $2 AND type = $3
    AND category_id = coalesce($4, '00000000-0000-0000-0000-000000000000');

-- name: lane_by_number
SELECT lane, namespace, queue, type, category_id FROM lanes WHERE lane = $1;

-- name: counts_add
INSERT INTO lane_counts (lane, status, tasks) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[]);

-- name: counts_fold
WITH gone AS (DELETE FROM lane_counts RETURNING lane, status, tasks)
INSERT INTO lane_counts (lane, status, tasks)
SELECT lane, status, sum(tasks) FROM gone GROUP BY lane, status HAVING sum(tasks) <> 0;

-- name: counts_of_queue
SELECT coalesce(sum(CASE c.status WHEN 'pending' THEN c.tasks WHEN 'parked' THEN -c.tasks
    ELSE 0 END), 0)::bigint
FROM lanes l JOIN lane_counts c ON c.lane = l.lane WHERE l.namespace = $1 AND l.queue = $2;

-- name: tasks_state
SELECT @state@ FROM task_states s WHERE s.task = ANY ($1::bigint[]);

-- name: tasks_lean
SELECT @state@, @lean@ FROM task_states s JOIN task_specs p ON p.task = s.task AND p.lane = s.lane
WHERE s.task = ANY ($1::bigint[]);

-- name: tasks_full
SELECT @state@, @spec@, d.data FROM task_states s JOIN task_specs p ON p.task = s.task AND p.lane = s.lane
LEFT JOIN task_data d ON d.task = s.task AND s.has_data
WHERE s.task = ANY ($1::bigint[]);

-- name: data_put
INSERT INTO task_data (task, data) SELECT * FROM unnest($1::bigint[], $2::text[])
ON CONFLICT (task) DO UPDATE SET data = excluded.data;

-- name: data_delete
DELETE FROM task_data WHERE task = ANY ($1::bigint[]);

-- name: tags_insert
INSERT INTO task_tags (namespace, tag, task) SELECT $1, tag, $2 FROM unnest($3::text[]) AS tag
ON CONFLICT DO NOTHING;

-- name: uniques_insert
INSERT INTO task_uniques (namespace, kind, type, value, task)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
ON CONFLICT DO NOTHING RETURNING task, kind, value;

-- name: uniques_owner
SELECT v.at, u.task, s.id
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
    AS v (namespace, kind, type, value, at)
JOIN task_uniques u ON u.namespace = v.namespace AND u.kind = v.kind AND u.type = v.type
    AND u.value = v.value
LEFT JOIN task_states s ON s.task = u.task;

-- name: unique_task
SELECT task FROM task_uniques WHERE namespace = $1 AND kind = $2 AND type = $3 AND value = $4;

-- name: uniques_delete
DELETE FROM task_uniques u
USING unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
    AS v (namespace, kind, type, value, task)
WHERE u.namespace = v.namespace AND u.kind = v.kind AND u.type = v.type AND u.value = v.value
    AND u.task = v.task;

-- Of executions that were checked ($3), or all ($2).
-- name: delete_logs
WITH gone AS (
    DELETE FROM execution_logs WHERE execution_id IN
        (SELECT id FROM execution_rows WHERE task = ANY ($1::bigint[]))
        AND ($2 OR execution_id = ANY ($3::uuid[]))
    RETURNING execution_id, seq, chain_hash, logged_at),
forgotten AS (
    DELETE FROM log_heads h USING (SELECT execution_id, max(seq) AS seq FROM gone
        GROUP BY execution_id) o
    WHERE h.execution_id = o.execution_id AND h.seq <= o.seq)
SELECT DISTINCT ON (execution_id) execution_id, seq, chain_hash,
    count(*) OVER (PARTITION BY execution_id), max(logged_at) OVER (PARTITION BY execution_id)
FROM gone ORDER BY execution_id, seq DESC;

-- Guarded like every write: of two nodes that remove the same task, only one does and counts it.
-- name: delete_by_task
WITH executions AS (DELETE FROM execution_rows WHERE task = ANY ($1::bigint[])),
    events AS (DELETE FROM task_event_rows WHERE task = ANY ($1::bigint[])),
    tags AS (DELETE FROM task_tags t USING task_specs p, lanes l,
            jsonb_array_elements_text(p.tags::jsonb) AS tag
        WHERE p.task = ANY ($1::bigint[]) AND p.tags IS NOT NULL AND l.lane = p.lane
            AND t.namespace = l.namespace AND t.tag = tag.value AND t.task = p.task),
    texts AS (DELETE FROM task_data WHERE task = ANY ($1::bigint[])),
    specs AS (DELETE FROM task_specs WHERE task = ANY ($1::bigint[])),
    states AS (DELETE FROM task_states s USING unnest($1::bigint[], $2::bigint[]) AS k (task, rev)
        WHERE s.task = k.task AND s.rev = k.rev RETURNING 1)
SELECT perdura_expect(count(*), cardinality($1::bigint[]), 'tasks') FROM states;

-- name: delete_by_id
WITH checkpoints AS (DELETE FROM task_checkpoints WHERE task_id = ANY ($1::uuid[])),
    parents AS (DELETE FROM task_dependencies WHERE task_id = ANY ($1::uuid[])),
    dependents AS (DELETE FROM task_dependencies WHERE depends_on_task_id = ANY ($1::uuid[])
        AND task_id <> ALL ($1::uuid[])),
    recoveries AS (DELETE FROM recovery_queue WHERE task_id = ANY ($1::uuid[]))
DELETE FROM task_results WHERE task_id = ANY ($1::uuid[]);
