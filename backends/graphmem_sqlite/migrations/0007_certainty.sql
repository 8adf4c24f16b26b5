-- how sure a fact is, what kind, when it was told, and why it ended; NULL stands for the default of a column
ALTER TABLE edges ADD COLUMN certainty TEXT CHECK (certainty IN ('plan', 'hearsay', 'possible'));
ALTER TABLE edges ADD COLUMN kind TEXT CHECK (kind IN ('event'));
ALTER TABLE edges ADD COLUMN valid_from_assumed INTEGER;
ALTER TABLE edges ADD COLUMN told_at INTEGER;
ALTER TABLE edges ADD COLUMN prior_valid_to INTEGER;
ALTER TABLE edges ADD COLUMN end_reason TEXT;
