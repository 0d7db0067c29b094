-- One text for SQLite and PostgreSQL: times are microseconds since 1970, documents are JSON,
-- flags are 0 and 1.

CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE agents (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    workspace TEXT NOT NULL,
    project TEXT,
    description TEXT NOT NULL,
    config TEXT NOT NULL,
    config_format TEXT NOT NULL,
    context_schema TEXT,
    default_input TEXT,
    post_run_actions TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (workspace, name)
);

CREATE TABLE filesets (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    workspace TEXT NOT NULL,
    description TEXT NOT NULL,
    purpose TEXT NOT NULL,
    project TEXT NOT NULL,
    metadata TEXT NOT NULL,
    custom_fields TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- Raised by every change of a file; pinned is the listing that was frozen at pinned_version.
    version BIGINT NOT NULL,
    pinned_version BIGINT,
    pinned TEXT,
    UNIQUE (workspace, name)
);

-- The key is the path in hexadecimal. It sorts by bytes and finds what lies below a directory by
-- its index, whatever the collation of the database.
CREATE TABLE files (
    fileset TEXT NOT NULL REFERENCES filesets (id) ON DELETE CASCADE,
    path_key TEXT NOT NULL,
    path TEXT NOT NULL,
    mode BIGINT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (fileset, path_key)
);

CREATE INDEX files_by_blob ON files (sha256);

CREATE TABLE secrets (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    workspace TEXT NOT NULL,
    description TEXT,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (workspace, name)
);

CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    attempt_id TEXT NOT NULL,
    name TEXT NOT NULL,
    workspace TEXT NOT NULL,
    project TEXT,
    description TEXT,
    source TEXT NOT NULL,
    agent_ref TEXT,
    refused TEXT,
    ownership TEXT,
    custom_fields TEXT,
    output_location TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- What the facts say. The status is derived from it, and kept for lists.
    phase TEXT NOT NULL,
    outcome TEXT,
    run TEXT,
    phase_times TEXT NOT NULL,
    status TEXT NOT NULL,
    ended_at BIGINT,
    -- What the running agent's worker says.
    running TEXT,
    -- What callers say.
    cancel_requested BIGINT NOT NULL,
    patched_details TEXT,
    -- Whether a fact of it was ever seen, whether its messages are gone, when it was deleted.
    seen BIGINT NOT NULL,
    purged BIGINT NOT NULL,
    deleted_at BIGINT
);

CREATE UNIQUE INDEX jobs_by_name ON jobs (workspace, name) WHERE deleted_at IS NULL;
CREATE INDEX jobs_by_age ON jobs (workspace, created_at, id);
CREATE INDEX jobs_unseen ON jobs (created_at) WHERE seen = 0;
CREATE INDEX jobs_cancelling ON jobs (created_at) WHERE cancel_requested = 1 AND ended_at IS NULL;
CREATE INDEX jobs_unpurged ON jobs (ended_at) WHERE purged = 0 AND ended_at IS NOT NULL;
CREATE INDEX jobs_deleted ON jobs (deleted_at) WHERE deleted_at IS NOT NULL;

-- What never changes about a job and is large, apart from what changes often.
CREATE TABLE job_inputs (
    job TEXT NOT NULL PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    snapshot TEXT,
    request TEXT NOT NULL
);

CREATE TABLE results (
    job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    -- The rank of the phase whose fact lists it: of two facts the earlier one counts.
    phase_rank BIGINT NOT NULL,
    saved TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (job, name)
);

-- The ids that must never come back.
CREATE TABLE tombstones (
    job TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    deleted_at BIGINT NOT NULL
);
