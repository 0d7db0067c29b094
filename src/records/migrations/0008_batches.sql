-- Batches: jobs that are submitted together, a line each. What has come in is counted from the
-- jobs and from the lines that were refused; a job that runs a line once more has its line, too,
-- and of several the newest counts.

CREATE TABLE batches (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    workspace TEXT NOT NULL,
    submission_key TEXT NOT NULL,
    -- How many lines there are to be, once that is known.
    expected BIGINT,
    -- After so long without another line one that is not whole is given up.
    seal_after_seconds BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (workspace, name)
);

CREATE TABLE batch_refusals (
    batch TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    line BIGINT NOT NULL,
    http_status BIGINT NOT NULL,
    detail TEXT NOT NULL,
    refused_at BIGINT NOT NULL,
    PRIMARY KEY (batch, line)
);

ALTER TABLE jobs ADD COLUMN batch TEXT;
ALTER TABLE jobs ADD COLUMN batch_line BIGINT;
CREATE INDEX jobs_by_batch ON jobs (workspace, batch, batch_line, id, status, deleted_at)
    WHERE batch IS NOT NULL;

-- What was made of a job.
CREATE INDEX jobs_by_origin ON jobs (rerun_of, id) WHERE rerun_of IS NOT NULL;
