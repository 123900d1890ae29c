-- Statements of the source documents, as written there; test_sql_catalog.py runs them.

-- 000
CREATE TABLE tasks (
    id UUID PRIMARY KEY,
    type TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('PENDING','IN_PROGRESS','COMPLETED','FAILED','CANCELLED')),
    state TEXT NOT NULL,
    progress SMALLINT NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 100),
    priority SMALLINT NOT NULL DEFAULT 1,
    metadata JSONB NOT NULL DEFAULT '{}',
    error TEXT,
    input_hash CHAR(64),
    retry_count INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    version INTEGER NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX uniq_task_type_input_hash
    ON tasks(type, input_hash)
    WHERE input_hash IS NOT NULL;

CREATE INDEX idx_tasks_status_updated_at
    ON tasks(status, updated_at DESC);

CREATE TABLE task_events (
    id UUID PRIMARY KEY,
    task_id UUID NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
    status TEXT NOT NULL,
    state TEXT,
    detail JSONB,
    actor TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
);

CREATE INDEX idx_task_events_task_created
    ON task_events(task_id, created_at DESC);

CREATE INDEX idx_task_events_status_created
    ON task_events(status, created_at DESC);

CREATE TABLE task_results (
    task_id UUID PRIMARY KEY REFERENCES tasks(id) ON DELETE CASCADE,
    payload JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
);

CREATE TABLE schema_migrations (
    id VARCHAR(128) PRIMARY KEY,
    description TEXT NOT NULL,
    executed_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
);

-- 003, section 8.1
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE EXTENSION IF NOT EXISTS "pgcrypto";

-- Types énumérés
CREATE TYPE priority_level AS ENUM ('low', 'medium', 'high', 'critical');
CREATE TYPE schedule_type AS ENUM ('cron', 'interval', 'once', 'immediate');
CREATE TYPE execution_status AS ENUM ('pending', 'running', 'completed', 'failed', 'cancelled', 'timeout');
CREATE TYPE log_level AS ENUM ('DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL');
CREATE TYPE dependency_type AS ENUM ('success', 'completion', 'failure');

-- Table des catégories de tâches
CREATE TABLE job_categories (
    id UUID PRIMARY KEY DEFAULT uuid_generate_v4(),
    name VARCHAR(100) NOT NULL UNIQUE,
    description TEXT,
    default_priority priority_level NOT NULL DEFAULT 'medium',
    default_timeout INTEGER NOT NULL DEFAULT 300,
    default_max_retries INTEGER NOT NULL DEFAULT 3,
    configuration JSONB NOT NULL DEFAULT '{}',
    is_active BOOLEAN NOT NULL DEFAULT TRUE,
    created_at TIMESTAMP NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMP NOT NULL DEFAULT NOW()
);

-- Table principale des tâches
CREATE TABLE jobs (
    id UUID PRIMARY KEY DEFAULT uuid_generate_v4(),
    name VARCHAR(200) NOT NULL,
    description TEXT,
    category_id UUID NOT NULL REFERENCES job_categories(id),
    target_service VARCHAR(100) NOT NULL,
    target_method VARCHAR(100) NOT NULL,
    payload JSONB NOT NULL DEFAULT '{}',
    priority priority_level NOT NULL DEFAULT 'medium',
    max_retries INTEGER NOT NULL DEFAULT 3,
    timeout_seconds INTEGER NOT NULL DEFAULT 300,
    is_active BOOLEAN NOT NULL DEFAULT TRUE,
    created_by UUID,
    created_at TIMESTAMP NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMP NOT NULL DEFAULT NOW(),
    deleted_at TIMESTAMP
);

-- Table des planifications
CREATE TABLE schedules (
    id UUID PRIMARY KEY DEFAULT uuid_generate_v4(),
    job_id UUID NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
    schedule_type schedule_type NOT NULL,
    cron_expression VARCHAR(100),
    interval_seconds INTEGER,
    scheduled_at TIMESTAMP,
    timezone VARCHAR(50) NOT NULL DEFAULT 'UTC',
    starts_at TIMESTAMP,
    ends_at TIMESTAMP,
    is_active BOOLEAN NOT NULL DEFAULT TRUE,
    created_at TIMESTAMP NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMP NOT NULL DEFAULT NOW(),
    
    CONSTRAINT chk_schedule_config CHECK (
        (schedule_type = 'cron' AND cron_expression IS NOT NULL) OR
        (schedule_type = 'interval' AND interval_seconds IS NOT NULL) OR
        (schedule_type = 'once' AND scheduled_at IS NOT NULL) OR
        (schedule_type = 'immediate')
    )
);

-- Table des exécutions (partitionnée)
CREATE TABLE executions (
    id UUID NOT NULL,
    job_id UUID NOT NULL,
    schedule_id UUID,
    status execution_status NOT NULL,
    started_at TIMESTAMP NOT NULL DEFAULT NOW(),
    completed_at TIMESTAMP,
    failed_at TIMESTAMP,
    attempt_number INTEGER NOT NULL DEFAULT 1 CHECK (attempt_number > 0),
    result_data JSONB,
    error_data JSONB,
    duration_ms INTEGER,
    worker_id VARCHAR(100),
    correlation_id VARCHAR(100),
    created_at TIMESTAMP NOT NULL DEFAULT NOW(),
    PRIMARY KEY (started_at, id)
) PARTITION BY RANGE (started_at);

-- Partitions initiales pour les exécutions
CREATE TABLE executions_2025_01 PARTITION OF executions
    FOR VALUES FROM ('2025-01-01') TO ('2025-02-01');
CREATE TABLE executions_2025_02 PARTITION OF executions
    FOR VALUES FROM ('2025-02-01') TO ('2025-03-01');

-- Table des logs d'exécution
CREATE TABLE execution_logs (
    id UUID PRIMARY KEY DEFAULT uuid_generate_v4(),
    execution_id UUID NOT NULL,
    log_level log_level NOT NULL,
    message TEXT NOT NULL,
    context JSONB NOT NULL DEFAULT '{}',
    logged_at TIMESTAMP NOT NULL DEFAULT NOW()
);

-- Table des tâches récurrentes
CREATE TABLE recurring_jobs (
    id UUID PRIMARY KEY DEFAULT uuid_generate_v4(),
    name VARCHAR(200) NOT NULL,
    pattern_type VARCHAR(50) NOT NULL,
    pattern_config JSONB NOT NULL,
    template_job_id UUID NOT NULL REFERENCES jobs(id),
    last_generated TIMESTAMP,
    next_generation TIMESTAMP,
    is_active BOOLEAN NOT NULL DEFAULT TRUE,
    created_at TIMESTAMP NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMP NOT NULL DEFAULT NOW()
);

-- Table des dépendances entre tâches
CREATE TABLE job_dependencies (
    id UUID PRIMARY KEY DEFAULT uuid_generate_v4(),
    job_id UUID NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
    depends_on_job_id UUID NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
    dependency_type dependency_type NOT NULL,
    dependency_config JSONB NOT NULL DEFAULT '{}',
    created_at TIMESTAMP NOT NULL DEFAULT NOW(),
    
    UNIQUE(job_id, depends_on_job_id, dependency_type)
);

-- Index essentiels
CREATE INDEX idx_jobs_category_id ON jobs(category_id);
CREATE INDEX idx_jobs_target_service ON jobs(target_service);
CREATE INDEX idx_jobs_is_active ON jobs(is_active);
CREATE INDEX idx_jobs_created_by ON jobs(created_by);
CREATE INDEX idx_schedules_job_id ON schedules(job_id);
CREATE INDEX idx_schedules_schedule_type ON schedules(schedule_type);
CREATE INDEX idx_schedules_scheduled_at ON schedules(scheduled_at);
CREATE INDEX idx_schedules_is_active ON schedules(is_active);
CREATE INDEX idx_execution_logs_execution_id ON execution_logs(execution_id);
CREATE INDEX idx_execution_logs_log_level ON execution_logs(log_level);
CREATE INDEX idx_execution_logs_logged_at ON execution_logs(logged_at);
CREATE INDEX idx_recurring_jobs_next_generation ON recurring_jobs(next_generation);
CREATE INDEX idx_job_dependencies_job_id ON job_dependencies(job_id);
CREATE INDEX idx_job_dependencies_depends_on ON job_dependencies(depends_on_job_id);

-- Index GIN pour recherche dans les métadonnées JSONB
CREATE INDEX idx_jobs_payload_gin ON jobs USING GIN (payload);
CREATE INDEX idx_execution_logs_context_gin ON execution_logs USING GIN (context);

-- Index composites pour performance
CREATE INDEX idx_executions_job_started ON executions(job_id, started_at);
CREATE INDEX idx_executions_status_started ON executions(status, started_at);
CREATE INDEX idx_executions_correlation_id ON executions(correlation_id);

-- Triggers pour updated_at
CREATE OR REPLACE FUNCTION update_timestamp()
RETURNS TRIGGER AS $$
BEGIN
   NEW.updated_at = NOW();
   RETURN NEW;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER update_job_categories_timestamp
BEFORE UPDATE ON job_categories
FOR EACH ROW EXECUTE PROCEDURE update_timestamp();

CREATE TRIGGER update_jobs_timestamp
BEFORE UPDATE ON jobs
FOR EACH ROW EXECUTE PROCEDURE update_timestamp();

CREATE TRIGGER update_schedules_timestamp
BEFORE UPDATE ON schedules
FOR EACH ROW EXECUTE PROCEDURE update_timestamp();

CREATE TRIGGER update_recurring_jobs_timestamp
BEFORE UPDATE ON recurring_jobs
FOR EACH ROW EXECUTE PROCEDURE update_timestamp();

-- Catégories par défaut
INSERT INTO job_categories (name, description, default_priority, default_timeout, default_max_retries, configuration) VALUES
('messaging', 'Tâches liées aux messages', 'high', 30, 3, '{"queue": "high-priority", "service": "messaging-service"}'),
('notifications', 'Tâches de notifications', 'high', 15, 5, '{"queue": "high-priority", "service": "notification-service"}'),
('maintenance', 'Tâches de maintenance système', 'medium', 600, 2, '{"queue": "medium-priority", "allowed_windows": ["02:00-06:00"]}'),
('cleanup', 'Tâches de nettoyage', 'low', 300, 2, '{"queue": "low-priority", "batch_size": 100}'),
('reports', 'Génération de rapports', 'medium', 120, 1, '{"queue": "medium-priority", "service": "user-service"}'),
('analytics', 'Tâches d\'analytics', 'low', 300, 1, '{"queue": "low-priority", "batch_processing": true}');

-- Row Level Security
ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE schedules ENABLE ROW LEVEL SECURITY;
ALTER TABLE executions ENABLE ROW LEVEL SECURITY;

-- Policies RLS (à adapter selon l'authentification)
CREATE POLICY jobs_user_policy ON jobs
    FOR ALL TO authenticated_users
    USING (created_by = current_setting('app.current_user_id')::UUID OR created_by IS NULL);

CREATE POLICY schedules_user_policy ON schedules
    FOR ALL TO authenticated_users
    USING (job_id IN (SELECT id FROM jobs WHERE created_by = current_setting('app.current_user_id')::UUID OR created_by IS NULL));

-- 004
CREATE TYPE task_status AS ENUM (
    'pending',      -- Waiting to be claimed
    'claimed',      -- Claimed by worker, not yet started
    'running',      -- Handler is executing
    'completed',    -- Finished successfully
    'failed',       -- Terminal failure (no handler, immediate fail)
    'dead_letter'   -- Exceeded max_retries
);

-- Enqueue with idempotency key
INSERT INTO tasks (type, payload, idempotency_key)
VALUES ('email:send', '{"to":"user@example.com"}', 'email-user-123')
ON CONFLICT (type, idempotency_key) 
DO UPDATE SET updated_at = NOW()
RETURNING id;

CREATE TRIGGER update_tasks_updated_at 
BEFORE UPDATE ON tasks
FOR EACH ROW EXECUTE FUNCTION update_updated_at_column();
