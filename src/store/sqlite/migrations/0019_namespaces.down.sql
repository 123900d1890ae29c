-- Data lost: the settings of namespaces; tasks outside default stay, unseen
DROP INDEX schedules_namespace;
DROP TABLE namespaces;
