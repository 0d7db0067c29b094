-- Telling somebody of a job's end: when the next try is due, if any is to come, and what came of
-- those before.

ALTER TABLE jobs ADD COLUMN notify_at BIGINT;
ALTER TABLE jobs ADD COLUMN notification TEXT;
CREATE INDEX jobs_to_tell ON jobs (notify_at, id)
    WHERE notify_at IS NOT NULL AND ended_at IS NOT NULL AND deleted_at IS NULL;
