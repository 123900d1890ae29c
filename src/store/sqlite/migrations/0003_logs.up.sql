-- Logs nobody can change unseen: lines have carried a place for their hash from the first day and get it
-- from now on; where the chains stand goes into signed records. Runs that log nothing pay nothing.

CREATE TABLE log_heads ( -- chains that went on and are in no record yet
    execution_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    chain_hash TEXT NOT NULL,
    lines INTEGER NOT NULL,
    namespace TEXT NOT NULL DEFAULT 'default',
    PRIMARY KEY (execution_id, seq)
) WITHOUT ROWID;

CREATE TABLE log_anchors (
    serial INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    record TEXT NOT NULL,
    record_hash TEXT NOT NULL,
    signature TEXT NOT NULL, -- empty: not signed
    created_at INTEGER NOT NULL
);

-- Lines of executions that began before may lack hashes.
INSERT OR IGNORE INTO store_info (name, value) VALUES ('log_chain_since',
    CAST(CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) AS TEXT));
