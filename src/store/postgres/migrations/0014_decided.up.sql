-- A dependency whose parent ended, and then was retried: it stays decided, and the parent's next end
-- is not told. NULL: the parent has ended and was told of, or has not ended yet.
ALTER TABLE task_dependencies ADD COLUMN is_decided boolean;
