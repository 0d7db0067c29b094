-- The key that a caller gave to a submission and a digest of what was asked for, so that one that
-- is repeated makes no second job; and the job that a job runs once more.

ALTER TABLE jobs ADD COLUMN submission_key TEXT;
ALTER TABLE jobs ADD COLUMN submission_digest TEXT;
ALTER TABLE jobs ADD COLUMN rerun_of TEXT;
CREATE UNIQUE INDEX jobs_by_key ON jobs (workspace, submission_key)
    WHERE submission_key IS NOT NULL AND deleted_at IS NULL;

-- Those whose end is still to come, for whoever looks after them in turn.
CREATE INDEX jobs_unfinished ON jobs (created_at, id) WHERE ended_at IS NULL AND deleted_at IS NULL;
