DROP TRIGGER tasks_json;
