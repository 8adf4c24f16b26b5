// A page of the merges in which some entities were kept or merged away.
UNWIND $q.entities AS id
CALL (id) {
    MATCH (m:Merge {kept_id: id}) RETURN m
    UNION
    MATCH (m:Merge {merged_id: id}) RETURN m
}
WITH m
WHERE m:Graphmem AND ($q.ids IS NULL OR m.id IN $q.ids) AND /* include merge_filters */
/* include merge_page */
