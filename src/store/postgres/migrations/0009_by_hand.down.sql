ALTER FUNCTION validate_task_recovery RESET search_path;
ALTER FUNCTION discover_recoverable_tasks RESET search_path;
DROP TRIGGER tasks_update ON tasks;
DROP FUNCTION perdura_task_by_hand;
DROP FUNCTION perdura_place;
