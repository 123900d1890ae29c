-- Data lost: reports that programs made with SQL and that no node has applied yet; start a node first.
UPDATE task_states SET outcome_token = NULL, rev = rev + 1 WHERE outcome_token < 0;
DROP FUNCTION complete(uuid, bigint, jsonb), fail(uuid, bigint, text, jsonb, boolean),
    checkpoint(uuid, bigint, text, integer, jsonb), intake_report(intake_reports);
DROP TABLE intake_reports;
DROP FUNCTION intake_reports_tell();
