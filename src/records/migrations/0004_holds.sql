-- Whether somebody keeps the job from being started: 'never', 'held' or 'released'.

ALTER TABLE jobs ADD COLUMN hold TEXT NOT NULL DEFAULT 'never';
