// Name, version and edition of the server.
CALL dbms.components() YIELD name, versions, edition
RETURN [name, versions[0], edition] AS row
