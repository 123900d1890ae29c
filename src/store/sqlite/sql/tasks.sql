-- Tasks: insert, update, load, delete. Columns in the order of sqlite_row.c.

-- name: state_insert
INSERT INTO task_states (
    task, id, lane, status, previous_status, state, progress, version, updated_at, priority,
    scheduled_at, by_wall, order_key, parked, attempts, worker_id, held, lease_token, lease_until,
    last_heartbeat, claimed_at, started_at, execution, report_seq, outcome_token, outcome_hash,
    event_seq, completed_at, has_data, details
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
    ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30
);

-- name: spec_insert
INSERT INTO task_specs (task, lane, name, payload, idempotency_key, limit_key, max_retries,
    timeout_ms, created_at, options, opened, payload_sum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12);

-- name: options_insert
INSERT INTO task_options (
    task, tags, user_id, external_id, context_key, correlation_id, workflow_id, input_hash,
    unique_until, callback_url, ref, job_id, schedule_id, recurring_job_id, category_id,
    parent_id, on_unsatisfied, retry_policy, retry_delay_ms, max_retry_delay_ms, max_crashes,
    max_continuations, stall_after_ms, run_at, recovery_priority, auto_recovery_enabled,
    traceparent, tracestate
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
    ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28
);

-- name: details_put
INSERT OR REPLACE INTO task_details (
    task, retry_count, crash_count, continuations, next_retry_at, unlisted, pause_requested,
    open_dependencies, unsatisfied, open_children, waits_children, metadata, checkpoint_data,
    resumed_from, recovery_metadata, error, last_error, error_details
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18
);

-- name: details_delete
DELETE FROM task_details WHERE task = ?1;

-- name: state_update
UPDATE task_states SET
    status = ?4, previous_status = ?5, state = ?6, progress = ?7, version = ?8, updated_at = ?9,
    priority = ?10, scheduled_at = ?11, by_wall = ?12, order_key = ?13, parked = ?14,
    attempts = ?15, worker_id = ?16, held = ?17, lease_token = ?18, lease_until = ?19,
    last_heartbeat = ?20, claimed_at = ?21, started_at = ?22, execution = ?23, report_seq = ?24,
    outcome_token = ?25, outcome_hash = ?26, event_seq = ?27, completed_at = ?28,
    has_data = ?29, details = ?30
WHERE task = ?1 AND version = ?31;

-- name: task_state
SELECT @state@ FROM task_states s @details@ WHERE s.task = ?1;

-- name: task_lean
SELECT @state@, @lean@ FROM task_states s @joins@ WHERE s.task = ?1;

-- name: task_full
SELECT @state@, @spec@ FROM task_states s @joins@ WHERE s.task = ?1;

-- name: task_data
SELECT data FROM task_data WHERE task = ?1;

-- name: data_put
INSERT INTO task_data (task, data) VALUES (?1, ?2)
ON CONFLICT (task) DO UPDATE SET data = excluded.data;

-- name: data_delete
DELETE FROM task_data WHERE task = ?1;

-- name: task_tag_insert
INSERT OR IGNORE INTO task_tags (namespace, tag, task) VALUES (?1, ?2, ?3);

-- name: task_deletes_state
DELETE FROM task_states WHERE task = ?1;

-- name: task_deletes_spec
DELETE FROM task_specs WHERE task = ?1;

-- name: task_deletes_options
DELETE FROM task_options WHERE task = ?1;

-- name: task_deletes_tags
DELETE FROM task_tags WHERE namespace = ?1 AND tag = ?2 AND task = ?3;

-- name: task_deletes_events
DELETE FROM task_event_rows WHERE task = ?1;

-- name: task_deletes_executions
DELETE FROM execution_rows WHERE task = ?1;

-- name: task_deletes_checkpoints
DELETE FROM task_checkpoints WHERE task_id = ?1;

-- name: task_deletes_dependencies
DELETE FROM task_dependencies WHERE task_id = ?1 OR depends_on_task_id = ?1;

-- name: task_deletes_recovery
DELETE FROM recovery_queue WHERE task_id = ?1;

-- name: unique_insert
INSERT INTO task_uniques (namespace, kind, type, value, task) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO NOTHING;

-- name: unique_owner
SELECT u.task, s.id FROM task_uniques u LEFT JOIN task_states s ON s.task = u.task
WHERE u.namespace = ?1 AND u.kind = ?2 AND u.type = ?3 AND u.value = ?4;

-- name: unique_delete
DELETE FROM task_uniques
WHERE namespace = ?1 AND kind = ?2 AND type = ?3 AND value = ?4 AND task = ?5;

-- name: lane_insert
INSERT INTO lanes (namespace, queue, type) VALUES (?1, ?2, ?3);

-- name: lane_find
SELECT lane FROM lanes WHERE namespace = ?1 AND queue = ?2 AND type = ?3;

-- name: lanes_all
SELECT lane, namespace, queue, type FROM lanes;

-- name: count_add
INSERT INTO lane_counts (lane, status, tasks) VALUES (?1, ?2, ?3)
ON CONFLICT (lane, status) DO UPDATE SET tasks = tasks + excluded.tasks;

-- name: counts_all
SELECT lane, status, tasks FROM lane_counts WHERE tasks <> 0;
