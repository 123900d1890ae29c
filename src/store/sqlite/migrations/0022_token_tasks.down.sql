-- Data lost: how many tasks each API token may have that have not ended.
DROP TRIGGER tasks_token_counts;
DROP TABLE token_counts;
ALTER TABLE api_tokens DROP COLUMN max_tasks;

-- Encrypted texts become text again; their sums are of the text and stay.
DROP TRIGGER task_specs_by_hand;
DROP TRIGGER task_results_by_hand;
UPDATE task_specs SET payload = sealed_text(payload) WHERE typeof(payload) = 'blob';
UPDATE task_data SET data = sealed_text(data) WHERE typeof(data) = 'blob';
UPDATE task_results SET payload = sealed_text(payload) WHERE typeof(payload) = 'blob';
UPDATE execution_rows SET result_data = sealed_text(result_data) WHERE typeof(result_data) = 'blob';
CREATE TRIGGER task_specs_by_hand AFTER UPDATE OF payload ON task_specs
BEGIN
    UPDATE task_specs SET payload_sum = NULL WHERE task = new.task;
END;
CREATE TRIGGER task_results_by_hand AFTER UPDATE OF payload ON task_results
    WHEN new.payload <> old.payload AND new.payload_sum IS old.payload_sum
BEGIN
    UPDATE task_results SET payload_sum = NULL WHERE task_id = new.task_id;
END;
