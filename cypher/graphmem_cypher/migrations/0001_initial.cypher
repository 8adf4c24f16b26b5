// Every node of ours carries the label Graphmem; constraints are on it, so that other people's data in the same
// database is not bound by them. Relationships can't carry two types: the names of their keys tell ours apart.

CREATE CONSTRAINT graphmem_id IF NOT EXISTS FOR (n:Graphmem) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT graphmem_migration IF NOT EXISTS FOR (n:Graphmem) REQUIRE n.migration IS UNIQUE;
CREATE CONSTRAINT graphmem_scope IF NOT EXISTS FOR (n:Graphmem) REQUIRE n.scope_key IS UNIQUE;
CREATE CONSTRAINT graphmem_entity_name IF NOT EXISTS
FOR (n:Graphmem) REQUIRE (n.scope, n.canonical_name, n.entity_type) IS UNIQUE;
CREATE CONSTRAINT graphmem_alias IF NOT EXISTS
FOR (n:Graphmem) REQUIRE (n.scope, n.alias, n.entity_type) IS UNIQUE;
CREATE CONSTRAINT graphmem_external_id IF NOT EXISTS
FOR (n:Graphmem) REQUIRE (n.scope, n.external_key) IS UNIQUE;

CREATE INDEX graphmem_alias_entity IF NOT EXISTS FOR (n:Graphmem) ON (n.entity_id);
CREATE INDEX graphmem_entities IF NOT EXISTS FOR (n:Entity) ON (n.scope, n.id);
CREATE INDEX graphmem_episodes IF NOT EXISTS FOR (n:Episode) ON (n.scope, n.id);
CREATE INDEX graphmem_sessions IF NOT EXISTS FOR (n:Graphmem) ON (n.scope, n.session_key, n.id);
// an episode has the property queue while it isn't processed
CREATE INDEX graphmem_queue IF NOT EXISTS FOR (n:Graphmem) ON (n.queue, n.id);
CREATE INDEX graphmem_claims IF NOT EXISTS FOR (n:Graphmem) ON (n.claimed_by);

CREATE CONSTRAINT graphmem_semantic_id IF NOT EXISTS FOR ()-[r:SEMANTIC]-() REQUIRE r.graphmem_id IS UNIQUE;
CREATE CONSTRAINT graphmem_temporal_id IF NOT EXISTS FOR ()-[r:TEMPORAL]-() REQUIRE r.graphmem_id IS UNIQUE;
CREATE CONSTRAINT graphmem_causal_id IF NOT EXISTS FOR ()-[r:CAUSAL]-() REQUIRE r.graphmem_id IS UNIQUE;
CREATE CONSTRAINT graphmem_entity_id IF NOT EXISTS FOR ()-[r:ENTITY]-() REQUIRE r.graphmem_id IS UNIQUE;
CREATE CONSTRAINT graphmem_co_occurrence_id IF NOT EXISTS FOR ()-[r:CO_OCCURRENCE]-() REQUIRE r.graphmem_id IS UNIQUE;
// what is unique among active facts; absent where a fact has ended
CREATE CONSTRAINT graphmem_semantic_active IF NOT EXISTS FOR ()-[r:SEMANTIC]-() REQUIRE r.graphmem_active IS UNIQUE;
CREATE CONSTRAINT graphmem_temporal_active IF NOT EXISTS FOR ()-[r:TEMPORAL]-() REQUIRE r.graphmem_active IS UNIQUE;
CREATE CONSTRAINT graphmem_causal_active IF NOT EXISTS FOR ()-[r:CAUSAL]-() REQUIRE r.graphmem_active IS UNIQUE;
CREATE CONSTRAINT graphmem_entity_active IF NOT EXISTS FOR ()-[r:ENTITY]-() REQUIRE r.graphmem_active IS UNIQUE;
CREATE CONSTRAINT graphmem_co_occurrence_active IF NOT EXISTS
FOR ()-[r:CO_OCCURRENCE]-() REQUIRE r.graphmem_active IS UNIQUE;
CREATE INDEX graphmem_semantic_scope IF NOT EXISTS FOR ()-[r:SEMANTIC]-() ON (r.scope, r.graphmem_id);
CREATE INDEX graphmem_temporal_scope IF NOT EXISTS FOR ()-[r:TEMPORAL]-() ON (r.scope, r.graphmem_id);
CREATE INDEX graphmem_causal_scope IF NOT EXISTS FOR ()-[r:CAUSAL]-() ON (r.scope, r.graphmem_id);
CREATE INDEX graphmem_entity_scope IF NOT EXISTS FOR ()-[r:ENTITY]-() ON (r.scope, r.graphmem_id);
CREATE INDEX graphmem_co_occurrence_scope IF NOT EXISTS FOR ()-[r:CO_OCCURRENCE]-() ON (r.scope, r.graphmem_id);

// the words come ready-made (graphmem_neo4j.rows): the analyzer only has to split at spaces
CREATE FULLTEXT INDEX graphmem_words IF NOT EXISTS
FOR (n:Graphmem) ON EACH [n.name_words, n.summary_words]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: false}};
