-- Data keys, wrapped by key-encryption keys that are elsewhere.

-- name: key_put
INSERT INTO data_keys (id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

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

-- name: key_find
SELECT id, namespace, day, user_id, kek, wrapped, created_at, destroyed_at FROM data_keys
WHERE namespace = ?1 AND day = ?2 AND user_id = ?3 AND destroyed_at IS NULL
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
