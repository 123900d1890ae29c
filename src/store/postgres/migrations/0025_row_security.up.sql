-- Row-level security for SQL from outside: roles of people and programs that read the store past the
-- nodes. The owner of the tables, whom the nodes connect as, is not subject to it. Every table has the
-- policy perdura_others: a role that was given rights by its administrator keeps them, unless it is
-- one for SQL from outside. Such a role sees rows through the policies perdura_rows only, which
-- perdura_share() makes for it.

-- Is this role, or one that it is a member of, for SQL from outside? Such roles are recorded by name
-- for ever; the policies know them by their number, so that a new name changes nothing.
CREATE FUNCTION perdura_outside(who name) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT EXISTS (SELECT FROM pg_roles r JOIN store_info i ON i.name = 'sql_role:' || r.rolname
            WHERE pg_has_role(who, r.oid, 'MEMBER'))
        OR EXISTS (SELECT FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
                JOIN pg_roles r ON r.oid = ANY (p.polroles)
            WHERE p.polname = 'perdura_rows' AND pg_has_role(who, r.oid, 'MEMBER')
                AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'lanes'::regclass))
$$;

DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN SELECT c.oid FROM pg_class c
        WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'p')
            AND c.relname = ANY ('{api_tokens,audit_log,data_keys,due_rows,execution_hours,'
                'execution_logs,execution_rows,held_rows,job_categories,job_dependencies,job_runs,'
                'job_waits,jobs,key_counts,lane_counts,lanes,leadership,log_anchors,log_heads,namespaces,'
                'outbox,parked_rows,queues,rate_limits,ready_rows,recovery_queue,recurring_fires,'
                'recurring_jobs,schedule_fires,schedules,schema_migrations,settled_rows,store_info,'
                'task_checkpoints,task_data,task_dependencies,task_event_rows,task_results,task_specs,'
                'task_states,task_tags,task_uniques,workers,writer_marks}')
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('CREATE POLICY perdura_others ON %s USING (NOT (SELECT perdura_outside(current_user)))',
            part);
    END LOOP;
    -- Parts of a table are reached through it. Without a policy they show nothing by themselves.
    FOR part IN SELECT inhrelid FROM pg_inherits
        WHERE inhparent IN ('task_event_rows'::regclass, 'execution_rows'::regclass)
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', part);
    END LOOP;
END $$;

-- As in migration 0002, and with row security.
CREATE OR REPLACE FUNCTION perdura_partition(parent text, month date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    part text := perdura_month_name(parent, month);
    other text := parent || '_other';
    starts uuid := perdura_first_id(date_trunc('month', month::timestamp) AT TIME ZONE 'UTC');
    ends uuid := perdura_first_id((date_trunc('month', month::timestamp) + interval '1 month')
        AT TIME ZONE 'UTC');
    settings text := 'autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_insert_scale_factor = 0.2';
    strays bigint;
BEGIN
    IF parent NOT IN ('task_event_rows', 'execution_rows') THEN
        RAISE EXCEPTION '% has no months', parent;
    END IF;
    IF perdura_month_there(part) THEN
        RETURN false;
    END IF;
    IF pg_relation_size(other::regclass) > 64 * 1024 * 1024 THEN -- about 0.1 s to look through
        RAISE EXCEPTION '% is too large to make a month beside it', other USING ERRCODE = 'PD003';
    END IF;
    IF parent = 'execution_rows' THEN -- claimed, then ended: both versions in one page
        settings := settings || ', fillfactor = 55';
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) WITH (%s)', part, parent, settings);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
    EXECUTE format('SELECT count(*) FROM (SELECT FROM %I WHERE id >= $1 AND id < $2 LIMIT 10001) s',
        other) INTO strays USING starts, ends;
    IF strays > 10000 THEN
        RAISE EXCEPTION '% has too many rows of % to move them', other, part
            USING ERRCODE = 'PD003';
    ELSIF strays > 0 THEN
        -- A statement that would change such a row waits, and then finds it in its new place.
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', other);
        EXECUTE format('WITH strays AS (DELETE FROM %I WHERE id >= $1 AND id < $2 RETURNING *)
            INSERT INTO %I SELECT * FROM strays', other, part) USING starts, ends;
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        parent, part, starts, ends);
    RETURN true;
END $$;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION perdura_partition SET search_path = %I, pg_temp',
        current_schema());
END $$;

-- The tables whose rows a role for SQL from outside sees: which of them, and whether it may read every
-- column or only those that the views show. Everything follows from jobs, and from the namespace of a
-- lane and the user of a task. The settings are read once per statement; unset or empty, they are
-- equal to nothing.
CREATE FUNCTION perdura_shared() RETURNS TABLE (part text, whole boolean, condition text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT v.part, v.whole, replace(replace(replace(v.condition,
        '@namespace', '(SELECT nullif(current_setting(''app.current_namespace'', true), ''''))'),
        '@user', '(SELECT nullif(current_setting(''app.current_user_id'', true), ''''))'),
        '@task', 'EXISTS (SELECT FROM task_specs p WHERE p.task = ' || v.part || '.task)')
    FROM (VALUES
        ('lanes', false, 'namespace = @namespace AND @user IS NOT NULL'),
        ('task_specs', false, 'coalesce(user_id, @user) = @user AND lane IN (SELECT lane FROM lanes)'),
        ('task_states', false, '@task'),
        ('task_data', false, '@task'),
        ('task_event_rows', false, '@task'),
        ('execution_rows', false, '@task'),
        ('held_rows', true, '@task'),
        ('settled_rows', true, '@task'),
        ('workers', false, 'EXISTS (SELECT FROM held_rows h WHERE h.worker_id = workers.id)'),
        ('task_results', false, 'EXISTS (SELECT FROM task_states s
            WHERE s.task = perdura_key(task_id) AND s.id = task_id)'),
        ('task_checkpoints', true, 'EXISTS (SELECT FROM task_states s
            WHERE s.task = perdura_key(task_id) AND s.id = task_id)'),
        ('task_dependencies', true, 'EXISTS (SELECT FROM task_states s
            WHERE s.task = perdura_key(task_id) AND s.id = task_id)
            AND EXISTS (SELECT FROM task_states s
            WHERE s.task = perdura_key(depends_on_task_id) AND s.id = depends_on_task_id)'),
        ('execution_logs', true, 'EXISTS (SELECT FROM execution_rows e
            WHERE e.execution = perdura_key(execution_id) AND e.id = execution_id)'),
        ('job_categories', true, 'namespace = @namespace AND @user IS NOT NULL'),
        ('jobs', true, 'namespace = @namespace AND coalesce(created_by, @user) = @user'),
        ('schedules', true, 'EXISTS (SELECT FROM jobs j WHERE j.id = job_id)'),
        ('recurring_jobs', true, 'EXISTS (SELECT FROM jobs j WHERE j.id = template_job_id)'),
        ('job_dependencies', true, 'EXISTS (SELECT FROM jobs j WHERE j.id = job_id)
            AND EXISTS (SELECT FROM jobs j WHERE j.id = depends_on_job_id)'))
        AS v (part, whole, condition)
$$;

-- What a role that is there lacks for SQL from outside, and the command that gives it. Before
-- PostgreSQL 15 a view reads with the rights of its owner: there the role gets views of its own
-- (own_tasks, own_executions, own_task_events) with the same conditions.
CREATE FUNCTION perdura_share_lacks(role_name text,
    old_views boolean DEFAULT current_setting('server_version_num')::integer < 150000)
RETURNS TABLE (lacks text, command text)
LANGUAGE sql STABLE AS $$
    WITH role AS (SELECT oid, rolname FROM pg_roles WHERE rolname = role_name),
    views (view, condition) AS (VALUES
        ('tasks', 'v.namespace = (SELECT nullif(current_setting(''app.current_namespace'', true), ''''))
            AND coalesce(v.user_id, (SELECT nullif(current_setting(''app.current_user_id'', true), '''')))
                = (SELECT nullif(current_setting(''app.current_user_id'', true), ''''))'),
        ('executions', 'EXISTS (SELECT FROM own_tasks t WHERE t.id = v.task_id)'),
        ('task_events', 'EXISTS (SELECT FROM own_tasks t WHERE t.id = v.task_id)')),
    shown AS (SELECT view, condition, CASE WHEN old_views THEN 'own_' ELSE '' END || view AS name FROM views)
    SELECT 'USAGE on schema ' || current_schema(),
        format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), rolname)
    FROM role WHERE NOT has_schema_privilege(oid, current_schema(), 'USAGE')
    UNION ALL
    SELECT 'policy perdura_rows of ' || t.part, CASE WHEN p.oid IS NULL
        THEN format('CREATE POLICY perdura_rows ON %I FOR SELECT TO %I USING (%s)', t.part, r.rolname, t.condition)
        ELSE format('ALTER POLICY perdura_rows ON %I TO %I', t.part, r.rolname) END
    FROM role r CROSS JOIN perdura_shared() t
    LEFT JOIN pg_policy p ON p.polrelid = t.part::regclass AND p.polname = 'perdura_rows'
    WHERE p.oid IS NULL OR p.polroles <> ARRAY[r.oid]
    UNION ALL
    SELECT 'SELECT on ' || t.part, format('GRANT SELECT ON %I TO %I', t.part, r.rolname)
    FROM role r CROSS JOIN perdura_shared() t
    WHERE t.whole AND NOT has_table_privilege(r.oid, t.part, 'SELECT')
    UNION ALL -- the columns that the views show
    SELECT 'SELECT on columns of ' || t.part, format('GRANT SELECT (%s) ON %I TO %I',
        string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum), t.part, r.rolname)
    FROM role r CROSS JOIN perdura_shared() t
    JOIN pg_attribute a ON a.attrelid = t.part::regclass AND a.attnum > 0 AND NOT a.attisdropped
    WHERE NOT t.whole AND NOT has_column_privilege(r.oid, a.attrelid, a.attnum, 'SELECT')
        AND EXISTS (SELECT FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid
            JOIN views v ON w.ev_class = v.view::regclass
            WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
                AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum)
    GROUP BY t.part, r.rolname
    UNION ALL
    SELECT 'the view ' || s.name, format('CREATE VIEW %I WITH (security_barrier) AS SELECT * FROM %I v WHERE %s',
        s.name, s.view, s.condition)
    FROM role r CROSS JOIN shown s WHERE old_views AND to_regclass(s.name) IS NULL
    UNION ALL
    SELECT 'SELECT on ' || s.name, format('GRANT SELECT ON %I TO %I', s.name, r.rolname)
    FROM role r CROSS JOIN shown s
    WHERE to_regclass(s.name) IS NULL OR NOT has_table_privilege(r.oid, to_regclass(s.name)::oid, 'SELECT')
    UNION ALL
    SELECT 'UPDATE of status and priority on ' || s.name,
        format('GRANT UPDATE (status, priority) ON %I TO %I', s.name, r.rolname)
    FROM role r CROSS JOIN shown s
    WHERE s.view = 'tasks' AND (to_regclass(s.name) IS NULL OR NOT
        (has_column_privilege(r.oid, to_regclass(s.name)::oid, 'status', 'UPDATE')
            AND has_column_privilege(r.oid, to_regclass(s.name)::oid, 'priority', 'UPDATE')))
$$;

-- Why policies would not hold this role; NULL: they do.
CREATE FUNCTION perdura_share_unfit(role_name text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN r.rolsuper THEN 'is a superuser'
        WHEN r.rolbypassrls THEN 'has BYPASSRLS'
        WHEN r.rolcreaterole THEN 'has CREATEROLE'
        WHEN pg_has_role(r.oid, c.relowner, 'MEMBER')
            THEN 'is, or is a member of, the owner of the tables (' || pg_get_userbyid(c.relowner) || ')'
        WHEN EXISTS (SELECT FROM pg_class o WHERE o.relnamespace = c.relnamespace
                AND o.relkind IN ('r', 'p', 'v') AND pg_has_role(r.oid, o.relowner, 'MEMBER'))
            THEN 'owns tables in the schema of the store' END
    FROM pg_roles r, pg_class c WHERE r.rolname = role_name AND c.oid = 'task_specs'::regclass
$$;

-- Makes the policies and rights of the role for SQL from outside, as far as they are missing; the
-- number of commands that took. For the owner of the tables. A node does it at its start, and so
-- does `perdura migrate up`. While the role does not exist it does nothing.
CREATE FUNCTION perdura_share(role_name text,
    old_views boolean DEFAULT current_setting('server_version_num')::integer < 150000)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    unfit text := perdura_share_unfit(role_name);
    step record;
    steps bigint := 0;
BEGIN
    IF unfit IS NOT NULL THEN
        RAISE EXCEPTION 'the role % gets no rights: it %', role_name, unfit USING ERRCODE = '42501';
    END IF;
    INSERT INTO store_info (name, value) VALUES ('sql_role:' || role_name, '') -- others wait here
    ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    FOR step IN SELECT * FROM perdura_share_lacks(role_name, old_views) LOOP
        EXECUTE step.command;
        steps := steps + 1;
    END LOOP;
    RETURN steps;
END $$;
REVOKE EXECUTE ON FUNCTION perdura_share FROM PUBLIC;

-- What a policy for UPDATE would do, for the view tasks: a row of another user or without one stays as it is.
CREATE FUNCTION perdura_allowed_by_hand() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF row_security_active('task_specs') AND perdura_outside(current_user)
        AND (old.user_id = nullif(current_setting('app.current_user_id', true), '')
            AND old.namespace = nullif(current_setting('app.current_namespace', true), '')) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    RETURN new;
END $$;
-- Triggers of a view run in the order of their names: this one first.
CREATE TRIGGER tasks_allowed INSTEAD OF UPDATE ON tasks
    FOR EACH ROW EXECUTE FUNCTION perdura_allowed_by_hand();

DO $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY '{perdura_outside,perdura_share_lacks,perdura_share_unfit,perdura_share,'
        'perdura_allowed_by_hand}'::text[]
    LOOP
        EXECUTE format('ALTER FUNCTION %I SET search_path = %I, pg_temp', one, current_schema());
    END LOOP;
    IF current_setting('server_version_num')::integer >= 150000 THEN -- they read with the reader's rights
        FOREACH one IN ARRAY '{tasks,executions,task_events}'::text[] LOOP
            EXECUTE format('ALTER VIEW %I SET (security_invoker = true)', one);
        END LOOP;
    END IF;
END $$;
