// Which facts an episode states: no other index finds a relationship by an element of a list. The analyzer leaves each
// element whole.

CREATE FULLTEXT INDEX graphmem_sources IF NOT EXISTS
FOR ()-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-() ON EACH [r.episode_ids]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'keyword', `fulltext.eventually_consistent`: false}};
