-- Tokens: the part that may be seen, and the SHA-256 of the whole. One that was revoked keeps its
-- row, so that its name in logs and jobs stays its own.

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    public_part TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    -- About when it was used last.
    used_at BIGINT,
    revoked_at BIGINT
);

CREATE INDEX tokens_by_public_part ON tokens (public_part);

-- What a token is good for; the workspace '*' stands for all of them.
CREATE TABLE token_roles (
    token TEXT NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
    workspace TEXT NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (token, workspace)
);

CREATE INDEX token_roles_by_workspace ON token_roles (workspace);
