-- Data keys, wrapped by key-encryption keys that are elsewhere.

-- name: key_put
INSERT INTO data_keys (id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at)
VALUES ($1, $2, $3, $4, $5, $6, greatest($7,
    coalesce((SELECT timestamptz 'epoch' + value::bigint * interval '1 microsecond' FROM store_info
        WHERE name = 'data_keys_since'), '-infinity')), $8);

-- name: key_rewrap
UPDATE data_keys SET kek = $3, wrapped = $4
WHERE id = $1 AND kek = $2 AND destroyed_at IS NULL;

-- As long as what it overwrites, so that it takes its place.
-- name: keys_overwrite
UPDATE data_keys SET wrapped = repeat('x', length(wrapped))
WHERE destroyed_at IS NULL AND ($1::text IS NULL OR namespace = $1) AND ($2::text IS NULL OR user_id = $2);

-- name: keys_destroy
UPDATE data_keys SET destroyed_at = $3
WHERE destroyed_at IS NULL AND ($1::text IS NULL OR namespace = $1) AND ($2::text IS NULL OR user_id = $2);

-- name: keys_page
SELECT id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at FROM data_keys
WHERE ($2::uuid IS NULL OR id > $2) AND destroyed_at IS NULL AND ($1::text IS NULL OR kek <> $1) ORDER BY id LIMIT $3;

-- Those from before the last rotation of data keys encrypt nothing more; hashes keep theirs.
-- name: key_find
SELECT id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at FROM data_keys
WHERE namespace = $1 AND day = $2 AND user_id = $3 AND destroyed_at IS NULL
    AND (day = 'hash' OR created_at >= coalesce((SELECT timestamptz 'epoch' + value::bigint * interval '1 microsecond' FROM store_info
        WHERE name = 'data_keys_since'), '-infinity'))
ORDER BY created_at DESC, id DESC LIMIT 1;

-- name: key_by_id
SELECT id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at FROM data_keys
WHERE id = $1;

-- name: keys_any
SELECT 1 FROM data_keys LIMIT 1;

-- name: keys_sums
SELECT namespace, kek, count(*), count(destroyed_at), max(created_at) FROM data_keys
GROUP BY namespace, kek ORDER BY namespace, kek;

-- name: sealed_task
SELECT l.namespace, p.user_id, coalesce(p.encrypt, false), p.encrypt_fields
FROM task_specs p JOIN lanes l ON l.lane = p.lane
WHERE p.task = $1;

-- Texts of the next tasks that may hold a stored form, each with its place; place 0 is the task.
-- name: again_texts
WITH w AS MATERIALIZED (SELECT task, id FROM task_states WHERE task > $1 ORDER BY task LIMIT $2)
SELECT 0::bigint, task, 0::bigint, id, NULL::text FROM w
UNION ALL SELECT 1, p.task, 0, (SELECT id FROM w WHERE w.task = p.task), p.payload FROM task_specs p
WHERE p.task = ANY (ARRAY(SELECT task FROM w)) AND strpos(p.payload, 'pdx1|') > 0
UNION ALL SELECT 2, d.task, 0, (SELECT id FROM w WHERE w.task = d.task), d.data FROM task_data d
WHERE d.task = ANY (ARRAY(SELECT task FROM w)) AND strpos(d.data, 'pdx1|') > 0
UNION ALL SELECT 3, s.task, 0, s.id, s.error FROM task_states s
WHERE s.task = ANY (ARRAY(SELECT task FROM w)) AND strpos(s.error, 'pdx1|') > 0
UNION ALL SELECT 4, s.task, 0, s.id, s.last_error FROM task_states s
WHERE s.task = ANY (ARRAY(SELECT task FROM w)) AND strpos(s.last_error, 'pdx1|') > 0
UNION ALL SELECT 5, s.task, 0, s.id, s.error_details FROM task_states s
WHERE s.task = ANY (ARRAY(SELECT task FROM w)) AND strpos(s.error_details, 'pdx1|') > 0
UNION ALL SELECT 6, s.task, 0, s.id, s.checkpoint_data FROM task_states s
WHERE s.task = ANY (ARRAY(SELECT task FROM w)) AND strpos(s.checkpoint_data, 'pdx1|') > 0
UNION ALL SELECT 7, perdura_key(r.task_id), 0, r.task_id, r.payload FROM task_results r
WHERE r.task_id = ANY (ARRAY(SELECT id FROM w)) AND strpos(r.payload, 'pdx1|') > 0
UNION ALL SELECT 8, e.task, e.execution, NULL, e.result_data FROM execution_rows e
WHERE e.task = ANY (ARRAY(SELECT task FROM w)) AND strpos(e.result_data, 'pdx1|') > 0
UNION ALL SELECT 9, e.task, e.execution, NULL, e.error_data FROM execution_rows e
WHERE e.task = ANY (ARRAY(SELECT task FROM w)) AND strpos(e.error_data, 'pdx1|') > 0
UNION ALL SELECT 10, v.task, v.seq, NULL, v.detail FROM task_event_rows v
WHERE v.task = ANY (ARRAY(SELECT task FROM w)) AND strpos(v.detail, 'pdx1|') > 0
UNION ALL SELECT 11, perdura_key(q.task_id), 0, q.id, q.error_message FROM recovery_queue q
WHERE q.task_id = ANY (ARRAY(SELECT id FROM w)) AND strpos(q.error_message, 'pdx1|') > 0
UNION ALL SELECT 12, perdura_key(q.task_id), 0, q.id, q.recovery_result::text FROM recovery_queue q
WHERE q.task_id = ANY (ARRAY(SELECT id FROM w)) AND strpos(q.recovery_result::text, 'pdx1|') > 0
UNION ALL SELECT 13, perdura_key(c.task_id), c.seq, c.task_id, NULL FROM task_checkpoints c
WHERE c.task_id = ANY (ARRAY(SELECT id FROM w)) AND (strpos(c.recoverable_data, 'pdx1|') > 0
    OR strpos(c.database_state, 'pdx1|') > 0 OR strpos(c.file_state, 'pdx1|') > 0);

-- name: again_last
SELECT max(task) FROM task_states;

-- name: again_payload
UPDATE task_specs SET payload = $3, payload_sum = NULL WHERE task = $1 AND payload = $2;

-- name: again_data
UPDATE task_data SET data = $3 WHERE task = $1 AND data = $2;

-- name: again_error
UPDATE task_states SET error = $3 WHERE task = $1 AND error = $2;

-- name: again_last_error
UPDATE task_states SET last_error = $3 WHERE task = $1 AND last_error = $2;

-- name: again_details
UPDATE task_states SET error_details = $3 WHERE task = $1 AND error_details = $2;

-- name: again_resume
UPDATE task_states SET checkpoint_data = $3 WHERE task = $1 AND checkpoint_data = $2;

-- name: again_result
UPDATE task_results SET payload = $3, payload_sum = NULL WHERE task_id = $1 AND payload = $2;

-- name: again_outcome
UPDATE execution_rows SET result_data = $3 WHERE execution = $1 AND result_data = $2;

-- name: again_failure
UPDATE execution_rows SET error_data = $3 WHERE execution = $1 AND error_data = $2;

-- name: again_detail
UPDATE task_event_rows SET detail = $4 WHERE task = $1 AND seq = $2 AND detail = $3;

-- name: again_recovery_error
UPDATE recovery_queue SET error_message = $3 WHERE id = $1 AND error_message = $2;

-- name: again_recovery_result
UPDATE recovery_queue SET recovery_result = $3::text::jsonb WHERE id = $1 AND recovery_result::text = $2;

-- name: again_checkpoint
SELECT @checkpoint@ FROM task_checkpoints k WHERE k.task_id = $1 AND k.seq = $2;

-- name: again_checkpoint_put
UPDATE task_checkpoints SET recoverable_data = $3, database_state = $4, file_state = $5, checkpoint_hash = $6
WHERE task_id = $1 AND seq = $2;
