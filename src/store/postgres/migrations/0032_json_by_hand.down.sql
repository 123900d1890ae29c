DROP TRIGGER tasks_json ON tasks;
DROP FUNCTION perdura_json_by_hand;
