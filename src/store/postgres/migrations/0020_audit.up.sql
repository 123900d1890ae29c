-- What people and tokens changed outside the normal life of tasks, as one chain of entries.

CREATE TABLE audit_log (
    seq bigint PRIMARY KEY,
    id uuid NOT NULL,
    at timestamptz NOT NULL,
    namespace text NOT NULL,
    principal text NOT NULL,
    token_id text,
    address text,
    request_id text,
    action text NOT NULL,
    object_kind text NOT NULL,
    object_id text NOT NULL,
    change text, -- JSON, byte for byte: its hash is in the chain
    outcome text NOT NULL,
    chain_hash text NOT NULL,
    mac text NOT NULL
);
CREATE UNIQUE INDEX audit_log_id ON audit_log (id); -- the order of lists
