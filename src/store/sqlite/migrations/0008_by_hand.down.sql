DROP TRIGGER tasks_not_by_hand;
DROP TRIGGER tasks_update;
CREATE TRIGGER tasks_update INSTEAD OF UPDATE ON tasks
BEGIN
    UPDATE lane_counts SET tasks = tasks - 1 WHERE status = 'parked' AND new.status <> 'pending'
        AND lane = (SELECT lane FROM task_states WHERE id = old.id AND parked IS NOT NULL);
    INSERT OR IGNORE INTO task_details (task) SELECT task FROM task_states WHERE id = old.id;
    UPDATE task_details SET metadata = new.metadata, retry_count = new.retry_count,
        crash_count = new.crash_count, error = new.error, last_error = new.last_error,
        error_details = new.error_details, recovery_metadata = new.recovery_metadata
    WHERE task = (SELECT task FROM task_states WHERE id = old.id);
    UPDATE task_states SET state = new.state, progress = new.progress, priority = new.priority,
        status = new.status, details = task,
        previous_status = CASE WHEN new.status <> old.status THEN old.status
            ELSE previous_status END,
        parked = CASE WHEN new.status = 'pending' THEN parked END,
        held = CASE WHEN new.status IN ('claimed', 'running', 'cancelled') THEN held END,
        scheduled_at = new.scheduled_at,
        version = old.version + 1,
        updated_at = max(old.updated_at + 1,
            CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    WHERE id = old.id;
    UPDATE lane_counts SET tasks = tasks - 1 WHERE status = old.status AND old.status <> new.status
        AND lane = (SELECT lane FROM task_states WHERE id = old.id);
    INSERT INTO lane_counts (lane, status, tasks)
        SELECT lane, new.status, 1 FROM task_states WHERE id = old.id AND old.status <> new.status
        ON CONFLICT (lane, status) DO UPDATE SET tasks = tasks + 1;
END;
