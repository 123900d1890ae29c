DROP INDEX recovery_queue_pending;
