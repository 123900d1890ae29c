-- Data lost: descriptions, limits, retention and encryption of namespaces; tasks of namespaces other than
-- default stay, but no program before this one shows them
DROP INDEX schedules_namespace;
DROP TABLE namespaces;
