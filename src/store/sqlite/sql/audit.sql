-- The audit trail (core/log/audit.h).

-- Nothing could follow a number of that size: only an attacker writes it.
-- name: audit_last
SELECT @audit@ FROM audit_log u WHERE u.seq < 4611686018427387904 ORDER BY u.seq DESC LIMIT 1;

-- name: audit_insert
INSERT INTO audit_log (@audit.names@)
VALUES (@audit.values@);

-- name: audit_behind
SELECT @audit@ FROM audit_log u WHERE u.seq > ?1 ORDER BY u.seq LIMIT ?2;

-- name: audit_prove
UPDATE audit_log SET mac = ?2 WHERE seq = ?1;

-- name: audit_remove
DELETE FROM audit_log WHERE seq <= ?1;

-- ?1 namespace, ?2 principal, ?3 action or its first part, ?4 and ?5 object, ?6 outcome, ?7 from,
-- ?8 until, ?9 below this id.
-- name: list_audit
SELECT @audit@ FROM audit_log u WHERE true
    [1: AND u.namespace = ?1]
    [2: AND u.principal = ?2]
    [3: AND (u.action = ?3 OR substr(u.action, 1, length(?3) + 1) = ?3 || '.')]
    [4: AND u.object_kind = ?4]
    [5: AND u.object_id = ?5]
    [6: AND u.outcome = ?6]
    [7: AND u.at >= ?7]
    [8: AND u.at < ?8]
    [9: AND u.id < ?9]
ORDER BY u.id DESC LIMIT ?10;
