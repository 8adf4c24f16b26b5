// The names that queries use, before the first row has them: the server plans a query again, which takes up to seconds,
// when a name that was unknown is used for the first time, and warns of unknown names.

UNWIND [
    'access_count', 'archived_at', 'asked_at', 'attempts', 'begun_at', 'body', 'certainty', 'channel', 'claimed_until',
    'complete', 'confidence', 'created_at', 'cursor', 'detail', 'done_at', 'end_reason', 'episode_ids', 'episodes',
    'error', 'expired_at', 'external_id', 'fact', 'fingerprint', 'first_seen_at', 'hop', 'index_generation',
    'index_model', 'known', 'last_retrieved_at', 'last_seen_at', 'mark', 'metadata', 'metadata_entries', 'migration_id',
    'model', 'occurred_at', 'parent_id', 'pieces', 'prior_valid_to', 'processed_at', 'properties', 'query', 'rank',
    'recorded_at', 'relation', 'retrieval_count', 'retry_at', 'role', 'score', 'seed', 'seen_at', 'session_id', 'since',
    'source', 'speaker', 'started_at', 'state', 'strategy', 'summary', 'superseded_by', 'surface', 'target', 'text',
    'title', 'told_at', 'undone', 'until', 'updated_at', 'valid', 'valid_from', 'valid_from_assumed', 'valid_to',
    'vector', 'vectors', 'vectors_generation', 'vectors_last', 'vectors_last_position', 'vectors_model',
    'vectors_position'
] AS name
CALL db.createProperty(name);

UNWIND ['FOUND', 'IN_COMMUNITY', 'MENTIONS'] AS name
CALL db.createRelationshipType(name);
