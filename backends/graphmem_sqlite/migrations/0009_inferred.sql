-- facts that were inferred from others: their kind, which the check of `kind` doesn't know
ALTER TABLE edges ADD COLUMN inferred INTEGER CHECK (inferred IN (1));
