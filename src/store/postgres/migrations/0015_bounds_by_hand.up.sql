-- Hand-written SQL on the view tasks keeps the bounds of the API (core/bounds.h), which the nodes'
-- own writes keep already. Only what changes is looked at, so that any task can be cancelled.
CREATE FUNCTION perdura_bounds_by_hand() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reason text := CASE
        WHEN (new.retry_count <> old.retry_count AND new.retry_count > 1000000)
            OR (new.crash_count <> old.crash_count AND new.crash_count > 1000000)
            THEN 'retry_count and crash_count are numbers from 0 to 1000000'
        WHEN new.state <> old.state AND octet_length(new.state) > 200
            THEN 'state is longer than 200 bytes'
        WHEN (new.error IS DISTINCT FROM old.error AND octet_length(new.error) > 4096)
            OR (new.last_error IS DISTINCT FROM old.last_error
                AND octet_length(new.last_error) > 4096)
            THEN 'error and last_error must not be longer than 4096 bytes'
        WHEN (new.metadata IS DISTINCT FROM old.metadata
                AND octet_length(new.metadata::text) > 16384)
            OR (new.error_details IS DISTINCT FROM old.error_details
                AND octet_length(new.error_details::text) > 16384)
            OR (new.recovery_metadata IS DISTINCT FROM old.recovery_metadata
                AND octet_length(new.recovery_metadata::text) > 16384)
            THEN 'metadata, error_details and recovery_metadata must not be longer than 16384 bytes'
        END;
BEGIN
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION 'task % cannot be changed like this with SQL: %', old.id, reason
            USING ERRCODE = '23514';
    END IF;
    RETURN new;
END $$;

-- Triggers of a view run in the order of their names: this one before tasks_update.
CREATE TRIGGER tasks_bounds INSTEAD OF UPDATE ON tasks
    FOR EACH ROW EXECUTE FUNCTION perdura_bounds_by_hand();
