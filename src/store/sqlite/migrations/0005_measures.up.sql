-- How executions ended, per hour and category. Each run of a node has rows of its own and writes their
-- whole figures again and again; the sum over runs is what happened.

CREATE TABLE execution_hours (
    hour INTEGER NOT NULL,
    category_id TEXT NOT NULL, -- empty: none
    run TEXT NOT NULL,
    namespace TEXT NOT NULL DEFAULT 'default',
    successful INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, category_id, run)
) WITHOUT ROWID;
