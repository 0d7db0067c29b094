-- Those whose end is still to come, by workspace and status: how long the queue is, and who is
-- before whom.
CREATE INDEX jobs_queue ON jobs (workspace, status, created_at)
    WHERE ended_at IS NULL AND deleted_at IS NULL;
