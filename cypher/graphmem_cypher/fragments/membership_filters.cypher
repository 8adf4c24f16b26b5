/* include is_member */
/* if level */ AND c.level = $q.level /* end */
AND ($q.after_entity IS NULL OR c.id > $q.after_community
    OR (c.id = $q.after_community AND (e.id > $q.after_entity
        OR (e.id = $q.after_entity AND m.since > $q.after_since))))
