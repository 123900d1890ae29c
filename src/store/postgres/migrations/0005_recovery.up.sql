-- The recovery queue is worked off by priority. Discovery and validation for whoever asks in SQL: the
-- same answers as GET /v1/recovery/candidates and POST /v1/recovery/validate give.

CREATE INDEX recovery_queue_pending ON recovery_queue (recovery_priority DESC, scheduled_for, id)
    WHERE status = 'pending';

-- Auto-recoverable tasks that were given up, ended in part, or whose handler gives no sign.
CREATE FUNCTION discover_recoverable_tasks()
RETURNS TABLE (task_id varchar(255), task_name varchar(255), user_id text,
    current_state varchar(50), last_heartbeat timestamptz, recovery_priority integer)
LANGUAGE sql STABLE AS $$
    SELECT coalesce(p.external_id, s.id::text), coalesce(p.name, l.type), p.user_id,
        CASE WHEN s.status <> 'running' THEN s.status
            WHEN s.checkpoint_data IS NOT NULL THEN 'checkpoint' ELSE 'processing' END,
        s.last_heartbeat, coalesce(p.recovery_priority, 0)::integer
    FROM (SELECT r.task FROM settled_rows r WHERE r.status IN ('orphaned', 'partial')
        UNION ALL SELECT h.task FROM held_rows h) f
    JOIN task_states s ON s.task = f.task
    JOIN task_specs p ON p.task = f.task
    JOIN lanes l ON l.lane = s.lane
    WHERE coalesce(p.auto_recovery_enabled, true)
        AND (s.status IN ('orphaned', 'partial') OR (s.status = 'running' AND s.last_heartbeat
            < now() - coalesce(p.stall_after_ms, 600000) * interval '1 millisecond'))
    ORDER BY coalesce(p.recovery_priority, 0) DESC, s.updated_at, s.id
$$;

-- One field of a checkpoint as its hash covers it: behind its length, an absent one marked.
CREATE FUNCTION perdura_hash_field(field text) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN field IS NULL THEN '\xffffffffffffffff'::bytea
        ELSE int8send(octet_length(convert_to(field, 'UTF8'))) || convert_to(field, 'UTF8') END
$$;

CREATE FUNCTION perdura_checkpoint_intact(c task_checkpoints) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT encode(sha256(int8send(16) || uuid_send(c.task_id) || int8send(8) || int8send(c.seq)
        || perdura_hash_field(c.checkpoint_name) || int8send(8) || int8send(c.progress_percent)
        || perdura_hash_field(c.step_description) || perdura_hash_field(c.recoverable_data)
        || perdura_hash_field(c.database_state) || perdura_hash_field(c.file_state)), 'hex')
        = c.checkpoint_hash
$$;

-- Every live worker of the queue says what it runs, and none runs this type.
CREATE FUNCTION perdura_handler_gone(in_queue text, of_type text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT coalesce(bool_and(w.types IS NOT NULL AND jsonb_array_length(w.types::jsonb) > 0
        AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements_text(w.types::jsonb) t (pattern)
            WHERE t.pattern = of_type OR (right(t.pattern, 1) = '*'
                AND starts_with(of_type, left(t.pattern, -1))))), false)
    FROM workers w
    WHERE w.lease_until >= now() AND w.queues::jsonb ? in_queue
$$;

CREATE FUNCTION validate_task_recovery(task_registry_uuid uuid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    t record;
    c task_checkpoints;
    reason text;
    silent boolean;
    damaged bigint := 0;
    usable jsonb;
BEGIN
    SELECT s.status, s.last_heartbeat, s.checkpoint_data, l.queue, l.type,
        coalesce(s.crash_count, 0) AS crash_count, coalesce(p.max_crashes, 3) AS max_crashes,
        coalesce(p.stall_after_ms, 600000) AS stall_after_ms,
        EXISTS (SELECT 1 FROM task_uniques u WHERE u.namespace = l.namespace AND u.type = l.type
            AND u.kind = CASE WHEN p.idempotency_key IS NULL THEN 'hash' ELSE 'key' END
            AND u.value = coalesce(p.idempotency_key, p.input_hash) AND u.task <> s.task
            AND p.unique_until = 'ended' AND s.status = 'partial') AS key_taken
    INTO t FROM task_states s JOIN task_specs p ON p.task = s.task
    JOIN lanes l ON l.lane = s.lane
    WHERE s.task = perdura_key(task_registry_uuid) AND s.id = task_registry_uuid;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('valid', false, 'reason', 'not_found', 'detail',
            jsonb_build_object('task_id', task_registry_uuid));
    END IF;
    silent := t.status = 'running'
        AND t.last_heartbeat < now() - t.stall_after_ms * interval '1 millisecond';
    FOR c IN SELECT * FROM task_checkpoints x
        WHERE x.task_id = task_registry_uuid AND x.is_valid ORDER BY x.seq DESC
    LOOP
        IF perdura_checkpoint_intact(c) THEN
            usable := jsonb_build_object('seq', c.seq, 'name', c.checkpoint_name,
                'progress', c.progress_percent);
            EXIT;
        END IF;
        damaged := damaged + 1;
    END LOOP;
    reason := CASE
        WHEN t.status = 'completed' THEN 'already_completed'
        WHEN t.status = 'dead_letter' THEN 'attempts_exhausted'
        WHEN t.status IN ('failed', 'cancelled') THEN 'ended'
        WHEN t.status NOT IN ('orphaned', 'partial') AND NOT silent THEN 'not_lost'
        WHEN t.crash_count >= t.max_crashes THEN 'attempts_exhausted'
        WHEN t.key_taken THEN 'key_taken'
        WHEN usable IS NULL AND (damaged > 0 OR t.checkpoint_data IS NOT NULL)
            THEN 'checkpoint_damaged'
        WHEN perdura_handler_gone(t.queue, t.type) THEN 'handler_gone'
    END;
    RETURN jsonb_build_object('valid', reason IS NULL, 'reason', reason, 'detail',
        jsonb_build_object('task_id', task_registry_uuid, 'status', t.status, 'stalled', silent,
            'checkpoint', usable, 'checkpoints_damaged', damaged, 'crash_count', t.crash_count,
            'max_crashes', t.max_crashes));
END
$$;
