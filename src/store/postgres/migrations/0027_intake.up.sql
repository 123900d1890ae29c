-- Tasks that a program enqueues with SQL in a transaction of its own. The functions store what was asked
-- for; the engine makes the task of it in its next batch, by the rules of every other request. The id is
-- known at once: keys of ids come from smaller blocks, so that a task alone does not use up a hundred.

SELECT setval('task_keys', last_value + 100, false) FROM task_keys WHERE is_called;
ALTER SEQUENCE task_keys INCREMENT BY 10;

CREATE TABLE intake_rows (
    task bigint PRIMARY KEY,    -- the key that the id carries
    id uuid NOT NULL UNIQUE,
    namespace text NOT NULL,
    type text NOT NULL,
    payload text,
    options jsonb NOT NULL,     -- the other members of a task
    created_at timestamptz NOT NULL,
    wakes boolean NOT NULL DEFAULT true, -- its commit tells the nodes
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    due_at timestamptz NOT NULL DEFAULT '-infinity' -- a bound of the namespace put it off
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_delay = 0);
CREATE INDEX intake_rows_due ON intake_rows (due_at, task);
ALTER TABLE intake_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY perdura_others ON intake_rows USING (NOT (SELECT perdura_outside(current_user)));

-- An id that carries this key (src/base/uuid7.c).
CREATE FUNCTION intake_id(key bigint, us bigint) RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(us / 1000), 12, '0') || '7' || lpad(to_hex(us % 1000 * 4096 / 1000), 3, '0')
        || to_hex((-9223372036854775807 - 1) | (key << 22) | (random() * 4194303)::bigint))::uuid
$$;

-- Why nothing of this store is taken in. Asked again when a program commits: `perdura copy` may have moved
-- the store meanwhile.
CREATE FUNCTION intake_closed() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE name WHEN 'moved' THEN 'the store was moved elsewhere'
        ELSE 'a copy into this store has not ended' END
    FROM store_info WHERE (name = 'moved' AND value <> '') OR (name = 'copy' AND value NOT LIKE 'done %')
    LIMIT 1
$$;

-- The namespace of the role that asks. Checks all that must be known before anything is stored.
CREATE FUNCTION intake_namespace(type text, options jsonb) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    asks text := CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END;
    space text;
    found namespaces;
    sealed text;
    reason text;
BEGIN
    SELECT value::jsonb ->> asks INTO space FROM store_info WHERE name = 'sql_roles';
    space := coalesce(space, 'default');
    SELECT * INTO found FROM namespaces n WHERE n.name = space;
    SELECT p.value INTO sealed FROM store_info i, jsonb_array_elements_text(i.value::jsonb) p
        WHERE i.name = 'sealed_types' AND (p.value = type
            OR (right(p.value, 1) = '*' AND starts_with(type, left(p.value, -1)))) LIMIT 1;
    reason := CASE
        WHEN type IS NULL OR type = '' THEN 'the type is missing; it says which handler does the task'
        WHEN octet_length(type) > 200 THEN 'the type is longer than 200 bytes'
        WHEN jsonb_typeof(options) IS DISTINCT FROM 'object'
            THEN 'the options must be a JSON object such as {"queue": "mail"}'
        WHEN octet_length(options::text) > 2097152 THEN 'the options are larger than 2 MiB'
        WHEN options ? 'type' OR options ? 'payload' THEN 'type and payload are arguments, not options'
        WHEN jsonb_typeof(options -> 'idempotency_key') NOT IN ('string', 'null')
            OR jsonb_typeof(options -> 'external_id') NOT IN ('string', 'null')
            THEN 'idempotency_key and external_id are texts'
        WHEN intake_closed() IS NOT NULL THEN intake_closed()
        WHEN found.name IS NULL THEN format('there is no namespace %L, which access.sql_roles gives the role %s',
            space, asks)
        WHEN found.deleting_at IS NOT NULL THEN format('the namespace %L is being deleted', space)
        WHEN found.encrypt_all OR sealed IS NOT NULL OR (options -> 'encrypt') = 'true'
            OR jsonb_typeof(options -> 'encrypt_fields') = 'array'
            THEN 'its content is to be stored encrypted, and SQL has no key; enqueue it over HTTP' END;
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION 'this task cannot be enqueued with SQL: %', reason USING ERRCODE = '22023';
    END IF;
    RETURN space;
END $$;

-- Just before the commit: tells nodes that listen; they know the channel by its secret name. Commits that
-- tell come one after the other in the whole database. So this one does not while a row of another
-- transaction waits: a node is on its way to that, and looks again until it finds nothing more.
CREATE FUNCTION intake_tell() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
DECLARE
    reason text := intake_closed();
BEGIN
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION 'this task cannot be enqueued with SQL: %', reason USING ERRCODE = '22023';
    END IF;
    IF NOT EXISTS (SELECT FROM intake_rows r WHERE r.due_at <= now() AND r.xact <> pg_current_xact_id()) THEN
        PERFORM pg_notify(value, chr(31) || chr(14)) FROM store_info WHERE name = 'hints';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER intake_rows_tell AFTER INSERT ON intake_rows DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (new.wakes) EXECUTE FUNCTION intake_tell();

CREATE FUNCTION intake_check_payload(payload text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF octet_length(payload) > 1048576 THEN
        RAISE EXCEPTION 'this task cannot be enqueued with SQL: the payload is larger than 1 MiB'
            USING ERRCODE = '22023';
    END IF;
    PERFORM payload::json;
END $$;

-- Reserves a value that one task may have; the id of the task that has it already, or NULL. Waits for
-- an open transaction that reserved it.
CREATE FUNCTION intake_reserve(space text, what text, of_type text, wanted text, key bigint) RETURNS uuid
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    owner uuid;
BEGIN
    INSERT INTO task_uniques (namespace, kind, type, value, task) VALUES (space, what, of_type, wanted, key)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    SELECT t.id INTO owner FROM task_uniques u
    JOIN (SELECT s.task, s.id FROM task_states s UNION ALL SELECT r.task, r.id FROM intake_rows r) t
        ON t.task = u.task
    WHERE u.namespace = space AND u.kind = what AND u.type = of_type AND u.value = wanted;
    IF owner IS NULL THEN
        RAISE EXCEPTION 'the task with this % was removed just now; try again', what USING ERRCODE = '40001';
    END IF;
    RETURN owner;
END $$;

CREATE FUNCTION intake_enqueue(of_type text, content text, options jsonb) RETURNS uuid
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moment CONSTANT timestamptz := clock_timestamp();
    space CONSTANT text := intake_namespace(of_type, options);
    unique_key CONSTANT text := options ->> 'idempotency_key';
    outside_id CONSTANT text := options ->> 'external_id';
    key bigint;
    owner uuid;
    made uuid;
BEGIN
    PERFORM intake_check_payload(content);
    IF octet_length(unique_key) > 256 OR octet_length(outside_id) > 256 OR starts_with(unique_key, 'perdura:')
    THEN
        RAISE EXCEPTION 'this task cannot be enqueued with SQL: idempotency_key and external_id have at most '
            '256 bytes, and do not begin with "perdura:"' USING ERRCODE = '22023';
    END IF;
    key := nextval('task_keys');
    IF unique_key IS NOT NULL THEN
        owner := intake_reserve(space, 'key', of_type, unique_key, key);
        IF owner IS NOT NULL THEN
            RETURN owner;
        END IF;
    END IF;
    IF outside_id IS NOT NULL THEN
        owner := intake_reserve(space, 'external', '', outside_id, key);
        IF owner IS NOT NULL THEN
            RAISE EXCEPTION 'there is already a task with this external_id: %', owner USING ERRCODE = '23505';
        END IF;
    END IF;
    made := intake_id(key, (extract(epoch FROM moment) * 1000000)::bigint);
    INSERT INTO intake_rows (task, id, namespace, type, payload, options, created_at)
    VALUES (key, made, space, of_type, content, options, moment);
    RETURN made;
END $$;

-- For users: `perdura migrate grant ROLE` lets a role call them.
CREATE FUNCTION enqueue(type text, payload text DEFAULT '{}', options jsonb DEFAULT '{}') RETURNS uuid
LANGUAGE sql VOLATILE SECURITY DEFINER AS $$ SELECT intake_enqueue(type, payload, options) $$;

CREATE FUNCTION enqueue(type text, payload jsonb, options jsonb DEFAULT '{}') RETURNS uuid
LANGUAGE sql VOLATILE SECURITY DEFINER AS $$ SELECT intake_enqueue(type, payload::text, options) $$;

-- One task for each payload, with the same options; the ids are in the order of the payloads.
CREATE FUNCTION enqueue_many(type text, payloads jsonb[], options jsonb DEFAULT '{}') RETURNS SETOF uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
DECLARE
    moment CONSTANT timestamptz := clock_timestamp();
    space CONSTANT text := intake_namespace(type, options);
    us CONSTANT bigint := extract(epoch FROM moment) * 1000000;
    keys CONSTANT bigint[] := ARRAY(SELECT nextval('task_keys')
        FROM generate_series(1, (cardinality(payloads) + 9) / 10));
BEGIN
    IF EXISTS (SELECT FROM unnest(payloads) p WHERE octet_length(p::text) > 1048576) THEN
        RAISE EXCEPTION 'these tasks cannot be enqueued with SQL: a payload is larger than 1 MiB'
            USING ERRCODE = '22023';
    END IF;
    IF options ? 'idempotency_key' OR options ? 'external_id' THEN
        RAISE EXCEPTION 'this task cannot be enqueued with SQL: idempotency_key and external_id belong to one '
            'task; call enqueue() for each' USING ERRCODE = '22023';
    END IF;
    RETURN QUERY WITH made AS (
        INSERT INTO intake_rows (task, id, namespace, type, payload, options, created_at, wakes)
        SELECT p.key, intake_id(p.key, us), space, enqueue_many.type, p.payload, options, moment, p.at = 1
        FROM (SELECT at, keys[(at - 1) / 10 + 1] + (at - 1) % 10 AS key, coalesce(v.value, 'null')::text AS payload
            FROM unnest(payloads) WITH ORDINALITY AS v (value, at)) p
        RETURNING intake_rows.task, intake_rows.id)
    SELECT made.id FROM made ORDER BY made.task;
END $$;

-- Lets a role call them (and those of migration 0028), and nothing else. For the owner of the tables.
CREATE FUNCTION intake_grant(role_name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    one regprocedure;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
        RAISE EXCEPTION 'there is no role %; make it first, with CREATE ROLE', role_name USING ERRCODE = '42704';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role_name);
    FOR one IN SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
            AND p.proname = ANY ('{enqueue,enqueue_many,complete,fail,checkpoint}')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', one, role_name);
    END LOOP;
END $$;

DO $$
DECLARE
    one regprocedure;
    reader oid;
BEGIN
    FOR one IN SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
            AND (p.proname LIKE 'intake\_%' OR p.proname = ANY ('{enqueue,enqueue_many}'))
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
    END LOOP;
    FOR one IN SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
            AND (p.proname = ANY ('{enqueue,enqueue_many,intake_grant,intake_tell}'))
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', one, current_schema());
    END LOOP;
    -- The view tasks reads them with the rights of its reader.
    FOR reader IN SELECT a.grantee FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = 'task_specs'::regclass AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT SELECT ON intake_rows TO %s',
            CASE reader WHEN 0 THEN 'PUBLIC' ELSE reader::regrole::text END);
    END LOOP;
END $$;

-- A number that a request gives, if it is one that can be shown.
CREATE FUNCTION asked_number(options jsonb, name text, otherwise bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(options -> name) = 'number' AND length(options ->> name) < 16
        THEN trunc((options ->> name)::numeric)::bigint ELSE otherwise END
$$;

-- Also shows what the engine has not made a task of yet: it is pending.
DO $$
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW tasks AS ' || rtrim(pg_get_viewdef('tasks'::regclass), ';') || $view$
UNION ALL
SELECT r.id, r.namespace, r.options ->> 'external_id', r.type, r.options ->> 'name',
    coalesce(r.options ->> 'queue', 'default'), r.payload, (r.options -> 'data')::text,
    coalesce(nullif(r.options -> 'metadata', 'null'), '{}'), nullif(r.options -> 'tags', 'null'),
    r.options ->> 'user_id', r.options ->> 'context_key', r.options ->> 'correlation_id', NULL::uuid, NULL::uuid,
    NULL::uuid, NULL::uuid, r.options ->> 'workflow_id', NULL::uuid, 'pending'::task_status, NULL::text,
    'Queued'::text, 0::bigint, 0::bigint, r.created_at, r.created_at,
    CASE r.options ->> 'priority' WHEN 'low' THEN -10 WHEN 'high' THEN 10 WHEN 'critical' THEN 20
        ELSE asked_number(r.options, 'priority', 0) END,
    NULL::timestamptz, 0::bigint, r.options ->> 'idempotency_key', NULL::text,
    coalesce(r.options ->> 'unique_until', 'forever'), 0::bigint, 0::bigint, 0::bigint, 0::bigint,
    asked_number(r.options, 'max_retries', 3), asked_number(r.options, 'max_crashes', 3),
    asked_number(r.options, 'max_continuations', 10000), coalesce(r.options ->> 'retry_policy', 'polynomial'),
    asked_number(r.options, 'retry_delay_ms', 1000), asked_number(r.options, 'max_retry_delay_ms', 3600000),
    asked_number(r.options, 'timeout_ms', 300000), NULL::timestamptz, NULL::text, 0::bigint, NULL::timestamptz,
    NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, false, r.options ->> 'limit_key', NULL::text,
    NULL::text, asked_number(r.options, 'recovery_priority', 0), true, NULL::jsonb,
    asked_number(r.options, 'stall_after_ms', NULL), NULL::timestamptz, NULL::text, NULL::text, NULL::jsonb,
    r.options ->> 'callback_url', coalesce(r.options ->> 'on_unsatisfied', 'cancel'), r.options ->> 'traceparent',
    r.options ->> 'tracestate', r.options ->> 'note', NULL::text
FROM intake_rows r$view$;
    IF current_setting('server_version_num')::integer >= 150000 THEN -- a view that is replaced loses it
        ALTER VIEW tasks SET (security_invoker = true);
    END IF;
END $$;

-- As in migration 0025, and with intake_rows.
CREATE OR REPLACE FUNCTION perdura_shared() RETURNS TABLE (part text, whole boolean, condition text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT v.part, v.whole, replace(replace(replace(v.condition,
        '@namespace', '(SELECT nullif(current_setting(''app.current_namespace'', true), ''''))'),
        '@user', '(SELECT nullif(current_setting(''app.current_user_id'', true), ''''))'),
        '@task', 'EXISTS (SELECT FROM task_specs p WHERE p.task = ' || v.part || '.task)')
    FROM (VALUES
        ('lanes', false, 'namespace = @namespace AND @user IS NOT NULL'),
        ('intake_rows', false, 'namespace = @namespace AND coalesce(options ->> ''user_id'', @user) = @user'),
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

-- Until the engine has made a task of it nothing else can be said of it.
CREATE FUNCTION intake_by_hand() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF old.version = 0 AND EXISTS (SELECT FROM intake_rows r WHERE r.id = old.id) THEN
        RAISE EXCEPTION 'task % was enqueued just now and no node has taken it in; try again', old.id
            USING ERRCODE = '55000';
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER tasks_asked INSTEAD OF UPDATE ON tasks
    FOR EACH ROW EXECUTE FUNCTION intake_by_hand();
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION intake_by_hand SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION intake_by_hand FROM PUBLIC;
