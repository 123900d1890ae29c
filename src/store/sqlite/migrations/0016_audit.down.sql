-- Data lost: the audit trail, which verify then misses

DROP TABLE audit_log;
