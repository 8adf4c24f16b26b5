// The name of the database.
CALL db.info() YIELD name
RETURN name AS row
