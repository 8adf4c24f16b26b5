// What the database is called.
CALL db.info() YIELD name
RETURN name AS row
