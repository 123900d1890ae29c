DROP TABLE log_anchors;
DROP TABLE log_heads;
DELETE FROM store_info WHERE name IN ('log_chain_since', 'log_public_key');
UPDATE execution_logs SET chain_hash = NULL WHERE chain_hash IS NOT NULL;
