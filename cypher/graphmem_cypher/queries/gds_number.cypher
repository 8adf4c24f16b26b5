// The version of Graph Data Science, where it is there.
RETURN gds.version() AS row
