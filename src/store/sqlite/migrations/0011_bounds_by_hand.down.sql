DROP TRIGGER tasks_bounds;
