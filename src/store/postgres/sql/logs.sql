-- Log lines with their chains, the chains that wait for a record, and the records.

-- The newest lines, and the notes of them; of an earlier line that is known, its hash.
-- name: logs_last
SELECT v.execution_id, l.seq, l.chain_hash, l.logged_at, h.seq, h.chain_hash, h.lines, h.task_id,
    h.task_type, h.logged_at, h.closed, h.mac, h.from_hash,
    CASE WHEN v.known < l.seq THEN (SELECT k.chain_hash FROM execution_logs k
        WHERE k.execution_id = v.execution_id AND k.seq = v.known) END
FROM unnest($1::uuid[], $2::bigint[]) AS v (execution_id, known)
CROSS JOIN LATERAL (SELECT g.seq, g.chain_hash, g.logged_at FROM execution_logs g
    WHERE g.execution_id = v.execution_id ORDER BY g.seq DESC LIMIT 1) l
LEFT JOIN log_heads h ON h.execution_id = v.execution_id AND h.seq = l.seq;

-- name: logs_lasts
SELECT e.id, l.seq, l.chain_hash, l.logged_at, h.seq, h.chain_hash, h.lines, h.task_id,
    h.task_type, h.logged_at, h.closed, h.mac, h.from_hash, v.at
FROM unnest($1::bigint[]) WITH ORDINALITY AS v (task, at)
JOIN execution_rows e ON e.task = v.task
CROSS JOIN LATERAL (SELECT g.seq, g.chain_hash, g.logged_at FROM execution_logs g
    WHERE g.execution_id = e.id ORDER BY g.seq DESC LIMIT 1) l
LEFT JOIN log_heads h ON h.execution_id = e.id AND h.seq = l.seq;

-- name: logs_chains
SELECT DISTINCT execution_id FROM execution_logs
WHERE execution_id > coalesce($1, '00000000-0000-0000-0000-000000000000')
ORDER BY execution_id LIMIT $2;

-- name: logs_emptied
SELECT execution_id, log_level, max(seq), count(*) FROM execution_logs
WHERE removed_hash IS NOT NULL GROUP BY execution_id, log_level ORDER BY execution_id;

-- name: logs_any
SELECT EXISTS (SELECT FROM execution_logs);

-- As with checkpoints, another node may have used the same numbers. If a note of the same line is
-- there already, an attacker removed lines that this node had written: the note stays as the proof.
-- name: logs_insert
WITH made AS (
    INSERT INTO execution_logs (id, execution_id, seq, log_level, message, context, logged_at,
        chain_hash)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[],
        $6::text[], $7::timestamptz[], $8::text[])
    ON CONFLICT (execution_id, seq) DO NOTHING RETURNING 1),
noted AS (
    INSERT INTO log_heads (execution_id, seq, chain_hash, lines, task_id, task_type, logged_at,
        closed, mac, from_hash)
    SELECT * FROM unnest($9::uuid[], $10::bigint[], $11::text[], $12::bigint[], $13::uuid[],
        $14::text[], $15::timestamptz[], $16::text[], $17::text[], $18::text[])
    ON CONFLICT (execution_id, seq) DO NOTHING)
SELECT perdura_expect(count(*), cardinality($1), 'execution_logs') FROM made;

-- Other nodes may write later notes of the same executions meanwhile: takes exactly the notes it
-- sees. An execution counts as ended two seconds later, because another node's last line may still be
-- on its way. Reads every note, because only some of them may have been made with the key.
-- name: heads_take
WITH oldest AS (
    SELECT n.execution_id, e.ended
    FROM (SELECT h.execution_id, bool_or(h.lines > 0) AS continued FROM log_heads h
        WHERE h.closed = '' GROUP BY h.execution_id) n
    CROSS JOIN LATERAL (SELECT coalesce((SELECT CASE WHEN x.status IN ('pending', 'running')
                OR x.completed_at > now() - interval '2 seconds' THEN '' ELSE x.status END FROM execution_rows x
        WHERE x.execution = perdura_key(n.execution_id) AND x.id = n.execution_id LIMIT 1),
        'removed') AS ended OFFSET 0) e
    WHERE n.continued OR e.ended <> ''
    ORDER BY n.execution_id LIMIT $1),
taken AS (
    DELETE FROM log_heads h USING oldest o WHERE h.execution_id = o.execution_id AND h.closed = ''
    RETURNING h.*, o.ended)
SELECT execution_id, seq, chain_hash, lines, task_id, task_type, logged_at, closed, mac, from_hash,
    nullif(ended, '')
FROM taken ORDER BY execution_id, seq;

-- name: heads_put
INSERT INTO log_heads (execution_id, seq, chain_hash, lines, task_id, task_type, logged_at, closed,
    mac, from_hash)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::uuid[], $6::text[],
    $7::timestamptz[], $8::text[], $9::text[], $10::text[])
ON CONFLICT (execution_id, seq) DO NOTHING;

-- name: heads_forget
DELETE FROM log_heads h USING unnest($1::uuid[], $2::bigint[]) AS v (execution_id, seq)
WHERE h.execution_id = v.execution_id AND h.seq <= v.seq;

-- name: heads_open
SELECT EXISTS (SELECT FROM log_heads WHERE closed = '');

-- Records follow each other: a node that adds one waits for the node that is adding one. The lock is
-- a row of ours, because every client that can connect can hold an advisory lock.
-- name: anchor_lock
INSERT INTO store_info (name, value) VALUES ('lock_log_anchors', '')
ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING name;

-- No record could follow a serial of that size, so Perdura did not write it.
-- name: anchor_last
SELECT serial, record, record_hash, signature, created_at FROM log_anchors
WHERE serial < 4611686018427387904 ORDER BY serial DESC LIMIT 1;

-- name: anchor_insert
INSERT INTO log_anchors (serial, record, record_hash, signature, created_at)
VALUES ($1, $2, $3, $4, $5);

-- name: anchors_after
SELECT serial, record, record_hash, signature, created_at FROM log_anchors
WHERE serial > $1 ORDER BY serial LIMIT $2;

-- name: heads_alive
SELECT EXISTS (SELECT FROM execution_logs g WHERE g.execution_id = v.execution_id)
FROM unnest($1::uuid[]) WITH ORDINALITY AS v (execution_id, at) ORDER BY v.at;

-- name: heads_stand
SELECT EXISTS (SELECT FROM execution_logs g WHERE g.execution_id = v.execution_id AND g.seq = v.seq
    AND g.chain_hash = v.chain_hash)
FROM unnest($1::uuid[], $2::bigint[], $3::text[]) WITH ORDINALITY
    AS v (execution_id, seq, chain_hash, at) ORDER BY v.at;

-- name: anchors_trim
DELETE FROM log_anchors WHERE serial <= $1;

-- name: logs_of_level
SELECT v.at, g.execution_id, g.seq, g.message, g.context
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) WITH ORDINALITY
    AS v (execution_id, from_seq, to_seq, at)
CROSS JOIN LATERAL (SELECT x.execution_id, x.seq, x.message, x.context FROM execution_logs x
    WHERE x.execution_id = v.execution_id AND x.seq BETWEEN v.from_seq AND v.to_seq
        AND x.log_level = $4 AND x.removed_hash IS NULL
    ORDER BY x.seq OFFSET 0) g;

-- name: logs_empty
UPDATE execution_logs g SET message = '', context = NULL, removed_hash = v.hash
FROM unnest($1::uuid[], $2::bigint[], $3::text[]) AS v (execution_id, seq, hash)
WHERE g.execution_id = v.execution_id AND g.seq = v.seq;

-- The type behind its namespace, as core/queue_name.h has it.
-- name: log_runs
SELECT v.execution_id, l.seq, l.chain_hash, l.logged_at, h.seq, h.chain_hash, h.lines, h.task_id,
    h.task_type, h.logged_at, h.closed, h.mac, h.from_hash,
    CASE WHEN n.namespace <> 'default' THEN n.namespace || chr(30) ELSE '' END || n.type,
    e.status IN ('pending', 'running'), s.id
FROM unnest($1::uuid[]) WITH ORDINALITY AS v (execution_id, at)
LEFT JOIN LATERAL (SELECT g.seq, g.chain_hash, g.logged_at FROM execution_logs g
    WHERE g.execution_id = v.execution_id ORDER BY g.seq DESC LIMIT 1) l ON true
LEFT JOIN log_heads h ON h.execution_id = v.execution_id AND h.seq = l.seq
LEFT JOIN LATERAL (SELECT x.task, x.status FROM execution_rows x
    WHERE x.execution = perdura_key(v.execution_id) AND x.id = v.execution_id LIMIT 1) e ON true
LEFT JOIN LATERAL (SELECT s.lane, t.id FROM task_specs s JOIN task_states t ON t.task = s.task
    WHERE s.task = e.task OFFSET 0) s ON true
LEFT JOIN lanes n ON n.lane = s.lane
ORDER BY v.at;

-- name: logs_cut
WITH gone AS (
    DELETE FROM execution_logs g USING unnest($1::uuid[], $2::bigint[]) AS v (execution_id, to_seq)
    WHERE g.execution_id = v.execution_id AND g.seq <= v.to_seq
    RETURNING g.execution_id, g.seq, g.chain_hash, g.logged_at),
forgotten AS (
    DELETE FROM log_heads h USING (SELECT execution_id, max(seq) AS seq FROM gone
        GROUP BY execution_id) o
    WHERE h.execution_id = o.execution_id AND h.seq <= o.seq)
SELECT DISTINCT ON (execution_id) execution_id, seq, chain_hash,
    count(*) OVER (PARTITION BY execution_id), max(logged_at) OVER (PARTITION BY execution_id)
FROM gone ORDER BY execution_id, seq DESC;

-- name: walk_heads
SELECT execution_id, seq, chain_hash, lines, task_id, task_type, logged_at, closed, mac, from_hash
FROM log_heads
WHERE (execution_id, seq) > (coalesce($1, '00000000-0000-0000-0000-000000000000'), $2)
ORDER BY execution_id, seq LIMIT $3;

-- Each line with the task of its execution, found the way readers find it. A second row in another
-- month, which only readers would look into, shows the lines as those of another task: then they are
-- of none.
-- name: walk_lines
WITH lines AS MATERIALIZED (
    SELECT execution_id, seq, log_level, message, context, logged_at, chain_hash, removed_hash, id
    FROM (SELECT *, sum(bytes) OVER (ORDER BY execution_id, seq) - bytes AS before
        FROM (SELECT *, octet_length(message) + coalesce(octet_length(context), 0) AS bytes
            FROM execution_logs
            WHERE (execution_id, seq) > (coalesce($1, '00000000-0000-0000-0000-000000000000'), $2)
            ORDER BY execution_id, seq LIMIT $3) c) sized
    WHERE before < $4),
owners AS MATERIALIZED (
    SELECT x.execution_id, t.* FROM (SELECT DISTINCT execution_id FROM lines) x
    CROSS JOIN LATERAL (SELECT s.id AS task_id, e.attempt_number, e.worker_id, p.correlation_id,
            coalesce(p.correlation_id, '') = coalesce(e.correlation_id, '') AS agree
        FROM execution_rows e
        JOIN task_states s ON s.task = e.task AND s.task = perdura_key(s.id)
        JOIN task_specs p ON p.task = e.task JOIN lanes n ON n.lane = s.lane
        WHERE e.execution = perdura_key(x.execution_id) AND e.id = x.execution_id
            AND (SELECT count(*) FROM execution_rows o WHERE o.execution = e.execution) = 1 OFFSET 0) t)
SELECT l.execution_id, l.seq, l.log_level, l.message, l.context, l.logged_at, l.chain_hash,
    o.task_id, l.removed_hash, l.id, o.attempt_number, o.worker_id, o.correlation_id,
    o.agree
FROM lines l LEFT JOIN owners o USING (execution_id) ORDER BY l.execution_id, l.seq;

-- Until this transaction ends, no record takes these notes. A record that is being written replaces
-- them by others, which only a later statement sees.
-- name: chain_notes_lock
SELECT 1 FROM log_heads WHERE execution_id = ANY ($1::uuid[]) ORDER BY execution_id, seq FOR UPDATE;

-- name: chain_notes
SELECT execution_id, seq, chain_hash, lines, task_id, task_type, logged_at, closed, mac, from_hash
FROM log_heads WHERE execution_id = ANY ($1::uuid[]) ORDER BY execution_id, seq;

-- As walk_lines, for some executions, each up to its own last line.
-- name: chain_lines
WITH lines AS MATERIALIZED (
    SELECT execution_id, seq, log_level, message, context, logged_at, chain_hash, removed_hash, id
    FROM (SELECT *, sum(bytes) OVER (ORDER BY execution_id, seq) - bytes AS before
        FROM (SELECT g.*, octet_length(g.message) + coalesce(octet_length(g.context), 0) AS bytes
            FROM unnest($5::uuid[], $6::bigint[]) AS v (id_of, to_seq)
            CROSS JOIN LATERAL (SELECT * FROM execution_logs x WHERE x.execution_id = v.id_of
                AND (x.execution_id, x.seq) > (coalesce($1, '00000000-0000-0000-0000-000000000000'),
                    $2) AND x.seq <= v.to_seq ORDER BY x.seq LIMIT $3) g
            ORDER BY g.execution_id, g.seq LIMIT $3) c) sized
    WHERE before < $4),
owners AS MATERIALIZED (
    SELECT x.execution_id, t.* FROM (SELECT DISTINCT execution_id FROM lines) x
    CROSS JOIN LATERAL (SELECT s.id AS task_id, e.attempt_number, e.worker_id, p.correlation_id,
            coalesce(p.correlation_id, '') = coalesce(e.correlation_id, '') AS agree
        FROM execution_rows e
        JOIN task_states s ON s.task = e.task LEFT JOIN task_specs p ON p.task = e.task
        WHERE e.execution = perdura_key(x.execution_id) AND e.id = x.execution_id
            AND (SELECT count(*) FROM execution_rows o WHERE o.execution = e.execution) = 1 OFFSET 0) t)
SELECT l.execution_id, l.seq, l.log_level, l.message, l.context, l.logged_at, l.chain_hash,
    o.task_id, l.removed_hash, l.id, o.attempt_number, o.worker_id, o.correlation_id,
    o.agree
FROM lines l LEFT JOIN owners o USING (execution_id) ORDER BY l.execution_id, l.seq;
