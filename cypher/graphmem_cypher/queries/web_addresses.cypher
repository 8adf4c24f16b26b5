// Addresses of the server's web pages, that of Neo4j Browser among them.
SHOW SETTINGS YIELD name, value
WHERE name IN ['server.http.enabled', 'server.http.advertised_address',
    'server.https.enabled', 'server.https.advertised_address']
RETURN [name, value] AS row
