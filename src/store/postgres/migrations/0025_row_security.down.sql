-- The tables have no row security again; a role for SQL from outside loses its rights.

DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT DISTINCT r.rolname FROM pg_roles r JOIN store_info i ON i.name = 'sql_role:' || r.rolname
        UNION SELECT r.rolname FROM pg_policy p JOIN pg_roles r ON r.oid = ANY (p.polroles)
            JOIN pg_class c ON c.oid = p.polrelid
            WHERE p.polname = 'perdura_rows' AND c.relnamespace = to_regnamespace(quote_ident(current_schema()))
    LOOP
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %I', current_schema(), one.rolname);
        EXECUTE format('REVOKE ALL ON SCHEMA %I FROM %I', current_schema(), one.rolname);
    END LOOP;
    FOR one IN SELECT polname, polrelid::regclass AS part FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE polname IN ('perdura_rows', 'perdura_others')
            AND c.relnamespace = to_regnamespace(quote_ident(current_schema()))
    LOOP
        EXECUTE format('DROP POLICY %I ON %s', one.polname, one.part);
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', one.part);
    END LOOP;
    FOR one IN SELECT inhrelid::regclass AS part FROM pg_inherits
        WHERE inhparent IN ('task_event_rows'::regclass, 'execution_rows'::regclass)
    LOOP
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', one.part);
    END LOOP;
    FOR one IN SELECT c.relname FROM pg_class c WHERE c.relname IN ('tasks', 'executions', 'task_events')
        AND c.reloptions IS NOT NULL AND c.relnamespace = to_regnamespace(quote_ident(current_schema()))
    LOOP
        EXECUTE format('ALTER VIEW %I RESET (security_invoker)', one.relname);
    END LOOP;
END $$;
DELETE FROM store_info WHERE name LIKE 'sql\_role:%';
DROP VIEW IF EXISTS own_task_events, own_executions, own_tasks;
DROP TRIGGER tasks_allowed ON tasks;
DROP FUNCTION perdura_allowed_by_hand;
DROP FUNCTION perdura_share;
DROP FUNCTION perdura_share_unfit;
DROP FUNCTION perdura_share_lacks;
DROP FUNCTION perdura_shared;
DROP FUNCTION perdura_outside;

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
