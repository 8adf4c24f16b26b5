// Wait until an index is online.
CALL db.awaitIndex($q.name, $q.seconds)
