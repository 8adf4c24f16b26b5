// Whether Graph Data Science is installed.
SHOW FUNCTIONS YIELD name WHERE name = 'gds.version'
RETURN name AS row
