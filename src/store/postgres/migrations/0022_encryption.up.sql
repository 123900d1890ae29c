-- Encryption: whether a task is encrypted, and the data keys, each wrapped by a key-encryption key that is not here.

ALTER TABLE task_specs ADD COLUMN encrypt boolean, ADD COLUMN encrypt_fields text;

CREATE TABLE data_keys (
    id uuid PRIMARY KEY,
    namespace text NOT NULL DEFAULT 'default',
    day text NOT NULL,                -- '' of the key of a user
    user_id text NOT NULL DEFAULT '', -- '' = not of one user
    kek text NOT NULL,                -- which key wrapped it
    wrapped text NOT NULL,
    created_at timestamptz NOT NULL,
    destroyed_at timestamptz
);
CREATE INDEX data_keys_place ON data_keys (namespace, day, user_id);
CREATE INDEX data_keys_user ON data_keys (user_id) WHERE user_id <> '';
