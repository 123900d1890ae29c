-- Namespaces: what shares nothing with each other. Retention: absent = the windows of the settings,
-- 0 = kept for ever. deleting_at: everything in it is being removed, so many rows are gone.
CREATE TABLE namespaces (
    name TEXT PRIMARY KEY,
    description TEXT,
    waiting_limit INTEGER,
    enqueue_rate_count INTEGER,
    enqueue_rate_per_ms INTEGER,
    enqueue_rate_burst INTEGER,
    payload_bytes_limit INTEGER,
    schedules_limit INTEGER,
    completed_ms INTEGER,
    failed_ms INTEGER,
    encrypt_all INTEGER NOT NULL DEFAULT 0,
    deleting_at INTEGER,
    removed INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO namespaces (name, created_at, updated_at)
SELECT name, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),
    CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
FROM (SELECT 'default' AS name UNION SELECT namespace FROM lanes UNION SELECT namespace FROM jobs
    UNION SELECT namespace FROM queues);
CREATE INDEX schedules_namespace ON schedules (namespace);
