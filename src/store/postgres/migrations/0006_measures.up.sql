-- How executions ended, per hour and category. Each run of a node has rows of its own and writes their
-- whole figures again and again, so that no two nodes meet in a row; the sum over runs is what
-- happened.

CREATE TABLE execution_hours (
    hour timestamptz NOT NULL,
    category_id text NOT NULL, -- empty: none
    run text NOT NULL,
    namespace text NOT NULL DEFAULT 'default',
    successful bigint NOT NULL,
    failed bigint NOT NULL,
    duration_ms bigint NOT NULL,
    PRIMARY KEY (hour, category_id, run)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
