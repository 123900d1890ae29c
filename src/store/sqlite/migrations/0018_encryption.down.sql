-- Data lost: the data keys; what they encrypted can never be read again

DROP TABLE data_keys;
ALTER TABLE task_options DROP COLUMN encrypt_fields;
ALTER TABLE task_specs DROP COLUMN encrypt;
