-- When the agent must have been started at the latest; NULL: it may wait.

ALTER TABLE jobs ADD COLUMN start_by BIGINT;
CREATE INDEX jobs_to_start ON jobs (start_by) WHERE start_by IS NOT NULL AND ended_at IS NULL;
