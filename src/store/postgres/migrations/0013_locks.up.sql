-- Whoever makes or drops a month waits at a row of ours: an advisory lock anybody may hold who can
-- connect.
CREATE OR REPLACE FUNCTION perdura_month_there(part text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO store_info (name, value) VALUES ('lock_months', '')
    ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    RETURN EXISTS (SELECT FROM pg_class
        WHERE relname = part AND relnamespace = to_regnamespace(quote_ident(current_schema())));
END $$;
