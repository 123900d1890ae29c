-- One row each: whether all is well, and what was found.

-- name: doctor_version
SELECT current_setting('server_version_num')::integer >= 130000,
    'version ' || current_setting('server_version');

-- name: doctor_autovacuum
SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean,
    'autovacuum ' || current_setting('autovacuum') || ', ' || coalesce((
        SELECT n_dead_tup || ' dead of ' || n_live_tup || ' live rows in task_states, last cleaned '
            || coalesce(greatest(last_autovacuum, last_vacuum)::text, 'never')
        FROM pg_stat_user_tables WHERE relid = to_regclass('task_states')), 'no table yet');

-- name: doctor_statements
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements'),
    CASE WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements')
        THEN 'is there' ELSE 'is not there' END;

-- name: doctor_rights
SELECT coalesce(bool_and(allowed), false), 'role ' || current_user || ', schema '
    || coalesce(current_schema(), '(none)') || coalesce(': no right to write '
    || string_agg(what, ', ') FILTER (WHERE NOT allowed), '')
FROM (
    SELECT c.relname AS what, has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE')
        AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
        AND has_table_privilege(c.oid, 'DELETE') AS allowed
    FROM pg_class c WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema()))
        AND c.relkind IN ('r', 'p')
    UNION ALL
    SELECT 'new tables', has_schema_privilege(current_schema(), 'CREATE')) rights;

-- name: doctor_connections
SELECT used + 10 < most, used || ' of ' || most || ' connections are in use'
FROM (SELECT (SELECT count(*) FROM pg_stat_activity)::integer AS used,
    current_setting('max_connections')::integer AS most) c;

-- name: doctor_durability
SELECT current_setting('fsync')::boolean AND current_setting('full_page_writes')::boolean
        AND current_setting('synchronous_commit') <> 'off',
    'fsync ' || current_setting('fsync') || ', full_page_writes '
    || current_setting('full_page_writes') || ', synchronous_commit '
    || current_setting('synchronous_commit');
