// What the server is.
CALL dbms.components() YIELD name, versions, edition
RETURN [name, versions[0], edition] AS row
