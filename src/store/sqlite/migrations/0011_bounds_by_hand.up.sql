-- Hand-written SQL on the view tasks keeps the bounds of the API (core/bounds.h), which its own
-- writes keep already. Only what changes is looked at, so that any task can be cancelled.
CREATE TRIGGER tasks_bounds INSTEAD OF UPDATE ON tasks
BEGIN
    SELECT RAISE(ABORT, 'retry_count and crash_count of a task are whole numbers from 0 to 1000000')
        WHERE (new.retry_count IS NOT old.retry_count AND (typeof(new.retry_count) <> 'integer'
                OR new.retry_count NOT BETWEEN 0 AND 1000000))
            OR (new.crash_count IS NOT old.crash_count AND (typeof(new.crash_count) <> 'integer'
                OR new.crash_count NOT BETWEEN 0 AND 1000000));
    SELECT RAISE(ABORT, 'progress and priority of a task are whole numbers')
        WHERE (new.progress IS NOT old.progress AND typeof(new.progress) <> 'integer')
            OR (new.priority IS NOT old.priority AND typeof(new.priority) <> 'integer');
    SELECT RAISE(ABORT, 'state of a task is longer than 200 bytes')
        WHERE new.state IS NOT old.state AND length(CAST(new.state AS BLOB)) > 200;
    SELECT RAISE(ABORT, 'error and last_error of a task must not be longer than 4096 bytes')
        WHERE (new.error IS NOT old.error AND length(CAST(new.error AS BLOB)) > 4096)
            OR (new.last_error IS NOT old.last_error
                AND length(CAST(new.last_error AS BLOB)) > 4096);
    SELECT RAISE(ABORT, 'metadata, error_details and recovery_metadata of a task must not be longer than 16384 bytes')
        WHERE (new.metadata IS NOT old.metadata AND length(CAST(new.metadata AS BLOB)) > 16384)
            OR (new.error_details IS NOT old.error_details
                AND length(CAST(new.error_details AS BLOB)) > 16384)
            OR (new.recovery_metadata IS NOT old.recovery_metadata
                AND length(CAST(new.recovery_metadata AS BLOB)) > 16384);
END;
