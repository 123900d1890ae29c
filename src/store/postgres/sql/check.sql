-- Checks that the database is still the same one, and that its indexes are intact.

-- name: check_mark
SELECT seq FROM writer_marks WHERE writer = $1;

-- name: check_settings
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', '1s', true);

-- The indexes that can be checked, small ones first, so that a time limit leaves out the fewest.
-- name: check_indexes
SELECT c.oid::bigint, t.relname::text, c.relname::text
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_am a ON a.oid = c.relam
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind = 'i' AND a.amname = 'btree' AND i.indisvalid
    AND perdura_index_checker() IS NOT NULL
    AND (NOT $2 OR t.relname IN ('execution_logs', 'log_heads', 'log_anchors', 'store_info', 'task_states',
            'task_specs', 'lanes', 'audit_log')
        OR t.relname LIKE 'execution_rows%')
ORDER BY c.relpages, c.oid LIMIT $1;

-- name: check_index
SELECT perdura_index_check($1::bigint::oid);
