[e.id, e.scope, e.source, e.text, e.session_id, e.role, e.speaker, e.title, toString(e.occurred_at),
 toString(e.recorded_at), e.metadata, e.external_id, toString(e.processed_at), e.attempts, e.error,
 toString(e.retry_at), toString(e.ended_at), toString(e.expires_at)]
