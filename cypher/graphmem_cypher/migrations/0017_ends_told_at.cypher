// The name of the times at which the ends of a fact were stated (see 0013 and 0015).

CALL db.createProperty('ends_told_at');
