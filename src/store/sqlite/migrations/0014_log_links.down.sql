-- Data lost: the codes of log lines that no record names yet: verify names those runs

ALTER TABLE log_heads DROP COLUMN from_hash;
