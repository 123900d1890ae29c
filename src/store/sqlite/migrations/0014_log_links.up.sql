-- A note says which line its lines followed, and its code covers that: so records about a run whose
-- lines were exchanged for others do not fit each other.

ALTER TABLE log_heads ADD COLUMN from_hash TEXT; -- of the line before; NULL: they begin the chain
