-- entities are compared by their vectors while episodes are read: their entries are few among those of episodes
CREATE INDEX index_entries_by_kind ON index_entries (scope, kind, position);
