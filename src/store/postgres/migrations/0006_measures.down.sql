DROP TABLE execution_hours;
