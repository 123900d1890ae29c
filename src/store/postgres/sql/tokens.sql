-- API tokens: read as a whole at the start, changed one by one.

-- name: token_put
INSERT INTO api_tokens (@token.names@) VALUES (@token.values@)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, former_hash = excluded.former_hash,
    former_until = excluded.former_until, expires_at = excluded.expires_at,
    revoked_at = excluded.revoked_at, generation = excluded.generation;

-- name: token_by_id
SELECT @token@ FROM api_tokens k WHERE k.id = $1;

-- name: tokens_changed
SELECT @token@ FROM api_tokens k WHERE k.generation > $1 ORDER BY k.generation;

-- name: tokens_all
SELECT @token@ FROM api_tokens k ORDER BY k.id;

-- name: tokens_count
SELECT count(*)::bigint FROM api_tokens;

-- name: tokens_used
UPDATE api_tokens k SET last_used_at = v.used_at
FROM (SELECT * FROM unnest($1::text[], $2::timestamptz[]) AS u (id, used_at) ORDER BY u.id) v
WHERE k.id = v.id AND (k.last_used_at IS NULL OR k.last_used_at < v.used_at);

-- name: token_generation
SELECT value::bigint FROM store_info WHERE name = 'token_generation';

-- name: token_generation_next
INSERT INTO store_info AS i (name, value) VALUES ('token_generation', '1')
ON CONFLICT (name) DO UPDATE SET value = (i.value::bigint + 1)::text
RETURNING value::bigint;

-- name: task_adopt
UPDATE task_specs SET created_by_principal = $2 WHERE task = $1;

-- name: token_hold
SELECT 1::bigint FROM api_tokens WHERE id = $1 FOR NO KEY UPDATE;

-- name: token_open_tasks
SELECT coalesce(sum(tasks), 0)::bigint FROM token_counts WHERE token = $1;

-- name: token_counts_add
INSERT INTO token_counts (token, tasks) SELECT * FROM unnest($1::text[], $2::bigint[]);
