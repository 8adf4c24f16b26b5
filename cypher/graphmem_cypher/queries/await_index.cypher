// Wait until an index is online.
CALL db.awaitIndex($name, $seconds)
