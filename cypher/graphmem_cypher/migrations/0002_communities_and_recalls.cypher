// Communities and recall traces are nodes of ours, bound by the constraint on ids; these serve their pages.

CREATE INDEX graphmem_communities IF NOT EXISTS FOR (n:Community) ON (n.scope, n.id);
CREATE INDEX graphmem_community_levels IF NOT EXISTS FOR (n:Community) ON (n.scope, n.level, n.id);
CREATE INDEX graphmem_recalls IF NOT EXISTS FOR (n:Recall) ON (n.scope, n.id);
CREATE INDEX graphmem_activated_facts IF NOT EXISTS FOR ()-[r:ACTIVATED]-() ON (r.fact_id);
