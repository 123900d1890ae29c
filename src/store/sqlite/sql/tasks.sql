-- Tasks: insert, update, load, delete. sqlite_sql.c fills in the columns.

-- name: state_insert
INSERT INTO task_states @state_insert@;

-- name: spec_insert
INSERT INTO task_specs @spec_insert@;

-- name: options_insert
INSERT INTO task_options @options_insert@;

-- name: details_put
INSERT OR REPLACE INTO task_details @details_insert@;

-- name: details_delete
DELETE FROM task_details WHERE task = ?1;

-- name: state_update
UPDATE task_states SET @state_update@;

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

-- name: unique_task
SELECT task FROM task_uniques WHERE namespace = ?1 AND kind = ?2 AND type = ?3 AND value = ?4;

-- name: uniques_delete
DELETE FROM task_uniques
WHERE namespace = ?1 AND kind = ?2 AND type = ?3 AND value = ?4 AND task = ?5;

-- name: lane_insert
INSERT INTO lanes (namespace, queue, type, category_id) VALUES (?1, ?2, ?3, ?4);

-- name: lane_find
SELECT lane FROM lanes WHERE namespace = ?1 AND queue = ?2 AND type = ?3;

-- name: lanes_all
SELECT lane, namespace, queue, type, category_id FROM lanes;

-- name: count_add
INSERT INTO lane_counts (lane, status, tasks) VALUES (?1, ?2, ?3)
ON CONFLICT (lane, status) DO UPDATE SET tasks = tasks + excluded.tasks;

-- name: counts_all
SELECT lane, status, tasks FROM lane_counts WHERE tasks <> 0;
