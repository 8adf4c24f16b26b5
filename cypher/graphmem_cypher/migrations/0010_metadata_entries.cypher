// Filters read the metadata of an episode from metadata_entries; graphmem_neo4j.schema fills it for the episodes that
// are there.
