// How far upkeep has come: a node of ours for each job of a scope.

CREATE CONSTRAINT graphmem_upkeep IF NOT EXISTS
FOR (n:Graphmem) REQUIRE (n.scope, n.upkeep_job) IS UNIQUE;
