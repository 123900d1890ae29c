-- Logs nobody can change unseen: lines have carried a place for their hash from the first day and get it
-- from now on; where the chains stand goes into signed records. Runs that log nothing pay nothing.

CREATE TABLE log_heads ( -- chains that went on and are in no record yet
    execution_id uuid NOT NULL,
    seq bigint NOT NULL,
    chain_hash text NOT NULL,
    lines bigint NOT NULL,
    namespace text NOT NULL DEFAULT 'default',
    PRIMARY KEY (execution_id, seq)
) WITH (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE log_anchors (
    serial bigint PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    record text NOT NULL,
    record_hash text NOT NULL,
    signature text NOT NULL, -- empty: not signed
    created_at timestamptz NOT NULL
);

-- Lines of executions that began before may lack hashes.
INSERT INTO store_info (name, value) VALUES ('log_chain_since',
    ((extract(epoch FROM now()) * 1000000)::bigint)::text) ON CONFLICT (name) DO NOTHING;
