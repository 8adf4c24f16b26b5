-- `complete` lies behind the vectors of an entry: reading it for each row that a search checks takes three times as long.
CREATE INDEX index_entries_incomplete ON index_entries (scope, kind, key) WHERE NOT complete;
