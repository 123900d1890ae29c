-- The audit trail (core/log/audit.h).

-- A row of ours: every role that can connect may hold an advisory lock.
-- name: audit_lock
INSERT INTO store_info (name, value) VALUES ('lock_audit', '')
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- Nothing could follow a number of that size: only an attacker writes it.
-- name: audit_last
SELECT @audit@ FROM audit_log u WHERE u.seq < 4611686018427387904 ORDER BY u.seq DESC LIMIT 1;

-- name: audit_insert
INSERT INTO audit_log (@audit.names@)
VALUES (@audit.values@);

-- name: audit_behind
SELECT @audit@ FROM audit_log u WHERE u.seq > $1 ORDER BY u.seq LIMIT $2;

-- name: audit_prove
UPDATE audit_log SET mac = $2 WHERE seq = $1;

-- name: audit_remove
DELETE FROM audit_log WHERE seq <= $1;

-- $1 namespace, $2 principal, $3 action or its first part, $4 and $5 object, $6 outcome, $7 from,
-- $8 until, $9 below this id.
-- name: list_audit
SELECT @audit@ FROM audit_log u
WHERE ($1 IS NULL OR u.namespace = $1) AND ($2 IS NULL OR u.principal = $2)
    AND ($3 IS NULL OR u.action = $3 OR starts_with(u.action, $3 || '.'))
    AND ($4 IS NULL OR u.object_kind = $4) AND ($5 IS NULL OR u.object_id = $5)
    AND ($6 IS NULL OR u.outcome = $6) AND ($7 IS NULL OR u.at >= $7)
    AND ($8 IS NULL OR u.at < $8) AND ($9 IS NULL OR u.id < $9)
ORDER BY u.id DESC LIMIT $10;
