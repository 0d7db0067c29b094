-- What lists are narrowed by and sorted by. The last columns are there so that a page is found,
-- and all that match are counted, without reading a job, whichever index the database takes.

DROP INDEX jobs_by_age;
CREATE INDEX jobs_by_age ON jobs (workspace, created_at, id, source, agent_ref, deleted_at);
CREATE INDEX jobs_by_age_everywhere ON jobs (created_at, id, source, agent_ref, deleted_at);
CREATE INDEX jobs_by_agent ON jobs (workspace, agent_ref, created_at, id, source, deleted_at);
CREATE INDEX jobs_by_agent_everywhere ON jobs (agent_ref, created_at, id, source, deleted_at);
CREATE INDEX jobs_by_status ON jobs (workspace, status, created_at, id, source, deleted_at);
