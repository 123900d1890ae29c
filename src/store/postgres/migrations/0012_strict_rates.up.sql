-- When tokens of strict rates were taken: microseconds and a count, oldest first.
ALTER TABLE rate_limits ADD COLUMN starts text NOT NULL DEFAULT '';
