-- The months of task_event_rows and execution_rows, through the functions of migration 0002.

-- Gives up soon when another session holds the lock, and retries later: others wait behind us.
-- name: months_settings
SELECT set_config('lock_timeout', '100ms', true), set_config('statement_timeout', '5s', true);

-- Months that do not exist yet, from this one to $1 months ahead.
-- name: months_missing
SELECT p.parent, m.month::text
FROM (VALUES ('task_event_rows'), ('execution_rows')) AS p (parent)
CROSS JOIN (SELECT (date_trunc('month', now() AT TIME ZONE 'UTC')
        + make_interval(months => ahead::integer))::date AS month
    FROM generate_series(0, $1::bigint) AS ahead) m
WHERE to_regclass(perdura_month_name(p.parent, m.month)) IS NULL
ORDER BY m.month, p.parent;

-- name: month_make
SELECT perdura_partition($1, $2::text::date);

-- Months that receive no more rows, oldest first, events before executions; and whether all rows of
-- each are past the retention of events ($1) and executions ($2); absent: all are kept.
-- name: months_old
SELECT m.parent, m.month::text, coalesce(m.ends <= $1 AND m.ends <= $2, false)
FROM (SELECT p.relname::text AS parent, to_date(right(c.relname, 7), 'YYYY_MM') AS month,
        (to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month') AT TIME ZONE 'UTC' AS ends
    FROM pg_inherits i
    JOIN pg_class p ON p.oid = i.inhparent
    JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent IN (to_regclass('task_event_rows'), to_regclass('execution_rows'))
        AND c.relname ~ '_[0-9]{4}_[0-9]{2}$') m
WHERE m.month < (date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month')::date
ORDER BY m.month, m.parent DESC
LIMIT $3;

-- name: month_drop
SELECT perdura_month_drop($1, $2::text::date, $3);

-- The lowest and highest keys of tasks with rows in a month.
-- name: month_tasks
SELECT least(x.first, e.first), greatest(x.last, e.last)
FROM (SELECT min(task) AS first, max(task) AS last FROM execution_rows
    WHERE id >= perdura_first_id(($1::text::date)::timestamp AT TIME ZONE 'UTC')
        AND id < perdura_first_id(($1::text::date + interval '1 month') AT TIME ZONE 'UTC')) x,
    (SELECT min(task) AS first, max(task) AS last FROM task_event_rows
    WHERE id >= perdura_first_id(($1::text::date)::timestamp AT TIME ZONE 'UTC')
        AND id < perdura_first_id(($1::text::date + interval '1 month') AT TIME ZONE 'UTC')) e;

-- Drops the first events that rows of ended tasks stand for, from key $1 to key $2, some at a time.
-- Returns the last key it looked at, and no row at the end.
-- name: month_openings
WITH looked AS (
    SELECT p.task, p.opened, p.created_at FROM task_specs p
    WHERE p.task >= $1 AND p.task <= $2 ORDER BY p.task LIMIT $3),
forgotten AS (
    UPDATE task_specs p SET opened = NULL
    FROM looked l JOIN task_states s ON s.task = l.task
    WHERE p.task = l.task AND l.opened IS NOT NULL AND l.created_at < $4
        AND s.status IN ('completed', 'failed', 'dead_letter', 'cancelled', 'partial')
        AND s.held IS NOT TRUE)
SELECT max(task) FROM looked;
