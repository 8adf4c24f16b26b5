// Whether Graph Data Science is there.
SHOW FUNCTIONS YIELD name WHERE name = 'gds.version'
RETURN name AS row
