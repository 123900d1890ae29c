DROP TRIGGER tasks_bounds ON tasks;
DROP FUNCTION perdura_bounds_by_hand;
