-- the stated beginnings of a fact as a JSON list of [id of an episode, time, time of telling], NULL for none
ALTER TABLE edges ADD COLUMN beginnings TEXT;
