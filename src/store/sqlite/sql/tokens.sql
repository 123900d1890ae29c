-- API tokens: read as a whole at the start, changed one by one.

-- name: token_put
INSERT INTO api_tokens (@token.names@) VALUES (@token.values@)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, former_hash = excluded.former_hash,
    former_until = excluded.former_until, expires_at = excluded.expires_at,
    revoked_at = excluded.revoked_at, generation = excluded.generation;

-- name: token_by_id
SELECT @token@ FROM api_tokens k WHERE k.id = ?1;

-- name: tokens_changed
SELECT @token@ FROM api_tokens k WHERE k.generation > ?1 ORDER BY k.generation;

-- name: tokens_all
SELECT @token@ FROM api_tokens k ORDER BY k.id;

-- name: tokens_count
SELECT count(*) FROM api_tokens;

-- name: tokens_used
UPDATE api_tokens SET last_used_at = ?2
WHERE id = ?1 AND coalesce(last_used_at, 0) < ?2;

-- name: token_generation
SELECT CAST(value AS INTEGER) FROM store_info WHERE name = 'token_generation';

-- name: token_generation_next
INSERT INTO store_info (name, value) VALUES ('token_generation', '1')
ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)
RETURNING CAST(value AS INTEGER);

-- name: task_adopt
UPDATE task_specs SET created_by_principal = ?2 WHERE task = ?1;

-- name: token_hold
SELECT 1 FROM api_tokens WHERE id = ?1;

-- name: token_open_tasks
SELECT coalesce(sum(tasks), 0) FROM token_counts WHERE token = ?1;

-- name: token_counts_add
INSERT INTO token_counts (token, tasks) VALUES (?1, ?2)
ON CONFLICT (token) DO UPDATE SET tasks = tasks + excluded.tasks;
