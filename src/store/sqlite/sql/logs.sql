-- Log lines with their chains, the chains that wait for a record, and the records.

-- The newest line, and the note of it.
-- name: log_last
SELECT g.seq, g.chain_hash, g.logged_at, h.seq, h.chain_hash, h.lines, h.task_id, h.task_type,
    h.logged_at, h.closed, h.mac, h.from_hash
FROM (SELECT seq, chain_hash, logged_at FROM execution_logs WHERE execution_id = ?1
    ORDER BY seq DESC LIMIT 1) g
LEFT JOIN log_heads h ON h.execution_id = ?1 AND h.seq = g.seq;

-- name: log_executions
SELECT id FROM execution_rows WHERE task = ?1;

-- name: log_chains
SELECT DISTINCT execution_id FROM execution_logs WHERE execution_id > coalesce(?1, x'')
ORDER BY execution_id LIMIT ?2;

-- name: log_emptied
SELECT execution_id, log_level, max(seq), count(*) FROM execution_logs
WHERE removed_hash IS NOT NULL GROUP BY execution_id, log_level ORDER BY execution_id;

-- name: log_any
SELECT 1 FROM execution_logs LIMIT 1;

-- name: log_insert
INSERT INTO execution_logs (id, execution_id, seq, log_level, message, context, logged_at,
    chain_hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- If there is a note already, an attacker removed lines that this process had written: it stays as
-- the proof.
-- name: head_note
INSERT OR IGNORE INTO log_heads (execution_id, seq, chain_hash, lines, task_id, task_type, logged_at,
    closed, mac, from_hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- A note is open while `closed` is empty, text or blob: x'' differs from ''. Reads every note, because
-- only some of them may have been made with the key.
-- name: heads_first
SELECT h.seq, h.chain_hash, h.lines, h.task_id, h.task_type, h.logged_at, h.closed, h.mac,
    h.from_hash, h.execution_id, o.ended
FROM (SELECT h.execution_id AS id, CASE WHEN e.status IS NULL THEN 'removed'
        WHEN e.status NOT IN ('pending', 'running') THEN e.status END AS ended
    FROM log_heads h LEFT JOIN execution_rows e
        ON e.execution = task_key(h.execution_id) AND e.id = h.execution_id
    WHERE length(h.closed) = 0 GROUP BY h.execution_id
    HAVING sum(h.lines > 0) > 0 OR ended IS NOT NULL
    ORDER BY h.execution_id LIMIT ?1) o
CROSS JOIN log_heads h ON h.execution_id = o.id AND length(h.closed) = 0
ORDER BY o.id, h.seq;

-- name: heads_open
SELECT 1 FROM log_heads WHERE length(closed) = 0 LIMIT 1;

-- name: heads_taken
DELETE FROM log_heads WHERE execution_id = ?1 AND seq <= ?2 AND length(closed) = 0;

-- name: heads_forget
DELETE FROM log_heads WHERE execution_id = ?1 AND seq <= ?2;

-- No record could follow a serial of that size, so Perdura did not write it.
-- name: anchor_last
SELECT serial, record, record_hash, signature, created_at FROM log_anchors
WHERE serial < 4611686018427387904 ORDER BY serial DESC LIMIT 1;

-- name: anchor_insert
INSERT INTO log_anchors (serial, record, record_hash, signature, created_at)
VALUES (?1, ?2, ?3, ?4, ?5);

-- name: anchors_after
SELECT serial, record, record_hash, signature, created_at FROM log_anchors
WHERE serial > ?1 ORDER BY serial LIMIT ?2;

-- name: head_alive
SELECT 1 FROM execution_logs WHERE execution_id = ?1 LIMIT 1;

-- name: anchors_trim
DELETE FROM log_anchors WHERE serial <= ?1;

-- name: log_of_level
SELECT seq, message, context FROM execution_logs
WHERE execution_id = ?1 AND seq BETWEEN ?2 AND ?3 AND log_level = ?4 AND removed_hash IS NULL
ORDER BY seq LIMIT 1;

-- name: log_empty
UPDATE execution_logs SET message = '', context = NULL, removed_hash = ?3
WHERE execution_id = ?1 AND seq = ?2;

-- The type behind its namespace, as core/queue_name.h has it.
-- name: log_run
SELECT CASE WHEN l.namespace <> 'default' THEN l.namespace || char(30) ELSE '' END || l.type,
    e.status = 'pending' OR e.status = 'running', s.id
FROM execution_rows e JOIN task_states s ON s.task = e.task JOIN lanes l ON l.lane = s.lane
WHERE e.execution = ?1 AND e.id = ?2;

-- name: log_cut
DELETE FROM execution_logs WHERE execution_id = ?1 AND seq <= ?2
RETURNING execution_id, seq, chain_hash, logged_at;

-- name: walk_heads
SELECT seq, chain_hash, lines, task_id, task_type, logged_at, closed, mac, from_hash, execution_id
FROM log_heads ORDER BY execution_id, seq;

-- The correlation id as readers find it.
-- name: walk_owner
SELECT s.id, e.attempt_number, e.worker_id, o.correlation_id,
    coalesce(o.correlation_id, '') = coalesce(e.correlation_id, '')
FROM execution_rows e JOIN task_states s ON s.task = e.task
LEFT JOIN task_specs p ON p.task = e.task LEFT JOIN task_options o ON o.task = p.options
WHERE e.execution = task_key(?1) AND e.id = ?1;

-- name: walk_lines
SELECT execution_id, seq, log_level, message, context, logged_at, chain_hash, removed_hash, id
FROM execution_logs ORDER BY execution_id, seq;

-- name: chain_notes
SELECT seq, chain_hash, lines, task_id, task_type, logged_at, closed, mac, from_hash
FROM log_heads WHERE execution_id = ?1 ORDER BY seq;

-- name: chain_lines
SELECT execution_id, seq, log_level, message, context, logged_at, chain_hash, removed_hash, id
FROM execution_logs WHERE execution_id = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3;
