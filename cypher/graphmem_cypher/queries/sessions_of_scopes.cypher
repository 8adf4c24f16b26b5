// The sessions of some scopes with their episodes counted; those of one id in several scopes together.
UNWIND $q.scopes AS scope
MATCH (e:Graphmem)
USING INDEX SEEK e:Graphmem(scope, session_key, id)
WHERE e.scope = scope AND e.session_key IS NOT NULL AND /* include episode_filters */
    /* if ids */ AND e.id IN $q.ids /* end */
WITH e.session_id AS session, count(e) AS episodes, min(e.occurred_at) AS first, max(e.occurred_at) AS last,
    collect(DISTINCT e.speaker) AS speakers
RETURN [session, episodes, toString(first), toString(last), speakers] AS row
