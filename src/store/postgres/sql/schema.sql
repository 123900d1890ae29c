-- The parts of the store's schema, one row each: kind, name, table, and the hash of its definition.
-- Months of partitioned tables come and go, so only parts that must not be on them are listed.
-- schema.txt has the rows of a new store.

-- Allows plans of any kind for the system tables; our settings prefer key look-ups. The settings that
-- decide how the database prints its objects are those of the recorded list.
-- name: schema_settings
SELECT set_config('enable_hashjoin', $1, true), set_config('enable_mergejoin', $1, true),
    set_config('enable_seqscan', $1, true), set_config('quote_all_identifiers', 'off', true),
    set_config('standard_conforming_strings', 'on', true), set_config('datestyle', 'ISO', true),
    set_config('intervalstyle', 'postgres', true), set_config('bytea_output', 'hex', true),
    set_config('extra_float_digits', '1', true);

-- A prepared statement of that name would run instead of ours.
-- name: schema_session
SELECT name FROM pg_catalog.pg_prepared_statements WHERE from_sql LIMIT 1;

-- Tables in other schemas that refer to one of this schema.
-- name: schema_referrers
SELECT DISTINCT k.conrelid::regclass::text AS name
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
JOIN pg_catalog.pg_class o ON o.oid = k.confrelid
JOIN pg_catalog.pg_namespace n ON n.oid = o.relnamespace AND n.nspname = current_schema()
WHERE k.contype = 'f' AND c.relnamespace <> o.relnamespace
ORDER BY 1;

-- What the role for SQL from outside lacks and this connection can give, and why it must not have it.
-- name: share_lacks
SELECT EXISTS (SELECT FROM perdura_share_lacks($1::text, current_setting('server_version_num')::integer < 150000))
        AND pg_has_role(c.relowner, 'USAGE'),
    coalesce(perdura_share_unfit($1::text), '')
FROM pg_catalog.pg_class c WHERE c.oid = to_regclass('task_specs');

-- name: share
SELECT perdura_share($1::text, current_setting('server_version_num')::integer < 150000);

-- name: schema_parts
WITH RECURSIVE place AS (SELECT oid, quote_ident(nspname) AS shown FROM pg_catalog.pg_namespace
    WHERE nspname = current_schema()),
relations AS MATERIALIZED (SELECT c.oid, c.relname::text AS name, c.relkind AS kind, c.relpersistence,
        c.relrowsecurity, c.relforcerowsecurity, c.reloptions,
        c.relispartition AND c.relkind = 'r' AND c.relname ~ '_[0-9]{4}_?[0-9]{2}$' AS is_month
    FROM pg_catalog.pg_class c, place WHERE c.relnamespace = place.oid
        AND c.relkind NOT IN ('i', 'I', 't', 'c')),
calls (classid, objid) AS ( -- what runs a function that is neither ours nor written in C
    SELECT d.classid, d.objid FROM pg_catalog.pg_depend d
    LEFT JOIN pg_catalog.pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
    LEFT JOIN pg_catalog.pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
    LEFT JOIN pg_catalog.pg_proc f ON f.oid = CASE d.refclassid WHEN 'pg_proc'::regclass
        THEN d.refobjid ELSE o.oprcode END
    LEFT JOIN pg_catalog.pg_language l ON l.oid = f.prolang
    WHERE d.classid IN ('pg_constraint'::regclass, 'pg_class'::regclass, 'pg_attrdef'::regclass,
            'pg_statistic_ext'::regclass)
        AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)
        AND (t.typtype = 'd' OR (l.lanname NOT IN ('c', 'internal')
            AND f.pronamespace NOT IN (SELECT oid FROM place)))),
chain (oid, root) AS ( -- foreign keys that point at a table, and those that point at the tables of these
    SELECT k.oid, r.name FROM pg_catalog.pg_constraint k JOIN relations r ON r.oid = k.confrelid
    WHERE k.contype = 'f'
    UNION
    SELECT k.oid, chain.root FROM chain JOIN pg_catalog.pg_constraint b ON b.oid = chain.oid
    JOIN pg_catalog.pg_constraint k ON k.confrelid = b.conrelid AND k.contype = 'f'),
parts (kind, name, owner, made) AS (
    SELECT CASE r.kind WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' ELSE 'table' END, r.name, r.name,
        concat_ws(' ', r.kind, r.relpersistence, r.relrowsecurity, r.relforcerowsecurity,
            CASE WHEN r.kind = 'v' THEN CASE WHEN current_setting('server_version_num')::int < 150000
                AND r.name IN ('tasks', 'executions', 'task_events') THEN '{security_invoker=true}'
                ELSE r.reloptions::text END END, -- an option since PostgreSQL 15
            CASE WHEN r.kind = 'p' THEN pg_get_partkeydef(r.oid) END)
    FROM relations r WHERE NOT r.is_month
    UNION ALL
    SELECT 'columns', r.name, r.name, string_agg(concat_ws(' ', a.attname,
        format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated, a.attidentity,
        nullif(a.attcollation, t.typcollation), pg_get_expr(d.adbin, d.adrelid)), E'\n' ORDER BY a.attname)
    FROM relations r JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0
        AND NOT a.attisdropped
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE NOT r.is_month AND r.kind <> 'S' GROUP BY r.name
    UNION ALL -- what a view shows is written otherwise by each version of the database
    SELECT 'definition', r.name, r.name,
        CASE WHEN current_setting('server_version_num')::int / 10000 = 15
            THEN pg_get_viewdef(r.oid, true) END
    FROM relations r WHERE r.kind = 'v'
    UNION ALL
    SELECT 'constraint', k.conname, r.name, pg_get_constraintdef(k.oid, true)
    FROM pg_catalog.pg_constraint k JOIN relations r ON r.oid = k.conrelid
    WHERE NOT r.is_month AND k.contype <> 'n'
    UNION ALL -- a month has what its table has, and nothing else
    SELECT 'constraint', k.conname || ' of ' || r.name, '', ''
    FROM pg_catalog.pg_constraint k JOIN relations r ON r.oid = k.conrelid
    WHERE r.is_month AND k.contype <> 'n' AND k.coninhcount = 0
    UNION ALL
    SELECT 'index', CASE WHEN r.is_month THEN c.relname || ' of ' || r.name ELSE c.relname END,
        CASE WHEN r.is_month THEN '' ELSE r.name END, pg_get_indexdef(i.indexrelid, 0, true)
    FROM pg_catalog.pg_index i JOIN relations r ON r.oid = i.indrelid
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
    WHERE NOT (r.is_month AND c.relispartition)
        AND NOT (NOT i.indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$' -- made again
            AND NOT EXISTS (SELECT FROM calls d WHERE d.classid = 'pg_class'::regclass
                AND d.objid = i.indexrelid))
    UNION ALL
    SELECT 'trigger', CASE WHEN r.is_month THEN t.tgname || ' of ' || r.name ELSE t.tgname END,
        CASE WHEN r.is_month THEN '' ELSE r.name END, concat_ws(' ', pg_get_triggerdef(t.oid, true), t.tgenabled)
    FROM pg_catalog.pg_trigger t JOIN relations r ON r.oid = t.tgrelid WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'rule', CASE WHEN r.is_month THEN w.rulename || ' of ' || r.name ELSE w.rulename END,
        CASE WHEN r.is_month THEN '' ELSE r.name END, concat_ws(' ', w.ev_type, w.is_instead, w.ev_enabled)
    FROM pg_catalog.pg_rewrite w JOIN relations r ON r.oid = w.ev_class
    UNION ALL
    SELECT 'policy', CASE WHEN r.is_month THEN p.polname || ' of ' || r.name ELSE p.polname END,
        CASE WHEN r.is_month THEN '' ELSE r.name END,
        CASE WHEN current_setting('server_version_num')::int / 10000 = 15 THEN concat_ws(' ', p.polcmd,
            p.polpermissive, CASE p.polname WHEN 'perdura_rows' -- of any one role
                THEN cardinality(p.polroles) = 1 AND p.polroles[1] <> 0 ELSE p.polroles = '{0}' END,
            pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)) END
    FROM pg_catalog.pg_policy p JOIN relations r ON r.oid = p.polrelid
    UNION ALL -- the database evaluates their expressions when it plans a statement
    SELECT 'statistics', s.stxname || ' of ' || r.name, '', ''
    FROM pg_catalog.pg_statistic_ext s JOIN relations r ON r.oid = s.stxrelid
    WHERE s.stxexprs IS NOT NULL AND EXISTS (SELECT FROM calls d
        WHERE d.classid = 'pg_statistic_ext'::regclass AND d.objid = s.oid)
    UNION ALL -- rows of a table that inherits are rows of ours
    SELECT 'heir', h.inhrelid::regclass::text, r.name, ''
    FROM pg_catalog.pg_inherits h JOIN relations r ON r.oid = h.inhparent
    WHERE NOT EXISTS (SELECT FROM relations m WHERE m.oid = h.inhrelid AND m.is_month)
    UNION ALL
    SELECT 'month', r.name || CASE WHEN r.relpersistence <> 'p' THEN ' (not logged)'
        ELSE ' (row security)' END, '', ''
    FROM relations r
    WHERE r.is_month AND (NOT r.relrowsecurity OR r.relforcerowsecurity OR r.relpersistence <> 'p')
    UNION ALL
    SELECT 'default', a.attname || ' of ' || r.name, '', ''
    FROM relations r JOIN pg_catalog.pg_attrdef d ON d.adrelid = r.oid
    JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum = d.adnum WHERE r.is_month
    UNION ALL -- rows of others may go with a row of ours (B8) where that runs no code of others
    SELECT 'foreign key', k.conrelid::regclass::text || ' (' || k.conname || ')', chain.root, ''
    FROM chain JOIN pg_catalog.pg_constraint k ON k.oid = chain.oid
    JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
    WHERE c.relkind <> 'r' OR c.relispartition OR c.relrowsecurity OR c.relforcerowsecurity
        OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
        OR EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid)
        OR EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t
            ON t.oid = a.atttypid WHERE a.attrelid = c.oid AND a.attnum = ANY (k.conkey)
                AND t.typnamespace <> 'pg_catalog'::regnamespace)
        OR EXISTS (SELECT FROM pg_catalog.pg_constraint b JOIN calls d ON d.objid = b.oid
            AND d.classid = 'pg_constraint'::regclass WHERE b.conrelid = c.oid)
        OR EXISTS (SELECT FROM pg_catalog.pg_index i JOIN calls d ON d.objid = i.indexrelid
            AND d.classid = 'pg_class'::regclass WHERE i.indrelid = c.oid)
        OR EXISTS (SELECT FROM pg_catalog.pg_attrdef b JOIN calls d ON d.objid = b.oid
            AND d.classid = 'pg_attrdef'::regclass WHERE b.adrelid = c.oid)
        OR EXISTS (SELECT FROM pg_catalog.pg_statistic_ext s JOIN calls d ON d.objid = s.oid
            AND d.classid = 'pg_statistic_ext'::regclass WHERE s.stxrelid = c.oid)
    UNION ALL
    SELECT 'cast', format_type(c.castsource, NULL) || ' as ' || format_type(c.casttarget, NULL), '', ''
    FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_proc f ON f.oid = c.castfunc
    JOIN pg_catalog.pg_language l ON l.oid = f.prolang
    WHERE l.lanname NOT IN ('c', 'internal') AND EXISTS (SELECT FROM pg_catalog.pg_type t
        JOIN place ON place.oid = t.typnamespace WHERE t.oid IN (c.castsource, c.casttarget))
    UNION ALL
    SELECT 'function', f.proname || '(' || pg_get_function_identity_arguments(f.oid) || ')', '',
        concat_ws(' ', l.lanname, f.prokind, f.prosecdef, f.proleakproof, f.proisstrict, f.proretset,
            f.provolatile, format_type(f.prorettype, NULL), pg_get_function_arguments(f.oid), f.probin,
            (SELECT string_agg(replace(c.setting, 'search_path=' || place.shown, 'search_path=@'), ';'
                ORDER BY c.setting) FROM unnest(f.proconfig) AS c (setting)), f.prosrc)
    FROM pg_catalog.pg_proc f JOIN place ON place.oid = f.pronamespace
    JOIN pg_catalog.pg_language l ON l.oid = f.prolang
    WHERE l.lanname <> 'c' -- of extensions; only a superuser makes one
    UNION ALL
    SELECT 'type', t.typname, t.typname, concat_ws(' ', format_type(t.typbasetype, t.typtypmod), t.typnotnull,
        t.typdefault, (SELECT string_agg(pg_get_constraintdef(k.oid, true), ';'
            ORDER BY pg_get_constraintdef(k.oid, true))
            FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype <> 'n'))
    FROM pg_catalog.pg_type t JOIN place ON place.oid = t.typnamespace
    WHERE t.typtype = 'd'
    UNION ALL
    SELECT 'operator', o.oprname, '', o.oid::regoperator::text
    FROM pg_catalog.pg_operator o JOIN place ON place.oid = o.oprnamespace
    JOIN pg_catalog.pg_proc f ON f.oid = o.oprcode JOIN pg_catalog.pg_language l ON l.oid = f.prolang
    WHERE l.lanname NOT IN ('c', 'internal')
    UNION ALL
    SELECT 'collation', o.collname, '', '' FROM pg_catalog.pg_collation o
    JOIN place ON place.oid = o.collnamespace
    UNION ALL
    SELECT 'operator class', o.opcname, '', '' FROM pg_catalog.pg_opclass o
    JOIN place ON place.oid = o.opcnamespace
    UNION ALL -- what the database brings is found before ours: of those names it has nothing of others
    SELECT 'built-in', 'function ' || f.oid::regprocedure::text, '', ''
    FROM pg_catalog.pg_proc f JOIN pg_catalog.pg_language l ON l.oid = f.prolang
    JOIN pg_catalog.pg_proc b ON b.proname = f.proname AND b.oid <> f.oid
    LEFT JOIN place ON place.oid = b.pronamespace
    WHERE f.pronamespace = 'pg_catalog'::regnamespace AND f.oid >= 16384 AND (place.oid IS NOT NULL
        OR (b.oid < 16384 AND l.lanname NOT IN ('c', 'internal')))
    GROUP BY f.oid
    UNION ALL
    SELECT 'built-in', 'operator ' || o.oid::regoperator::text, '', ''
    FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc f ON f.oid = o.oprcode
    JOIN pg_catalog.pg_language l ON l.oid = f.prolang
    WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND f.oid >= 16384
        AND (o.oid < 16384 OR l.lanname NOT IN ('c', 'internal'))
    UNION ALL
    SELECT 'built-in', 'order by ' || p.amproc::oid::regprocedure::text, '', ''
    FROM pg_catalog.pg_amproc p WHERE p.oid < 16384 AND p.amproc::oid >= 16384
    UNION ALL
    SELECT 'built-in', 'cast by ' || c.castfunc::regprocedure::text, '', ''
    FROM pg_catalog.pg_cast c WHERE c.oid < 16384 AND c.castfunc >= 16384
    UNION ALL -- it would be found before ours
    SELECT 'temporary table', c.relname, '', '' FROM pg_catalog.pg_class c
    JOIN relations r ON r.name = c.relname WHERE c.relnamespace = pg_my_temp_schema())
SELECT kind, name::text, owner, CASE WHEN made IS NULL THEN '' ELSE md5(made) END
FROM parts ORDER BY kind COLLATE "C", name::text COLLATE "C", owner COLLATE "C";
