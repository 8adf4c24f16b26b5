// The version of Graph Data Science.
RETURN gds.version() AS row
