-- What programs enqueued or reported with SQL, until the engine takes it in: only PostgreSQL.

-- Not more than $3 bytes at once. Nodes pass over rows that another one is taking in.
-- name: intake_due
WITH due AS MATERIALIZED (
    SELECT r.task, r.id, r.namespace, r.type, r.payload, r.options::text AS options, r.created_at, r.due_at
    FROM intake_rows r WHERE r.due_at <= $1 ORDER BY r.due_at, r.task LIMIT $2 FOR UPDATE SKIP LOCKED)
SELECT task, id, namespace, type, payload, options, created_at
FROM (SELECT due.*, sum(size) OVER (ORDER BY due.due_at, due.task) - size AS before
    FROM due, LATERAL (SELECT coalesce(octet_length(due.payload), 0) + octet_length(due.options) AS size) s) sized
WHERE before < $3 ORDER BY due_at, task;

-- Waits for a node that is taking it in.
-- name: intake_one
SELECT r.task, r.id, r.namespace, r.type, r.payload, r.options::text, r.created_at
FROM intake_rows r WHERE r.task = $1 FOR UPDATE;

-- name: intake_done
DELETE FROM intake_rows r USING unnest($1::bigint[]) AS v (task) WHERE r.task = v.task;

-- name: intake_put_off
UPDATE intake_rows SET due_at = $2 WHERE task = $1;

-- name: read_intake
SELECT r.task, r.id, r.namespace, r.type, r.payload, r.options::text, r.created_at
FROM intake_rows r WHERE r.task = $1 AND r.id = $2;

-- name: intake_grant
SELECT intake_grant($1, $2);

-- name: intake_count
SELECT (SELECT count(*) FROM intake_rows) + (SELECT count(*) FROM intake_reports);

-- Waits for programs that have not committed; those that come later learn at their commit what was changed.
-- name: intake_hold
LOCK TABLE intake_rows, intake_reports IN SHARE MODE;

-- All reports of a task, or none: it must not be free before the last is applied. Who locks the first one
-- has them all. Not more than $2 bytes at once.
-- name: intake_reports
WITH first AS MATERIALIZED (
    SELECT r.task, r.seq FROM intake_reports r
    WHERE r.due_at <= $3 AND NOT EXISTS (SELECT FROM intake_reports e WHERE e.task = r.task AND e.seq < r.seq)
    ORDER BY r.seq LIMIT $1 FOR UPDATE SKIP LOCKED),
whole AS (
    SELECT task FROM (SELECT first.task, sum(size) OVER (ORDER BY first.seq) - size AS before
        FROM first, LATERAL (SELECT sum(coalesce(octet_length(r.data), 0) + coalesce(octet_length(r.result), 0)
            + coalesce(octet_length(r.details), 0)) AS size FROM intake_reports r WHERE r.task = first.task) s) sized
    WHERE before < $2)
SELECT r.seq, r.id, r.lease_token, r.op, coalesce(r.progress, -1), r.name, r.data, r.result, r.error, r.details,
    r.retryable, r.asked_by
FROM intake_reports r WHERE r.task IN (SELECT task FROM whole) ORDER BY r.seq;

-- name: intake_reports_of
SELECT r.seq, r.id, r.lease_token, r.op, coalesce(r.progress, -1), r.name, r.data, r.result, r.error, r.details,
    r.retryable, r.asked_by
FROM intake_reports r WHERE r.task = $1 ORDER BY r.seq FOR UPDATE;

-- name: intake_reports_done
DELETE FROM intake_reports r USING unnest($1::bigint[]) AS v (seq) WHERE r.seq = v.seq;

-- name: intake_reports_put_off
UPDATE intake_reports SET due_at = $2 WHERE task = $1;
