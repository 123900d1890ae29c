-- Rows of categories, jobs, schedules, patterns and dependencies that a person writes with SQL: ids and times
-- by themselves, checks, and nodes that notice. A node plans a schedule, so its row says at first that it waits
-- for one. Connections of nodes are named perdura; what they write needs none of this.

ALTER TABLE job_categories ALTER id SET DEFAULT gen_random_uuid(), ALTER created_at SET DEFAULT now(),
    ALTER updated_at SET DEFAULT now(),
    ADD CONSTRAINT chk_category_priority CHECK (default_priority IN ('low', 'medium', 'high', 'critical')
        OR default_priority ~ '^-?[0-9]{1,4}$') NOT VALID;
ALTER TABLE jobs ALTER id SET DEFAULT gen_random_uuid(), ALTER payload SET DEFAULT '{}', ALTER created_at SET DEFAULT now(),
    ALTER updated_at SET DEFAULT now(),
    ADD CONSTRAINT chk_job_priority CHECK (priority IN ('low', 'medium', 'high', 'critical')
        OR priority ~ '^-?[0-9]{1,4}$') NOT VALID;
ALTER TABLE schedules ALTER id SET DEFAULT gen_random_uuid(), ALTER created_at SET DEFAULT now(),
    ALTER updated_at SET DEFAULT now(),
    ADD CONSTRAINT chk_schedule_config CHECK (
        (schedule_type = 'cron' AND cron_expression IS NOT NULL) OR
        (schedule_type = 'interval' AND interval_seconds IS NOT NULL) OR
        (schedule_type = 'once' AND scheduled_at IS NOT NULL) OR
        (schedule_type = 'immediate')) NOT VALID;
ALTER TABLE recurring_jobs ALTER id SET DEFAULT gen_random_uuid(), ALTER created_at SET DEFAULT now(),
    ALTER updated_at SET DEFAULT now();
ALTER TABLE job_dependencies ALTER id SET DEFAULT gen_random_uuid(), ALTER created_at SET DEFAULT now();

CREATE FUNCTION perdura_of_node() RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT current_setting('application_name') = 'perdura' $$;

-- Tells nodes, once in a transaction and with its commit; holds the catalog's lock until then, as their own
-- edits do.
CREATE FUNCTION perdura_catalog_by_hand() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF perdura_of_node() THEN
        RETURN NULL;
    END IF;
    INSERT INTO store_info AS i (name, value) VALUES ('catalog_version', '1'), ('catalog_by_hand', '1')
    ON CONFLICT (name) DO UPDATE SET value = (i.value::bigint + 1)::text;
    PERFORM pg_notify(value, chr(31) || chr(6)) FROM store_info WHERE name = 'hints';
    RETURN NULL;
END $$;

-- A category that is there already with the same figures stays as it is: scripts that fill a new store with
-- the first categories run on this one.
CREATE FUNCTION perdura_category_by_hand() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT perdura_of_node() AND EXISTS (SELECT FROM job_categories c WHERE (c.namespace, c.name, c.default_priority,
            c.default_timeout, c.default_max_retries, c.configuration) = (new.namespace, new.name,
            new.default_priority, new.default_timeout, new.default_max_retries, new.configuration)) THEN
        RETURN NULL;
    END IF;
    RETURN new;
END $$;

CREATE FUNCTION perdura_job_by_hand() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT perdura_of_node() THEN -- which may write it encrypted
        PERFORM new.payload::json;
    END IF;
    RETURN new;
END $$;

-- For schedules (next_fire_at) and patterns (next_generation): the leader computes the next instant of rows
-- that have an error and none.
CREATE FUNCTION perdura_plan_by_hand() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF perdura_of_node() THEN
        RETURN new;
    END IF;
    new.error := CASE WHEN new.is_active THEN 'written with SQL; a node plans it within a second' END;
    IF tg_table_name = 'schedules' THEN
        new.next_fire_at := NULL;
    ELSE
        new.next_generation := NULL;
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER job_categories_given BEFORE INSERT ON job_categories
    FOR EACH ROW EXECUTE FUNCTION perdura_category_by_hand();
CREATE TRIGGER jobs_payload BEFORE INSERT OR UPDATE OF payload ON jobs
    FOR EACH ROW EXECUTE FUNCTION perdura_job_by_hand();
CREATE TRIGGER schedules_new BEFORE INSERT ON schedules
    FOR EACH ROW WHEN (new.next_fire_at IS NULL) EXECUTE FUNCTION perdura_plan_by_hand();
CREATE TRIGGER schedules_times BEFORE UPDATE OF schedule_type, cron_expression, interval_seconds, scheduled_at,
        timezone, starts_at, ends_at, is_active, dst
    ON schedules FOR EACH ROW WHEN (new.next_fire_at IS NOT DISTINCT FROM old.next_fire_at)
    EXECUTE FUNCTION perdura_plan_by_hand();
CREATE TRIGGER recurring_jobs_new BEFORE INSERT ON recurring_jobs
    FOR EACH ROW WHEN (new.next_generation IS NULL) EXECUTE FUNCTION perdura_plan_by_hand();
CREATE TRIGGER recurring_jobs_times BEFORE UPDATE OF pattern_type, pattern_config, is_active
    ON recurring_jobs FOR EACH ROW WHEN (new.next_generation IS NOT DISTINCT FROM old.next_generation)
    EXECUTE FUNCTION perdura_plan_by_hand();

-- Not of what the ends of runs and firing write.
CREATE TRIGGER job_categories_tell AFTER INSERT OR DELETE OR UPDATE ON job_categories
    FOR EACH STATEMENT EXECUTE FUNCTION perdura_catalog_by_hand();
CREATE TRIGGER jobs_tell AFTER INSERT OR DELETE OR UPDATE OF name, description, category_id, task_type, queue,
        target_service, target_method, payload, priority, max_retries, timeout_seconds, max_concurrent,
        callback_url, is_active, created_by, deleted_at
    ON jobs FOR EACH STATEMENT EXECUTE FUNCTION perdura_catalog_by_hand();
CREATE TRIGGER schedules_tell AFTER INSERT OR DELETE OR UPDATE OF job_id, schedule_type, cron_expression,
        interval_seconds, scheduled_at, timezone, starts_at, ends_at, is_active, misfire, misfire_grace_ms,
        misfire_cap, overlap, dst, jitter_ms, callback_url
    ON schedules FOR EACH STATEMENT EXECUTE FUNCTION perdura_catalog_by_hand();
CREATE TRIGGER recurring_jobs_tell AFTER INSERT OR DELETE OR UPDATE OF name, pattern_type, pattern_config,
        template_job_id, is_active
    ON recurring_jobs FOR EACH STATEMENT EXECUTE FUNCTION perdura_catalog_by_hand();
CREATE TRIGGER job_dependencies_tell AFTER INSERT OR DELETE OR UPDATE ON job_dependencies
    FOR EACH STATEMENT EXECUTE FUNCTION perdura_catalog_by_hand();

DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
            AND p.proname = ANY ('{perdura_of_node,perdura_catalog_by_hand,perdura_category_by_hand,'
                'perdura_job_by_hand,perdura_plan_by_hand}')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', one, current_schema());
        IF one <> 'perdura_of_node'::regproc THEN
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
        END IF;
    END LOOP;
END $$;
