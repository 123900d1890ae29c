-- Data keys, wrapped by key-encryption keys that are elsewhere.

-- name: key_put
INSERT INTO data_keys (id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, max(?7,
    coalesce((SELECT CAST(value AS INTEGER) FROM store_info WHERE name = 'data_keys_since'), 0)), ?8);

-- name: key_rewrap
UPDATE data_keys SET kek = ?3, wrapped = ?4
WHERE id = ?1 AND kek = ?2 AND destroyed_at IS NULL;

-- As long as what it overwrites, so that it takes its place.
-- name: keys_overwrite
UPDATE data_keys SET wrapped = substr(printf('%0200d', 0), 1, length(wrapped))
WHERE destroyed_at IS NULL AND (?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR user_id = ?2);

-- name: keys_destroy
UPDATE data_keys SET destroyed_at = ?3
WHERE destroyed_at IS NULL AND (?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR user_id = ?2);

-- name: keys_page
SELECT id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at FROM data_keys
WHERE (?2 IS NULL OR id > ?2) AND destroyed_at IS NULL AND (?1 IS NULL OR kek <> ?1) ORDER BY id LIMIT ?3;

-- Those from before the last rotation of data keys encrypt nothing more; hashes keep theirs.
-- name: key_find
SELECT id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at FROM data_keys
WHERE namespace = ?1 AND day = ?2 AND user_id = ?3 AND destroyed_at IS NULL
    AND (day = 'hash' OR created_at >= coalesce((SELECT CAST(value AS INTEGER) FROM store_info WHERE name = 'data_keys_since'), 0))
ORDER BY created_at DESC, id DESC LIMIT 1;

-- name: key_by_id
SELECT id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at FROM data_keys
WHERE id = ?1;

-- name: keys_any
SELECT 1 FROM data_keys LIMIT 1;

-- name: keys_sums
SELECT namespace, kek, count(*), count(destroyed_at), max(created_at) FROM data_keys
GROUP BY namespace, kek ORDER BY namespace, kek;

-- name: sealed_task
SELECT l.namespace, o.user_id, coalesce(p.encrypt, 0), o.encrypt_fields
FROM task_specs p JOIN lanes l ON l.lane = p.lane LEFT JOIN task_options o ON o.task = p.options
WHERE p.task = ?1;

-- Texts of the next tasks that may hold a stored form, each with its place; place 0 is the task.
-- name: again_texts
WITH w AS MATERIALIZED (SELECT task, id FROM task_states WHERE task > ?1 ORDER BY task LIMIT ?2)
SELECT 0, task, 0, id, NULL FROM w
UNION ALL SELECT 1, w.task, 0, w.id, sealed_text(p.payload) FROM w CROSS JOIN task_specs p ON p.task = w.task
WHERE instr(p.payload, 'pdx1|') > 0
UNION ALL SELECT 2, w.task, 0, w.id, sealed_text(d.data) FROM w CROSS JOIN task_data d ON d.task = w.task
WHERE instr(d.data, 'pdx1|') > 0
UNION ALL SELECT 3, w.task, 0, w.id, x.error FROM w CROSS JOIN task_details x ON x.task = w.task
WHERE instr(x.error, 'pdx1|') > 0
UNION ALL SELECT 4, w.task, 0, w.id, x.last_error FROM w CROSS JOIN task_details x ON x.task = w.task
WHERE instr(x.last_error, 'pdx1|') > 0
UNION ALL SELECT 5, w.task, 0, w.id, x.error_details FROM w CROSS JOIN task_details x ON x.task = w.task
WHERE instr(x.error_details, 'pdx1|') > 0
UNION ALL SELECT 6, w.task, 0, w.id, x.checkpoint_data FROM w CROSS JOIN task_details x ON x.task = w.task
WHERE instr(x.checkpoint_data, 'pdx1|') > 0
UNION ALL SELECT 7, w.task, 0, w.id, sealed_text(r.payload) FROM w CROSS JOIN task_results r ON r.task_id = w.id
WHERE instr(r.payload, 'pdx1|') > 0
UNION ALL SELECT 8, w.task, e.execution, w.id, sealed_text(e.result_data) FROM w CROSS JOIN execution_rows e ON e.task = w.task
WHERE instr(e.result_data, 'pdx1|') > 0
UNION ALL SELECT 9, w.task, e.execution, w.id, e.error_data FROM w CROSS JOIN execution_rows e ON e.task = w.task
WHERE instr(e.error_data, 'pdx1|') > 0
UNION ALL SELECT 10, w.task, v.seq, w.id, v.detail FROM w CROSS JOIN task_event_rows v ON v.task = w.task
WHERE instr(v.detail, 'pdx1|') > 0
UNION ALL SELECT 11, w.task, 0, q.id, q.error_message FROM w CROSS JOIN recovery_queue q ON q.task_id = w.id
WHERE instr(q.error_message, 'pdx1|') > 0
UNION ALL SELECT 12, w.task, 0, q.id, q.recovery_result FROM w CROSS JOIN recovery_queue q ON q.task_id = w.id
WHERE instr(q.recovery_result, 'pdx1|') > 0
UNION ALL SELECT 13, w.task, c.seq, w.id, NULL FROM w CROSS JOIN task_checkpoints c ON c.task_id = w.id
WHERE instr(c.recoverable_data, 'pdx1|') > 0 OR instr(c.database_state, 'pdx1|') > 0 OR instr(c.file_state, 'pdx1|') > 0;

-- name: again_last
SELECT max(task) FROM task_states;

-- name: again_payload
UPDATE task_specs SET payload = sealed_bytes(?3) WHERE task = ?1 AND payload IN (?2, sealed_bytes(?2));

-- name: again_data
UPDATE task_data SET data = sealed_bytes(?3) WHERE task = ?1 AND data IN (?2, sealed_bytes(?2));

-- name: again_error
UPDATE task_details SET error = ?3 WHERE task = ?1 AND error = ?2;

-- name: again_last_error
UPDATE task_details SET last_error = ?3 WHERE task = ?1 AND last_error = ?2;

-- name: again_details
UPDATE task_details SET error_details = ?3 WHERE task = ?1 AND error_details = ?2;

-- name: again_resume
UPDATE task_details SET checkpoint_data = ?3 WHERE task = ?1 AND checkpoint_data = ?2;

-- name: again_result
UPDATE task_results SET payload = sealed_bytes(?3) WHERE task_id = ?1 AND payload IN (?2, sealed_bytes(?2));

-- name: again_outcome
UPDATE execution_rows SET result_data = sealed_bytes(?3) WHERE execution = ?1 AND result_data IN (?2, sealed_bytes(?2));

-- name: again_failure
UPDATE execution_rows SET error_data = ?3 WHERE execution = ?1 AND error_data = ?2;

-- name: again_detail
UPDATE task_event_rows SET detail = ?4 WHERE task = ?1 AND seq = ?2 AND detail = ?3;

-- name: again_recovery_error
UPDATE recovery_queue SET error_message = ?3 WHERE id = ?1 AND error_message = ?2;

-- name: again_recovery_result
UPDATE recovery_queue SET recovery_result = ?3 WHERE id = ?1 AND recovery_result = ?2;

-- name: again_checkpoint
SELECT @checkpoint@ FROM task_checkpoints k WHERE k.task_id = ?1 AND k.seq = ?2;

-- name: again_checkpoint_put
UPDATE task_checkpoints SET recoverable_data = ?3, database_state = ?4, file_state = ?5, checkpoint_hash = ?6
WHERE task_id = ?1 AND seq = ?2;
