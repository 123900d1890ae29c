-- Data lost: the audit trail

DROP TABLE audit_log;
