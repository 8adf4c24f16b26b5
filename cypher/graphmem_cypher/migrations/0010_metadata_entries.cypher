// Filters read the metadata of an episode from metadata_entries; graphmem_neo4j.server fills it for the episodes that
// are there.
