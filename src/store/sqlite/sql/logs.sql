-- Log lines with their chains, the chains that wait for a record, and the records.

-- name: log_last
SELECT seq, chain_hash FROM execution_logs WHERE execution_id = ?1 ORDER BY seq DESC LIMIT 1;

-- name: log_insert
INSERT INTO execution_logs (id, execution_id, seq, log_level, message, context, logged_at,
    chain_hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- Where there is one already, somebody removed lines behind our back: it stays as the proof.
-- name: head_note
INSERT OR IGNORE INTO log_heads (execution_id, seq, chain_hash, lines) VALUES (?1, ?2, ?3, ?4);

-- name: heads_first
SELECT execution_id, max(seq), chain_hash, sum(lines) FROM log_heads GROUP BY execution_id
ORDER BY execution_id LIMIT ?1;

-- name: heads_forget
DELETE FROM log_heads WHERE execution_id = ?1 AND seq <= ?2;

-- name: anchor_last
SELECT serial, record, record_hash, signature, created_at FROM log_anchors
ORDER BY serial DESC LIMIT 1;

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

-- name: log_run
SELECT l.type, e.status = 'pending' OR e.status = 'running',
    (SELECT max(g.seq) FROM execution_logs g WHERE g.execution_id = ?2)
FROM execution_rows e JOIN task_states s ON s.task = e.task JOIN lanes l ON l.lane = s.lane
WHERE e.execution = ?1 AND e.id = ?2;

-- name: log_cut
DELETE FROM execution_logs WHERE execution_id = ?1 AND seq <= ?2
RETURNING execution_id, seq, chain_hash;

-- name: walk_heads
SELECT execution_id, seq, chain_hash FROM log_heads ORDER BY execution_id, seq;

-- name: walk_owner
SELECT s.id FROM execution_rows e JOIN task_states s ON s.task = e.task
WHERE e.execution = task_key(?1) AND e.id = ?1;

-- name: walk_lines
SELECT execution_id, seq, log_level, message, context, logged_at, chain_hash, removed_hash
FROM execution_logs ORDER BY execution_id, seq;
