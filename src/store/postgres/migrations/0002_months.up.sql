-- The months of task_event_rows and execution_rows: made ahead and dropped when they are old,
-- without holding anybody up, by whoever may call the two functions: they run with the rights of the
-- tables' owner. Settings for the tables that had none.

-- What a month of a table is called.
CREATE FUNCTION perdura_month_name(parent text, month date) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT parent || '_' || lpad(extract(year FROM month)::text, 4, '0')
        || '_' || lpad(extract(month FROM month)::text, 2, '0')
$$;

-- Whether a month is there. Of several who want to make or drop it one does, the others wait here
-- and then see what became of it (to_regclass would still say what it was before).
CREATE FUNCTION perdura_month_there(part text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(72981704, hashtext(current_schema() || '.' || part));
    RETURN EXISTS (SELECT FROM pg_class
        WHERE relname = part AND relnamespace = to_regnamespace(quote_ident(current_schema())));
END $$;

-- One month of a table, made if it is not there. Attached, not made in place: that locks no more
-- than the partition for all other ids, and the table's readers and writers go on. Rows of the month
-- that lie in that partition move; when they are many, or it is so large that looking through it
-- (which attaching does) would take long, the month stays where it is: an error says so.
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
        -- Whoever would change such a row waits, and then finds it in its new place.
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', other);
        EXECUTE format('WITH strays AS (DELETE FROM %I WHERE id >= $1 AND id < $2 RETURNING *)
            INSERT INTO %I SELECT * FROM strays', other, part) USING starts, ends;
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        parent, part, starts, ends);
    RETURN true;
END $$;

-- Drops a month of a table; NULL when it did, else why not. One without rows always goes; with
-- `whole`, which says that all of it is older than what is to be kept, one with rows does unless one
-- of them has to stay: of an execution that has logs, of a task that has not ended, or of a task
-- whose first event would be left without those that follow it (so events go before executions).
-- All this is looked at before anybody has to wait. (Detaching concurrently would need no lock at
-- all, but cannot be done beside a partition for all other ids.)
CREATE FUNCTION perdura_month_drop(parent text, month date, whole boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    part text := perdura_month_name(parent, month);
    starts uuid := perdura_first_id(date_trunc('month', month::timestamp) AT TIME ZONE 'UTC');
    ends uuid := perdura_first_id((date_trunc('month', month::timestamp) + interval '1 month')
        AT TIME ZONE 'UTC');
    first_task bigint;
    last_task bigint;
    last_now bigint;
    found boolean;
BEGIN
    IF parent NOT IN ('task_event_rows', 'execution_rows') OR NOT perdura_month_there(part) THEN
        RETURN 'is not there';
    END IF;
    EXECUTE format('SELECT (SELECT min(task) FROM %1$I), (SELECT max(task) FROM %1$I)', part)
        INTO first_task, last_task;
    IF last_task IS NOT NULL THEN
        IF NOT whole THEN
            RETURN 'has rows';
        END IF;
        IF EXISTS (SELECT FROM execution_logs
                WHERE execution_id >= starts AND execution_id < ends) THEN
            RETURN 'has logs';
        END IF;
        EXECUTE format('SELECT EXISTS (SELECT FROM (
                SELECT task FROM held_rows UNION ALL SELECT task FROM due_rows
                UNION ALL SELECT task FROM parked_rows UNION ALL SELECT task FROM settled_rows
                    WHERE status IN (''blocked'', ''paused'', ''orphaned'', ''recovering'')
                UNION ALL SELECT task FROM ready_rows) o
            WHERE o.task BETWEEN $1 AND $2
                AND EXISTS (SELECT FROM %I r WHERE r.task = o.task))', part)
            INTO found USING first_task, last_task;
        IF found THEN
            RETURN 'has open tasks';
        END IF;
        EXECUTE format('SELECT EXISTS (SELECT FROM (
                SELECT p.task FROM task_specs p
                WHERE p.task BETWEEN $1 AND $2 AND p.opened IS NOT NULL
                UNION ALL SELECT e.task FROM task_event_rows e
                WHERE e.task BETWEEN $1 AND $2 AND e.seq = 1 AND e.id < $3) f
            WHERE EXISTS (SELECT FROM %I r WHERE r.task = f.task))', part)
            INTO found USING first_task, last_task,
                CASE parent WHEN 'execution_rows' THEN ends ELSE starts END;
        IF found THEN
            RETURN 'has first events';
        END IF;
    END IF;
    EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    EXECUTE format('SELECT max(task) FROM %I', part) INTO last_now;
    IF last_now > coalesce(last_task, -1) THEN -- some may have gone meanwhile
        RETURN 'has new rows';
    END IF;
    EXECUTE format('DROP TABLE %I', part);
    RETURN NULL;
END $$;

-- Nothing that lies in somebody's temporary schema is taken for a table of ours.
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION perdura_partition SET search_path = %I, pg_temp',
        current_schema());
    EXECUTE format('ALTER FUNCTION perdura_month_drop SET search_path = %I, pg_temp',
        current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION perdura_partition, perdura_month_drop FROM PUBLIC;

-- What looks into an index, if the extension amcheck is there and may be used.
CREATE FUNCTION perdura_index_checker() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT format('%I.%I', n.nspname, p.proname)
    FROM pg_extension e
    JOIN pg_namespace n ON n.oid = e.extnamespace
    JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = 'bt_index_check' AND p.pronargs = 1
    WHERE e.extname = 'amcheck' AND has_function_privilege(p.oid, 'EXECUTE')
$$;

-- What is wrong with an index; NULL when nothing was found.
CREATE FUNCTION perdura_index_check(index oid) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT ' || perdura_index_checker() || '($1::regclass)' USING index;
    RETURN NULL;
EXCEPTION WHEN index_corrupted OR data_corrupted THEN
    RETURN SQLERRM;
END $$;

-- Rows of a month among all others are found by their ids.
CREATE INDEX task_event_rows_other_id ON task_event_rows_other (id);
CREATE INDEX execution_rows_other_id ON execution_rows_other (id);

SELECT perdura_partition(parent, (date_trunc('month', now() AT TIME ZONE 'UTC')
        + make_interval(months => ahead))::date)
FROM (VALUES ('task_event_rows'), ('execution_rows')) AS parents (parent),
    generate_series(0, 3) AS ahead;

-- Events are never changed: their pages may be full. Every execution is changed when it ends.
DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'execution_rows'::regclass LOOP
        EXECUTE format('ALTER TABLE %s SET (fillfactor = 55)', part);
    END LOOP;
    FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'task_event_rows'::regclass LOOP
        EXECUTE format('ALTER TABLE %s RESET (fillfactor)', part);
    END LOOP;
END $$;
ALTER TABLE task_event_rows_other SET (autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.2);
ALTER TABLE execution_rows_other SET (autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.2);
ALTER TABLE task_uniques SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE task_tags SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE task_results SET (autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.2);
ALTER TABLE task_dependencies SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE task_checkpoints SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE execution_logs SET (autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.2);
ALTER TABLE rate_limits SET (fillfactor = 20, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_scale_factor = 0); -- a few rows, written with every claim of their queues
