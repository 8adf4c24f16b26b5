// Kind and scope of the rows that communities, recall traces and index entries reference.
UNWIND $q.nodes AS id
MATCH (n:Graphmem {id: id}) USING INDEX SEEK n:Graphmem(id)
RETURN [CASE WHEN n:Entity THEN 'entity' WHEN n:Episode THEN 'episode' WHEN n:Community THEN 'community'
    WHEN n:Recall THEN 'recall' END, n.id, n.scope, null] AS row
UNION ALL
/* include find_edges */
RETURN ['edge', r.graphmem_id, r.scope, r.fact] AS row
