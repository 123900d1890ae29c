-- Data lost: how many tasks each API token may have that have not ended.
DROP TRIGGER tasks_token_counts;
DROP TABLE token_counts;
ALTER TABLE api_tokens DROP COLUMN max_tasks;
