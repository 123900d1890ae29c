-- Lines that have lost what they said: the hash of it stays, so that the chain does.
ALTER TABLE execution_logs ADD COLUMN removed_hash TEXT;
