[e.id, e.scope, e.name, e.canonical_name, e.entity_type, e.summary, e.properties, e.confidence,
 toString(e.first_seen_at), toString(e.last_seen_at), toString(e.recorded_at), e.access_count,
 toString(e.archived_at), toString(e.valid_from), toString(e.valid_to)]
