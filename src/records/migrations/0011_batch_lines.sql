-- The lines of batches that came, each once: those that became jobs, that were refused, and runs of
-- blank ones, of which a row has the first and the last. They are noted and not counted from the
-- jobs: lines may come in any order, blank ones make no job, and jobs may be deleted.

CREATE TABLE batch_lines (
    batch TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    line BIGINT NOT NULL,
    through BIGINT NOT NULL,
    PRIMARY KEY (batch, line)
);

INSERT INTO batch_lines (batch, line, through)
SELECT DISTINCT batches.id, jobs.batch_line, jobs.batch_line FROM batches
JOIN jobs ON jobs.workspace = batches.workspace AND jobs.batch = batches.name;

INSERT INTO batch_lines (batch, line, through)
SELECT batch, line, line FROM batch_refusals WHERE true ON CONFLICT DO NOTHING;

-- A batch was complete once its last line was there; as many as are missing in one count as blank.
-- No line has such a number.
INSERT INTO batch_lines (batch, line, through)
SELECT batches.id, COUNT(*) - batches.expected, -1 FROM batches
JOIN batch_lines ON batch_lines.batch = batches.id
GROUP BY batches.id, batches.expected
HAVING MAX(batch_lines.line) >= batches.expected AND COUNT(*) < batches.expected;
