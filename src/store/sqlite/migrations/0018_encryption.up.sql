-- Encryption: whether a task is encrypted, and the data keys, each wrapped by a key-encryption key that is not here.

ALTER TABLE task_specs ADD COLUMN encrypt INTEGER;
ALTER TABLE task_options ADD COLUMN encrypt_fields TEXT;

CREATE TABLE data_keys (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    namespace TEXT NOT NULL DEFAULT 'default',
    day TEXT NOT NULL,               -- '' of the key of a user
    user_id TEXT NOT NULL DEFAULT '', -- '' = not of one user
    kek TEXT NOT NULL,               -- which key wrapped it
    wrapped TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    destroyed_at INTEGER
);
CREATE INDEX data_keys_place ON data_keys (namespace, day, user_id);
CREATE INDEX data_keys_user ON data_keys (user_id) WHERE user_id <> '';
