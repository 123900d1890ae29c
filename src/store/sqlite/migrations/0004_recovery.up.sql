-- The recovery queue is worked off by priority, and shown per task and newest first.

CREATE INDEX recovery_queue_pending ON recovery_queue (recovery_priority DESC, scheduled_for, id)
    WHERE status = 'pending';
