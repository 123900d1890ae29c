-- Tokens with a limit of tasks that have not ended, and how many there are of each. Only tokens with a
-- limit have rows.
ALTER TABLE api_tokens ADD COLUMN max_tasks INTEGER;

CREATE TABLE token_counts ( -- kept in the same transaction as what they count; verify compares
    token TEXT PRIMARY KEY,
    tasks INTEGER NOT NULL
) WITHOUT ROWID;

-- The count follows hand-written SQL, too.
CREATE TRIGGER tasks_token_counts INSTEAD OF UPDATE ON tasks
WHEN (new.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled'))
    <> (old.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled'))
BEGIN
    UPDATE token_counts SET tasks = tasks
        + CASE WHEN new.status IN ('partial', 'completed', 'failed', 'dead_letter', 'cancelled')
            THEN -1 ELSE 1 END
    WHERE token = substr(old.created_by_principal, 7) AND old.created_by_principal LIKE 'token:%';
END;
