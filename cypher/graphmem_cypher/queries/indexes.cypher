// All indexes of the database, those of constraints too: name, state, labels or relationship types, properties, and kind.
SHOW INDEXES YIELD name, state, type, labelsOrTypes, properties
RETURN [name, state, labelsOrTypes, properties, type] AS row
