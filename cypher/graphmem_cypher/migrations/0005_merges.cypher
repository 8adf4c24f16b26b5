// The merge ledger: a node for each merge. A merge outlives its entities, so it names them by id.

CREATE INDEX graphmem_merges IF NOT EXISTS FOR (n:Merge) ON (n.scope, n.id);
CREATE INDEX graphmem_merges_kept IF NOT EXISTS FOR (n:Merge) ON (n.kept_id);
CREATE INDEX graphmem_merges_merged IF NOT EXISTS FOR (n:Merge) ON (n.merged_id);
