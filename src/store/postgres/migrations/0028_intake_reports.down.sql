-- Data lost: reports that programs made with SQL and that no node has applied yet; start a node first.
UPDATE task_states SET outcome_token = NULL, rev = rev + 1 WHERE outcome_token < 0;
DROP FUNCTION complete(uuid, bigint, jsonb), fail(uuid, bigint, text, jsonb, boolean),
    checkpoint(uuid, bigint, text, integer, jsonb), intake_report(intake_reports);
DROP TABLE intake_reports;
DROP FUNCTION intake_reports_tell();
CREATE OR REPLACE FUNCTION intake_grant(role_name text) RETURNS void
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
            AND p.proname = ANY ('{enqueue,enqueue_many}')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', one, role_name);
    END LOOP;
END $$;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION intake_grant SET search_path = %I, pg_temp', current_schema());
END $$;
