-- Environments and the specs that they may refer to. `body` is what was given, without the name:
-- which fields were given decides what overrides an agent's configuration.

CREATE TABLE environments (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    workspace TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (workspace, name)
);

CREATE TABLE environment_specs (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    workspace TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (workspace, name)
);

CREATE TABLE compute_specs (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    workspace TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (workspace, name)
);
