-- What people and tokens changed outside the normal life of tasks, as one chain of entries.

CREATE TABLE audit_log (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    at INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    principal TEXT NOT NULL,
    token_id TEXT,
    address TEXT,
    request_id TEXT,
    action TEXT NOT NULL,
    object_kind TEXT NOT NULL,
    object_id TEXT NOT NULL,
    change TEXT,
    outcome TEXT NOT NULL,
    chain_hash TEXT NOT NULL,
    mac TEXT NOT NULL
);
CREATE UNIQUE INDEX audit_log_id ON audit_log (id); -- the order of lists
