(
    ($q.filter.session_ids IS NULL OR e.session_id IN $q.filter.session_ids)
    AND ($q.filter.session_prefix IS NULL OR e.session_id STARTS WITH $q.filter.session_prefix)
    AND ($q.filter.speakers IS NULL OR e.speaker IN $q.filter.speakers)
    AND ($q.filter.roles IS NULL OR e.role IN $q.filter.roles)
    AND ($q.filter.sources IS NULL OR e.source IN $q.filter.sources)
    AND ($q.filter.since IS NULL OR e.occurred_at >= $q.filter.since)
    AND ($q.filter.until IS NULL OR e.occurred_at < $q.filter.until)
    AND all(c IN $q.filter.metadata WHERE c.negated <> (
        any(entry IN coalesce(e.metadata_entries, []) WHERE entry IN c.entries OR (entry STARTS WITH c.begin
            AND entry > c.above AND entry >= c.least AND entry < c.below AND entry <= c.most))
        OR (c.absent AND none(entry IN coalesce(e.metadata_entries, []) WHERE entry STARTS WITH c.key)))))
