// The names of the stated beginnings of a fact: ids of episodes, the time of each, and when it was stated (see 0013).

UNWIND ['begun_by', 'begin_times', 'begins_told_at'] AS name
CALL db.createProperty(name);
