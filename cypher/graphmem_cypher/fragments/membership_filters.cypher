($q.level IS NULL OR c.level = $q.level) AND /* include is_member */
AND ($q.communities IS NULL OR c.id IN $q.communities)
AND ($q.after_entity IS NULL OR c.id > $q.after_community
    OR (c.id = $q.after_community AND (e.id > $q.after_entity
        OR (e.id = $q.after_entity AND m.since > $q.after_since))))
