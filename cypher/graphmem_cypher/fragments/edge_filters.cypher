// The test for null keeps the planner from beginning at these sources or targets instead of the query's anchors.
r.scope IN $q.scopes AND r.graphmem_id > $q.after
/* if sources */ AND ($q.sources IS NULL OR s.id IN $q.sources) /* end */
/* if targets */ AND ($q.targets IS NULL OR t.id IN $q.targets) /* end */
/* if touching */ AND (s.id IN $q.touching OR t.id IN $q.touching) /* end */
/* if relations */ AND r.relation IN $q.relations /* end */
/* if types */ AND type(r) IN $q.types /* end */
/* if keys */ AND [s.id, t.id, r.relation, type(r)] IN $q.keys /* end */
/* if slots */ AND [s.id, r.relation] IN $q.slots /* end */
/* if kinds */ AND coalesce(r.kind, 'state') IN $q.kinds /* end */
/* if ended_by */ AND (r.superseded_by IN $q.ended_by OR any(id IN r.ended_by WHERE id IN $q.ended_by)) /* end */
/* if text */ AND (r.fact =~ $q.text OR r.relation =~ $q.text) /* end */
/* if axis */ AND coalesce(r[$q.axis] > $q.begin AND r[$q.axis] <= $q.end,
    toString(r[$q.axis]) > toString($q.begin) AND toString(r[$q.axis]) <= toString($q.end)) /* end */
/* if active */ AND r.valid_to IS NULL AND r.expired_at IS NULL /* end */
/* if past */ AND r.superseded_by IS NULL AND coalesce(
    r.valid_from < r.valid_to AND r.valid_to <= $q.now,
    toString(r.valid_from) < toString(r.valid_to) AND toString(r.valid_to) <= toString($q.now), false) /* end */
/* include edge_is_visible */
