-- JSON that a person writes into the view tasks nests as deep as in a request at most, and its numbers
-- fit a double: the command line and workers elsewhere refuse lists that hold anything else.
CREATE FUNCTION perdura_json_by_hand() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    value jsonb;
BEGIN
    FOREACH value IN ARRAY ARRAY[
        CASE WHEN new.metadata IS DISTINCT FROM old.metadata THEN new.metadata END,
        CASE WHEN new.error_details IS DISTINCT FROM old.error_details THEN new.error_details END,
        CASE WHEN new.recovery_metadata IS DISTINCT FROM old.recovery_metadata THEN new.recovery_metadata END]
    LOOP
        IF jsonb_path_exists(value, 'strict $.**{64} ? (@.type() == "array" || @.type() == "object")') THEN
            RAISE EXCEPTION 'task % cannot be changed like this with SQL: the JSON nests deeper than 64 levels',
                old.id USING ERRCODE = '23514';
        ELSIF jsonb_path_exists(value, 'strict $.** ? (@ > 1.7976931348623157e308 || @ < -1.7976931348623157e308)')
        THEN
            RAISE EXCEPTION 'task % cannot be changed like this with SQL: a number is outside the range of a double',
                old.id USING ERRCODE = '23514';
        END IF;
    END LOOP;
    RETURN new;
END $$;

-- Before tasks_update, by its name.
CREATE TRIGGER tasks_json INSTEAD OF UPDATE ON tasks
    FOR EACH ROW EXECUTE FUNCTION perdura_json_by_hand();
