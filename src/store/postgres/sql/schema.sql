-- What the schema of the store consists of, one row for each part: what it is, its name, the table it
-- belongs to, and the hash of how it is made. Months of partitioned tables come and go: of these only what
-- must not be on them. schema.txt has the rows of a store that is just made.

-- name: schema_settings
SELECT set_config('enable_hashjoin', $1, true), set_config('enable_mergejoin', $1, true),
    set_config('enable_seqscan', $1, true);

-- Tables elsewhere in the database that refer to one of this schema.
-- name: schema_referrers
SELECT DISTINCT k.conrelid::regclass::text AS name
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
JOIN pg_catalog.pg_class o ON o.oid = k.confrelid
JOIN pg_catalog.pg_namespace n ON n.oid = o.relnamespace AND n.nspname = current_schema()
WHERE k.contype = 'f' AND c.relnamespace <> o.relnamespace
ORDER BY 1;

-- name: schema_parts
WITH place AS (SELECT oid, quote_ident(nspname) AS shown FROM pg_catalog.pg_namespace
    WHERE nspname = current_schema()),
relations AS MATERIALIZED (SELECT c.oid, c.relname::text AS name, c.relkind AS kind, c.relpersistence,
        c.relrowsecurity, c.relforcerowsecurity, c.reloptions,
        c.relispartition AND c.relkind = 'r' AND c.relname ~ '_[0-9]{4}_?[0-9]{2}$' AS is_month
    FROM pg_catalog.pg_class c, place WHERE c.relnamespace = place.oid
        AND c.relkind NOT IN ('i', 'I', 't', 'c')),
parts (kind, name, owner, made) AS (
    SELECT CASE r.kind WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' ELSE 'table' END, r.name, r.name,
        concat_ws(' ', r.kind, r.relpersistence, r.relrowsecurity, r.relforcerowsecurity,
            CASE WHEN r.kind = 'v' THEN r.reloptions END)
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
    SELECT 'constraint', k.conname, coalesce(r.name, ''), pg_get_constraintdef(k.oid, true)
    FROM pg_catalog.pg_constraint k JOIN relations r ON r.oid = k.conrelid
    WHERE NOT r.is_month AND k.contype <> 'n'
    UNION ALL
    SELECT 'index', c.relname, r.name, pg_get_indexdef(i.indexrelid, 0, true)
    FROM pg_catalog.pg_index i JOIN relations r ON r.oid = i.indrelid
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
    WHERE NOT r.is_month AND NOT (NOT i.indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$' -- made again
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_class'::regclass
            AND d.objid = i.indexrelid AND d.refclassid = 'pg_proc'::regclass))
    UNION ALL
    SELECT 'trigger', t.tgname, CASE WHEN r.is_month THEN '' ELSE r.name END, concat_ws(' ', pg_get_triggerdef(t.oid, true), t.tgenabled)
    FROM pg_catalog.pg_trigger t JOIN relations r ON r.oid = t.tgrelid WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'rule', w.rulename, CASE WHEN r.is_month THEN '' ELSE r.name END, concat_ws(' ', w.ev_type, w.is_instead, w.ev_enabled)
    FROM pg_catalog.pg_rewrite w JOIN relations r ON r.oid = w.ev_class
    UNION ALL
    SELECT 'policy', p.polname, CASE WHEN r.is_month THEN '' ELSE r.name END, '' FROM pg_catalog.pg_policy p
    JOIN relations r ON r.oid = p.polrelid
    UNION ALL -- rows of a table that inherits are rows of ours
    SELECT 'heir', h.inhrelid::regclass::text, r.name, ''
    FROM pg_catalog.pg_inherits h JOIN relations r ON r.oid = h.inhparent
    WHERE NOT EXISTS (SELECT FROM relations m WHERE m.oid = h.inhrelid AND m.is_month)
    UNION ALL -- a month whose rows are kept from some, or that calls functions of others
    SELECT 'month', r.name, p.name, '' FROM relations r
    JOIN pg_catalog.pg_inherits h ON h.inhrelid = r.oid JOIN relations p ON p.oid = h.inhparent
    WHERE r.is_month AND (r.relrowsecurity OR r.relforcerowsecurity OR r.relpersistence <> 'p'
        OR EXISTS (SELECT FROM pg_catalog.pg_attrdef d WHERE d.adrelid = r.oid)
        OR EXISTS (SELECT FROM pg_catalog.pg_depend d
            LEFT JOIN pg_catalog.pg_constraint k ON d.classid = 'pg_constraint'::regclass
                AND k.oid = d.objid AND k.conrelid = r.oid
            LEFT JOIN pg_catalog.pg_index i ON d.classid = 'pg_class'::regclass
                AND i.indexrelid = d.objid AND i.indrelid = r.oid
            WHERE d.refclassid = 'pg_proc'::regclass AND coalesce(k.oid, i.indexrelid) IS NOT NULL))
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
    UNION ALL -- it would be found before ours
    SELECT 'temporary table', c.relname, '', '' FROM pg_catalog.pg_class c
    JOIN relations r ON r.name = c.relname WHERE c.relnamespace = pg_my_temp_schema())
SELECT kind, name::text, owner, CASE WHEN made IS NULL THEN '' ELSE md5(made) END
FROM parts ORDER BY kind COLLATE "C", name::text COLLATE "C", owner COLLATE "C";
