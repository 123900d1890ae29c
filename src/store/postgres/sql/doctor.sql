-- Each statement returns one row: whether all is well, and what was found.

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

-- Months are reached through their parent tables; a function has the right to make and drop them.
-- name: doctor_rights
SELECT coalesce(bool_and(allowed), false), 'role ' || current_user || ', schema '
    || coalesce(current_schema(), '(none)') || coalesce(': no right to '
    || string_agg(what, ', ') FILTER (WHERE NOT allowed), '')
FROM (
    SELECT 'write ' || c.relname AS what, has_table_privilege(c.oid, 'SELECT')
        AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
        AND has_table_privilege(c.oid, 'DELETE') AS allowed
    FROM pg_class c WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema()))
        AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'schema_migrations'
    UNION ALL
    SELECT 'read ' || c.relname, has_table_privilege(c.oid, 'SELECT')
    FROM pg_class c WHERE c.oid = to_regclass('schema_migrations')
    UNION ALL
    SELECT 'use ' || c.relname, has_sequence_privilege(c.oid, 'USAGE')
    FROM pg_class c
    WHERE c.oid IN (to_regclass('task_keys'), to_regclass('execution_keys'),
        to_regclass('outbox_keys'))
    UNION ALL
    SELECT 'call ' || p.proname, has_function_privilege(p.oid, 'EXECUTE')
    FROM pg_proc p WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
        AND p.proname LIKE 'perdura\_%') rights;

-- The role for SQL from outside ($1): it must not get around its policies, and must have them.
-- name: doctor_sql_role
SELECT unfit IS NULL AND members IS NULL AND lacks IS NULL, CASE
    WHEN $1::text = '' THEN 'none is named'
    WHEN NOT EXISTS (SELECT FROM pg_roles WHERE rolname = $1::text)
        THEN 'the role ' || $1::text || ' is not there; with it, others could read their rows with SQL'
    ELSE 'the role ' || $1::text || coalesce(' ' || unfit, '')
        || coalesce(': its members get around its policies: ' || members, '')
        || coalesce(' lacks: ' || lacks, '')
        || CASE WHEN unfit IS NULL AND members IS NULL AND lacks IS NULL THEN ' sees its own rows only'
            ELSE '' END END
FROM (SELECT perdura_share_unfit($1::text) AS unfit,
    (SELECT string_agg(m.rolname || ' ' || perdura_share_unfit(m.rolname), ', ' ORDER BY m.rolname)
        FROM pg_roles m JOIN pg_roles r ON r.rolname = $1::text
        WHERE m.oid <> r.oid AND pg_has_role(m.oid, r.oid, 'MEMBER')
            AND m.oid <> (SELECT relowner FROM pg_class WHERE oid = to_regclass('task_specs'))
            AND NOT m.rolsuper AND perdura_share_unfit(m.rolname) IS NOT NULL) AS members,
    (SELECT string_agg(l.lacks, ', ') FROM (SELECT lacks FROM perdura_share_lacks($1::text,
        current_setting('server_version_num')::integer < 150000) LIMIT 5) l) AS lacks) found;

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

-- name: doctor_months
SELECT count(missing) = 0, CASE WHEN count(missing) = 0 THEN 'this one and the next are there'
        ELSE string_agg(missing, ', ') || ' not there' END
    || ', ' || pg_size_pretty(pg_relation_size('task_event_rows_other')
        + pg_relation_size('execution_rows_other')) || ' of rows are in none'
FROM (SELECT CASE WHEN to_regclass(m.name) IS NULL THEN m.name END AS missing
    FROM (SELECT perdura_month_name(p.parent, (date_trunc('month', now() AT TIME ZONE 'UTC')
            + make_interval(months => ahead))::date) AS name
        FROM (VALUES ('task_event_rows'), ('execution_rows')) AS p (parent),
            generate_series(0, 1) AS ahead) m) names;

-- Foreign keys that keep our rows from being removed. Two of our own tables do that on purpose.
-- name: doctor_references
SELECT count(*) = 0, CASE WHEN count(*) = 0 THEN 'no table of yours blocks removals'
    ELSE 'rows of these tables of yours block removals: ' || string_agg(t.name, ', ' ORDER BY t.name) END
FROM (SELECT DISTINCT k.conrelid::regclass::text AS name
    FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class o ON o.oid = k.confrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = o.relnamespace AND n.nspname = current_schema()
    WHERE k.contype = 'f' AND k.confdeltype IN ('a', 'r')
        AND k.conrelid <> ALL (ARRAY['jobs'::regclass, 'recurring_jobs'::regclass])) t;

-- name: doctor_checks
SELECT current_setting('data_checksums')::boolean AND perdura_index_checker() IS NOT NULL,
    'checksums of pages ' || current_setting('data_checksums') || ', amcheck '
    || CASE WHEN perdura_index_checker() IS NOT NULL THEN 'is there'
        ELSE 'is not available' END;
