-- What lists are narrowed by and sorted by, so that the number of all that match is counted
-- without reading a job. A job's status is not here: it changes often, and with it every index.

DROP INDEX jobs_by_age;
CREATE INDEX jobs_by_age ON jobs (workspace, created_at, id, source, deleted_at);
CREATE INDEX jobs_by_age_everywhere ON jobs (created_at, id, source, deleted_at);
CREATE INDEX jobs_by_agent ON jobs (workspace, agent_ref, created_at, id, source, deleted_at);
CREATE INDEX jobs_by_agent_everywhere ON jobs (agent_ref, created_at, id, source, deleted_at);
