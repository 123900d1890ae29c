-- name: tx_begin
BEGIN IMMEDIATE;

-- name: tx_commit
COMMIT;

-- name: tx_rollback
ROLLBACK;
