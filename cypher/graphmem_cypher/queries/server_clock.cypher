// The time of the server.
RETURN toString(datetime()) AS row
