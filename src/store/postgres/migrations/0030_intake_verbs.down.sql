-- Data lost: requests that programs made with SQL and that no node has applied yet; start a node first.
DELETE FROM intake_reports WHERE op IN ('cancel', 'retry', 'delete');
DROP TRIGGER tasks_insert ON tasks;
DROP TRIGGER tasks_delete ON tasks;
DROP TRIGGER tasks_allowed_delete ON tasks;
DROP TRIGGER executions_refuse ON executions;
DROP TRIGGER task_events_refuse ON task_events;
DROP FUNCTION intake_insert(), intake_delete(), perdura_refuse_by_hand(), cancel(uuid), retry(uuid), status(uuid),
    wait_for(uuid, interval), intake_ask(text, uuid), intake_look(text, uuid), intake_grant(text, text);
CREATE OR REPLACE FUNCTION intake_namespace(type text, options jsonb) RETURNS text
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
CREATE OR REPLACE FUNCTION intake_report(report intake_reports) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    asks text := CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END;
    held task_states;
    place lanes;
    spec task_specs;
    reason text;
BEGIN
    SELECT * INTO held FROM task_states s WHERE s.task = perdura_key(report.id) AND s.id = report.id
        FOR NO KEY UPDATE;
    SELECT * INTO place FROM lanes l WHERE l.lane = held.lane;
    SELECT * INTO spec FROM task_specs p WHERE p.task = held.task;
    IF place.namespace IS DISTINCT FROM coalesce((SELECT value::jsonb ->> asks FROM store_info
            WHERE name = 'sql_roles'), 'default') THEN
        RAISE EXCEPTION 'there is no task %', report.id USING ERRCODE = '02000';
    END IF;
    IF (held.status IN ('claimed', 'running') AND held.held AND held.lease_token = report.lease_token
            AND held.lease_token > coalesce((SELECT value::bigint FROM store_info WHERE name = 'lease_base'), 0))
        IS NOT TRUE OR EXISTS (SELECT FROM intake_reports r WHERE r.task = held.task AND r.op <> 'checkpoint') THEN
        RAISE EXCEPTION 'task % is no longer held under this lease; roll back and stop', report.id
            USING ERRCODE = '55000';
    END IF;
    reason := CASE
        WHEN intake_closed() IS NOT NULL THEN intake_closed()
        WHEN (spec.encrypt OR spec.encrypt_fields IS NOT NULL)
            AND coalesce(report.data, report.result, report.error, report.details) IS NOT NULL
            THEN 'its content is stored encrypted, and SQL has no key; report it over HTTP'
        WHEN octet_length(report.result) > 262144 THEN 'the result is larger than 256 KiB'
        WHEN octet_length(report.data) > 1048576 THEN 'the data is larger than 1 MiB'
        WHEN octet_length(report.details) > 16384 THEN 'the details are larger than 16 KiB'
        WHEN octet_length(report.name) > 200 THEN 'the name is longer than 200 bytes'
        WHEN report.progress NOT BETWEEN 0 AND 100 THEN 'progress is a number from 0 to 100'
        WHEN (SELECT count(*) FROM intake_reports r WHERE r.task = held.task) >= 32
            THEN 'at most 32 reports of a task wait for a node; commit, then continue' END;
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION 'task % cannot be reported like this with SQL: %', report.id, reason USING ERRCODE = '22023';
    END IF;
    UPDATE task_states s SET rev = s.rev + 1, outcome_token = -s.lease_token WHERE s.task = held.task;
    INSERT INTO intake_reports (task, id, lease_token, op, progress, name, data, result, error, details, retryable)
    VALUES (held.task, held.id, held.lease_token, report.op, report.progress, report.name, report.data,
        report.result, left(report.error, 1000), report.details, coalesce(report.retryable, true));
END $$;
CREATE OR REPLACE FUNCTION perdura_allowed_by_hand() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF row_security_active('task_specs') AND perdura_outside(current_user)
        AND (old.user_id = nullif(current_setting('app.current_user_id', true), '')
            AND old.namespace = nullif(current_setting('app.current_namespace', true), '')) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    RETURN new;
END $$;
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
DO $$ BEGIN
    EXECUTE 'REVOKE EXECUTE ON FUNCTION intake_grant(text) FROM PUBLIC';
    EXECUTE format('ALTER FUNCTION intake_grant(text) SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION intake_report SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION perdura_allowed_by_hand SET search_path = %I, pg_temp', current_schema());
END $$;
DO $$
DECLARE
    one oid;
BEGIN -- who may enqueue no longer inserts
    FOR one IN SELECT a.grantee FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = 'tasks'::regclass AND a.privilege_type = 'INSERT' AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('REVOKE INSERT, SELECT (id) ON tasks FROM %s', one::regrole);
    END LOOP;
END $$;
DROP FUNCTION intake_unknown(uuid), intake_allows(text, text), intake_role(), intake_verbs();
ALTER TABLE intake_reports DROP CONSTRAINT intake_reports_op_check, DROP COLUMN asked_by, DROP COLUMN due_at,
    ADD CONSTRAINT intake_reports_op_check CHECK (op IN ('complete', 'fail', 'checkpoint'));
UPDATE store_info SET value = (SELECT coalesce(jsonb_object_agg(r.key,
        CASE jsonb_typeof(r.value) WHEN 'string' THEN r.value ELSE coalesce(r.value -> 'namespace', '"default"') END), '{}')
    FROM jsonb_each(value::jsonb) r)::text WHERE name = 'sql_roles';
DELETE FROM store_info WHERE name = 'sql_verbs';
