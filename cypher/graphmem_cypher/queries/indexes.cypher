// The indexes of graphmem and their states.
SHOW INDEXES YIELD name, state
WHERE name STARTS WITH 'graphmem_'
RETURN [name, state] AS row
