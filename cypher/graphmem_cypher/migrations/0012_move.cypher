// The mark of the migration that the database takes part in: at most one node.

CREATE CONSTRAINT graphmem_move IF NOT EXISTS
FOR (n:Graphmem) REQUIRE n.move IS UNIQUE;
