// The names of the stated ends of a fact: ids of episodes and facts, and the time of each (see 0013).

UNWIND ['ended_by', 'end_times'] AS name
CALL db.createProperty(name);
