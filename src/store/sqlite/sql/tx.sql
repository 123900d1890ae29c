-- name: tx_begin
BEGIN IMMEDIATE;

-- name: tx_commit
COMMIT;

-- name: tx_rollback
ROLLBACK;

-- name: tx_data_version
PRAGMA data_version;
