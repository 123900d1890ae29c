DROP FUNCTION validate_task_recovery;
DROP FUNCTION perdura_handler_gone;
DROP FUNCTION perdura_checkpoint_intact;
DROP FUNCTION perdura_hash_field;
DROP FUNCTION discover_recoverable_tasks;
DROP INDEX recovery_queue_pending;
