-- More that programs can say and ask with SQL: cancel(), retry(), status(), wait_for(), INSERT and DELETE on
-- the view tasks; and rights that leave a role some verbs, or some types, only. What a task may do next is
-- written in the nodes: they publish it (store_info, sql_verbs), and apply what was asked for.

ALTER TABLE intake_reports DROP CONSTRAINT intake_reports_op_check, ADD COLUMN asked_by text,
    ADD COLUMN due_at timestamptz NOT NULL DEFAULT '-infinity', -- a bound of the namespace put it off
    ADD CONSTRAINT intake_reports_op_check
        CHECK (op IN ('complete', 'fail', 'checkpoint', 'cancel', 'retry', 'delete'));

-- ---- rights ----

-- What a role may call, and which functions that are.
CREATE FUNCTION intake_verbs() RETURNS TABLE (verb text, name text)
LANGUAGE sql IMMUTABLE AS $$
    VALUES ('enqueue', 'enqueue'), ('enqueue', 'enqueue_many'), ('complete', 'complete'), ('fail', 'fail'),
        ('checkpoint', 'checkpoint'), ('cancel', 'cancel'), ('retry', 'retry'), ('status', 'status'),
        ('wait_for', 'wait_for')
$$;

CREATE FUNCTION intake_role() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END::text
$$;

-- The namespace of the role that asks. Raises if access.sql_roles keeps this verb, or the type, from it.
CREATE FUNCTION intake_allows(verb text, of_type text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    asks CONSTANT text := intake_role();
    rights CONSTANT jsonb := (SELECT value::jsonb -> asks FROM store_info WHERE name = 'sql_roles');
BEGIN
    IF rights IS NULL THEN
        RETURN 'default';
    ELSIF jsonb_typeof(rights) = 'string' THEN
        RETURN rights #>> '{}';
    END IF;
    IF rights ? 'verbs' AND NOT rights -> 'verbs' ? verb THEN
        RAISE EXCEPTION 'the role % may not call %()', asks, verb
            USING ERRCODE = '42501', HINT = 'access.sql_roles in the configuration of the nodes lists its verbs.';
    END IF;
    IF rights ? 'types' AND of_type IS NOT NULL AND NOT EXISTS (
            SELECT FROM jsonb_array_elements_text(rights -> 'types') p
            WHERE p = of_type OR (right(p, 1) = '*' AND starts_with(of_type, left(p, -1)))) THEN
        RAISE EXCEPTION 'the role % may not call %() for tasks of type %', asks, verb, of_type
            USING ERRCODE = '42501', HINT = 'access.sql_roles in the configuration of the nodes lists its types.';
    END IF;
    RETURN coalesce(rights ->> 'namespace', 'default');
END $$;

-- As in migration 0027, with the rights of the role.
CREATE OR REPLACE FUNCTION intake_namespace(type text, options jsonb) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    space CONSTANT text := intake_allows('enqueue', type);
    known namespaces;
    sealed text;
    reason text;
BEGIN
    SELECT * INTO known FROM namespaces n WHERE n.name = space;
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
        WHEN known.name IS NULL THEN format('there is no namespace %L, which access.sql_roles gives the role %s',
            space, intake_role())
        WHEN known.deleting_at IS NOT NULL THEN format('the namespace %L is being deleted', space)
        WHEN known.encrypt_all OR sealed IS NOT NULL OR (options -> 'encrypt') = 'true'
            OR jsonb_typeof(options -> 'encrypt_fields') = 'array'
            THEN 'its content is to be stored encrypted, and SQL has no key; enqueue it over HTTP' END;
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION 'this task cannot be enqueued with SQL: %', reason USING ERRCODE = '22023';
    END IF;
    RETURN space;
END $$;

CREATE FUNCTION intake_unknown(wanted uuid) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RAISE EXCEPTION 'there is no task %', wanted USING ERRCODE = '02000',
        HINT = format('It was removed, or is in another namespace than the one of the role %s.', intake_role());
END $$;

-- As in migration 0028, with the rights of the role.
CREATE OR REPLACE FUNCTION intake_report(report intake_reports) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    space CONSTANT text := intake_allows(report.op, NULL);
    held task_states;
    place lanes;
    spec task_specs;
    reason text;
BEGIN
    SELECT * INTO held FROM task_states s WHERE s.task = perdura_key(report.id) AND s.id = report.id
        FOR NO KEY UPDATE;
    SELECT * INTO place FROM lanes l WHERE l.lane = held.lane;
    SELECT * INTO spec FROM task_specs p WHERE p.task = held.task;
    IF place.namespace IS DISTINCT FROM space THEN
        PERFORM intake_unknown(report.id);
    END IF;
    PERFORM intake_allows(report.op, place.type);
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

-- ---- what is asked of a task ----

-- A task of the namespace of the role that asks; what no node has taken in yet is pending, and what a
-- program has completed is completed. mine: this transaction enqueued it, or asked for something of it.
CREATE FUNCTION intake_look(verb text, wanted uuid, OUT task bigint, OUT status text, OUT held boolean,
    OUT mine boolean)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    space text;
    of_type text;
BEGIN
    SELECT s.task, s.status, coalesce(s.held, false), l.namespace, l.type, false
    INTO task, status, held, space, of_type, mine
    FROM task_states s JOIN lanes l ON l.lane = s.lane WHERE s.task = perdura_key(wanted) AND s.id = wanted;
    IF task IS NULL THEN
        SELECT r.task, 'pending', false, r.namespace, r.type,
            coalesce(r.xact = pg_current_xact_id_if_assigned(), false)
        INTO task, status, held, space, of_type, mine FROM intake_rows r WHERE r.id = wanted;
    END IF;
    IF verb <> 'delete' AND space IS DISTINCT FROM intake_allows(verb, NULL) OR task IS NULL THEN
        PERFORM intake_unknown(wanted);
    ELSIF verb <> 'delete' THEN
        PERFORM intake_allows(verb, of_type);
    END IF;
    SELECT CASE WHEN bool_or(r.op = 'complete') THEN 'completed' ELSE status END,
        mine OR coalesce(bool_or(r.xact = pg_current_xact_id_if_assigned()), false)
    INTO status, mine FROM intake_reports r WHERE r.task = intake_look.task;
END $$;

-- Leaves a request to the nodes. Nothing is locked: a program that stays in its transaction holds up
-- no node. So what a node finds when it applies it may differ, and then the audit trail says so.
CREATE FUNCTION intake_ask(verb text, wanted uuid) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    one CONSTANT record := intake_look(verb, wanted);
    rule CONSTANT jsonb := (SELECT value::jsonb -> verb FROM store_info WHERE name = 'sql_verbs');
    advice CONSTANT text := rule -> (CASE WHEN one.held THEN 'held' ELSE 'free' END) ->> one.status;
BEGIN
    IF rule IS NULL THEN
        RAISE EXCEPTION 'no node of this version has used the store yet' USING ERRCODE = '55000',
            HINT = 'Start one: it says what may be asked of a task.';
    ELSIF EXISTS (SELECT FROM store_info WHERE name = 'moved') THEN
        RAISE EXCEPTION 'the store was moved elsewhere' USING ERRCODE = '55000',
            HINT = 'Ask for it there: no node applies requests here.';
    ELSIF advice IS NOT NULL THEN
        RAISE EXCEPTION 'a task that is % cannot be %', one.status, (rule ->> 'as') || advice
            USING ERRCODE = '55000', HINT = rule ->> 'hint';
    ELSIF (SELECT count(*) FROM intake_reports r WHERE r.task = one.task) >= 32 THEN
        RAISE EXCEPTION 'at most 32 requests and reports of task % wait for a node', wanted
            USING ERRCODE = '55000', HINT = 'Commit, then continue.';
    END IF;
    INSERT INTO intake_reports (task, id, lease_token, op, retryable, asked_by)
    VALUES (one.task, wanted, 0, verb, false, intake_role());
END $$;

-- For users: `perdura migrate grant ROLE` lets a role call them.
CREATE FUNCTION cancel(task uuid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER AS $$ SELECT intake_ask('cancel', task) $$;

CREATE FUNCTION retry(task uuid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER AS $$ SELECT intake_ask('retry', task) $$;

CREATE FUNCTION status(task uuid) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT status FROM intake_look('status', task) $$;

-- Looks again after 5 ms, then after half as long again each time, at most a quarter of a second: a function
-- cannot wait for a NOTIFY.
CREATE FUNCTION wait_for(task uuid, patience interval DEFAULT '1 minute') RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
DECLARE
    ends CONSTANT timestamptz := clock_timestamp() + patience;
    pause double precision := 0.005;
    one record;
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'wait_for() cannot wait here: a transaction with the isolation level % does not see what '
            'others commit', upper(current_setting('transaction_isolation'))
            USING ERRCODE = '25001', HINT = 'Wait in a transaction with READ COMMITTED.';
    ELSIF (patience BETWEEN interval '0' AND interval '1 hour') IS NOT TRUE THEN
        RAISE EXCEPTION 'wait_for() waits from 0 seconds to one hour, not %', coalesce(patience::text, 'NULL')
            USING ERRCODE = '22023';
    END IF;
    LOOP
        one := intake_look('wait_for', task);
        IF one.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled') AND NOT one.mine THEN
            RETURN one.status;
        ELSIF one.mine THEN
            RAISE EXCEPTION 'wait_for() would wait for ever: what this transaction said of task % is not '
                'seen by any node before it commits', task
                USING ERRCODE = '55000', HINT = 'Commit, then wait in the next transaction.';
        ELSIF clock_timestamp() >= ends THEN
            RETURN one.status;
        END IF;
        PERFORM pg_sleep(least(pause, greatest(0, extract(epoch FROM ends - clock_timestamp()))));
        pause := least(1.5 * pause, 0.25);
    END LOOP;
END $$;

-- ---- INSERT and DELETE on the view ----

CREATE FUNCTION intake_insert() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
DECLARE
    taken CONSTANT text[] := '{external_id,name,queue,data,metadata,tags,user_id,context_key,correlation_id,'
        'workflow_id,priority,idempotency_key,unique_until,max_retries,max_crashes,max_continuations,retry_policy,'
        'retry_delay_ms,max_retry_delay_ms,timeout_ms,limit_key,recovery_priority,stall_after_ms,callback_url,'
        'on_unsatisfied,traceparent,tracestate,note,scheduled_at,auto_recovery_enabled}';
    renamed CONSTANT jsonb := '{"scheduled_at": "run_at", "auto_recovery_enabled": "auto_recovery"}';
    options jsonb;
    others text;
    space text;
BEGIN
    SELECT coalesce(jsonb_object_agg(coalesce(renamed ->> c.key, c.key),
            CASE c.key WHEN 'data' THEN new.data::jsonb ELSE c.value END) FILTER (WHERE c.key = ANY (taken)), '{}'),
        string_agg(c.key, ', ') FILTER (WHERE c.key <> ALL (taken))
    INTO options, others
    FROM jsonb_each(to_jsonb(new) - '{type,payload,namespace}'::text[]) c
    WHERE c.value <> 'null' AND NOT '{"status": "pending", "state": "Queued", "progress": 0, "version": 0,
        "attempts": 0, "retry_count": 0, "crash_count": 0}' @> jsonb_build_object(c.key, c.value);
    IF others IS NOT NULL THEN
        RAISE EXCEPTION 'a new task cannot have %: Perdura sets that', others USING ERRCODE = '23514',
            HINT = 'RETURNING id gives the id; external_id and idempotency_key are for ids of your own.';
    END IF;
    space := intake_namespace(new.type, options);
    IF new.namespace <> space THEN
        RAISE EXCEPTION 'the role % enqueues into the namespace %, not into %', intake_role(), space, new.namespace
            USING ERRCODE = '42501', HINT = 'access.sql_roles in the configuration of the nodes says which one.';
    END IF;
    new.id := intake_enqueue(new.type, coalesce(new.payload, '{}'), options);
    new.namespace := space;
    new.status := (SELECT l.status FROM intake_look('delete', new.id) l);
    RETURN new;
END $$;
CREATE TRIGGER tasks_insert INSTEAD OF INSERT ON tasks
    FOR EACH ROW EXECUTE FUNCTION intake_insert();

CREATE FUNCTION intake_delete() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
BEGIN
    PERFORM intake_ask('delete', old.id);
    RETURN old;
END $$;
CREATE TRIGGER tasks_delete INSTEAD OF DELETE ON tasks
    FOR EACH ROW EXECUTE FUNCTION intake_delete();

-- As in migration 0025, and for DELETE. Triggers of a view run in the order of their names.
CREATE OR REPLACE FUNCTION perdura_allowed_by_hand() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF row_security_active('task_specs') AND perdura_outside(current_user)
        AND (old.user_id = nullif(current_setting('app.current_user_id', true), '')
            AND old.namespace = nullif(current_setting('app.current_namespace', true), '')) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    RETURN CASE tg_op WHEN 'DELETE' THEN old ELSE new END;
END $$;
CREATE TRIGGER tasks_allowed_delete INSTEAD OF DELETE ON tasks
    FOR EACH ROW EXECUTE FUNCTION perdura_allowed_by_hand();

CREATE FUNCTION perdura_refuse_by_hand() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'SQL cannot change %: nodes write it', tg_table_name USING ERRCODE = '0A000',
        HINT = 'SQL may read it. docs/sql.md lists what a program can do to a task.';
END $$;
CREATE TRIGGER executions_refuse INSTEAD OF INSERT OR UPDATE OR DELETE ON executions
    FOR EACH ROW EXECUTE FUNCTION perdura_refuse_by_hand();
CREATE TRIGGER task_events_refuse INSTEAD OF INSERT OR UPDATE OR DELETE ON task_events
    FOR EACH ROW EXECUTE FUNCTION perdura_refuse_by_hand();

-- ---- the grant ----

-- Lets a role call what the verbs name (NULL: all), and takes back the others. For the owner of the tables.
DROP FUNCTION intake_grant(text);
CREATE FUNCTION intake_grant(role_name text, only_verbs text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    chosen CONSTANT text[] := coalesce(string_to_array(replace(only_verbs, ' ', ''), ','),
        ARRAY(SELECT verb FROM intake_verbs()));
    strange CONSTANT text := (SELECT c FROM unnest(chosen) c
        WHERE c NOT IN (SELECT verb FROM intake_verbs()) LIMIT 1);
    inserts text := CASE WHEN current_setting('server_version_num')::integer >= 150000
        THEN 'INSERT, SELECT (id)' ELSE 'INSERT' END; -- before, the view would show whose rights it reads with
    one record;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
        RAISE EXCEPTION 'there is no role %; make it first, with CREATE ROLE', role_name USING ERRCODE = '42704';
    ELSIF strange IS NOT NULL THEN
        RAISE EXCEPTION 'there is no verb "%"; choose from %', strange,
            (SELECT string_agg(DISTINCT verb, ', ') FROM intake_verbs()) USING ERRCODE = '22023';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role_name);
    FOR one IN SELECT p.oid::regprocedure AS called, v.verb = ANY (chosen) AS given
        FROM pg_proc p JOIN intake_verbs() v ON v.name = p.proname
        WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
    LOOP
        EXECUTE format(CASE WHEN one.given THEN 'GRANT EXECUTE ON FUNCTION %s TO %I'
            ELSE 'REVOKE EXECUTE ON FUNCTION %s FROM %I' END, one.called, role_name);
    END LOOP;
    EXECUTE format(CASE WHEN 'enqueue' = ANY (chosen) THEN 'GRANT %s ON tasks TO %I'
        ELSE 'REVOKE %s ON tasks FROM %I' END, inserts, role_name);
END $$;

DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
            AND p.proname = ANY ('{intake_verbs,intake_role,intake_allows,intake_unknown,intake_look,intake_ask,cancel,'
                'retry,status,wait_for,intake_insert,intake_delete,perdura_refuse_by_hand,intake_grant}')
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
    END LOOP;
    -- Those that run with the owner's rights; what they call finds the same tables, and costs less without.
    FOR one IN SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
            AND p.proname = ANY ('{cancel,retry,status,wait_for,intake_insert,intake_delete,intake_grant,intake_report,'
                'perdura_allowed_by_hand}')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', one, current_schema());
    END LOOP;
END $$;
