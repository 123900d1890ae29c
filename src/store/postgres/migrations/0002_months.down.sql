-- The months that were made stay: the tables before this had some, too.
ALTER TABLE rate_limits RESET (fillfactor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_scale_factor);
ALTER TABLE execution_logs RESET (autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_insert_scale_factor);
ALTER TABLE task_checkpoints RESET (autovacuum_vacuum_scale_factor);
ALTER TABLE task_dependencies RESET (autovacuum_vacuum_scale_factor);
ALTER TABLE task_results RESET (autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_insert_scale_factor);
ALTER TABLE task_tags RESET (autovacuum_vacuum_scale_factor);
ALTER TABLE task_uniques RESET (autovacuum_vacuum_scale_factor);
ALTER TABLE execution_rows_other RESET (autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_insert_scale_factor);
ALTER TABLE task_event_rows_other RESET (autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_insert_scale_factor);
DROP INDEX IF EXISTS execution_rows_other_id;
DROP INDEX IF EXISTS task_event_rows_other_id;
DROP FUNCTION perdura_index_check;
DROP FUNCTION perdura_index_checker;
GRANT EXECUTE ON FUNCTION perdura_partition TO PUBLIC;
DROP FUNCTION perdura_month_drop;
CREATE OR REPLACE FUNCTION perdura_partition(parent text, month date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    part text := parent || to_char(month, '"_"YYYY"_"MM');
    starts timestamptz := date_trunc('month', month::timestamp) AT TIME ZONE 'UTC';
    ends timestamptz := (date_trunc('month', month::timestamp) + interval '1 month')
        AT TIME ZONE 'UTC';
BEGIN
    IF to_regclass(part) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)
        WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05,
            autovacuum_vacuum_insert_scale_factor = 0.2)',
        part, parent, perdura_first_id(starts), perdura_first_id(ends));
    RETURN true;
END $$;
DROP FUNCTION perdura_month_there;
DROP FUNCTION perdura_month_name;
