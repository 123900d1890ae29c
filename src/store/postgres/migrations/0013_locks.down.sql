CREATE OR REPLACE FUNCTION perdura_month_there(part text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(72981704, hashtext(current_schema() || '.' || part));
    RETURN EXISTS (SELECT FROM pg_class
        WHERE relname = part AND relnamespace = to_regnamespace(quote_ident(current_schema())));
END $$;
DELETE FROM store_info WHERE name IN ('lock_months', 'lock_log_anchors');
