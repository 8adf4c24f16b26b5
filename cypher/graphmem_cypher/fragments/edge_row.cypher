[r.graphmem_id, r.scope, s.id, t.id, r.relation, type(r), r.fact, r.confidence,
 toString(r.valid_from), toString(r.valid_to), toString(r.recorded_at), toString(r.expired_at), r.superseded_by,
 r.episode_ids, r.retrieval_count, toString(r.last_retrieved_at), r.properties, r.certainty, r.kind,
 r.valid_from_assumed, toString(r.told_at), toString(r.prior_valid_to), r.end_reason,
 CASE WHEN r.ended_by IS NOT NULL THEN [r.ended_by, [time IN r.end_times | toString(time)],
    [time IN coalesce(r.ends_told_at, r.end_times) | toString(time)]] END,
 CASE WHEN r.begun_by IS NOT NULL THEN [r.begun_by, [time IN r.begin_times | toString(time)],
    [time IN r.begins_told_at | toString(time)]] END, type(r)]
