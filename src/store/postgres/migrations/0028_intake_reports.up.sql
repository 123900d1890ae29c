-- A program reports of a task that it holds in its own transaction: its changes and the outcome commit
-- together. The row of the task is locked and marked (outcome_token below 0), so no node does anything
-- else with it before the engine has applied the report.

CREATE TABLE intake_reports (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task bigint NOT NULL,
    id uuid NOT NULL,
    lease_token bigint NOT NULL,
    op text NOT NULL CHECK (op IN ('complete', 'fail', 'checkpoint')),
    progress bigint,
    name text,
    data text,
    result text,
    error text,
    details text,
    retryable boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    xact xid8 NOT NULL DEFAULT pg_current_xact_id()
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_delay = 0);
CREATE INDEX intake_reports_task ON intake_reports (task, seq);
ALTER TABLE intake_reports ENABLE ROW LEVEL SECURITY;
CREATE POLICY perdura_others ON intake_reports USING (NOT (SELECT perdura_outside(current_user)));

CREATE FUNCTION intake_reports_tell() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
DECLARE
    reason text := intake_closed();
BEGIN
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION 'task % cannot be reported like this with SQL: %', new.id, reason USING ERRCODE = '22023';
    END IF;
    IF NOT EXISTS (SELECT FROM intake_reports r WHERE r.xact <> pg_current_xact_id()) THEN
        PERFORM pg_notify(value, chr(31) || chr(14)) FROM store_info WHERE name = 'hints';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER intake_reports_tell AFTER INSERT ON intake_reports DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION intake_reports_tell();

CREATE FUNCTION intake_report(report intake_reports) RETURNS void
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

-- For users: `perdura migrate grant ROLE` lets a role call them.
CREATE FUNCTION complete(task uuid, lease_token bigint, result jsonb DEFAULT NULL) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER AS $$
    SELECT intake_report(jsonb_populate_record(NULL::intake_reports, jsonb_build_object('op', 'complete',
        'id', task, 'lease_token', lease_token, 'result', result::text)))
$$;

CREATE FUNCTION fail(task uuid, lease_token bigint, error text, details jsonb DEFAULT NULL,
    retryable boolean DEFAULT true) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER AS $$
    SELECT intake_report(jsonb_populate_record(NULL::intake_reports, jsonb_build_object('op', 'fail',
        'id', task, 'lease_token', lease_token, 'error', coalesce(error, 'failed'), 'details', details::text,
        'retryable', retryable)))
$$;

CREATE FUNCTION checkpoint(task uuid, lease_token bigint, name text, progress integer DEFAULT NULL,
    data jsonb DEFAULT NULL) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER AS $$
    SELECT intake_report(jsonb_populate_record(NULL::intake_reports, jsonb_build_object('op', 'checkpoint',
        'id', task, 'lease_token', lease_token, 'name', name, 'progress', progress, 'data', data::text)))
$$;

DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
            AND p.proname = ANY ('{complete,fail,checkpoint,intake_report,intake_reports_tell}')
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', one, current_schema());
    END LOOP;
END $$;
