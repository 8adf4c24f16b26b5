// Texts in metadata_entries are in the order of their code points: graphmem_neo4j.server writes characters from U+FFFF
// on in another form.
