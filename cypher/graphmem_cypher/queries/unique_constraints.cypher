// The constraints by which values must be unique: name, labels or relationship types, and properties.
SHOW CONSTRAINTS YIELD name, type, labelsOrTypes, properties
WHERE type CONTAINS 'UNIQUENESS' OR type CONTAINS 'KEY'
RETURN [name, labelsOrTypes, properties] AS row
