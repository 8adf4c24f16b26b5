CALL (id) {
    MATCH (:Graphmem)-[r:SEMANTIC]->(o:Graphmem)
    USING INDEX r:SEMANTIC(graphmem_source, graphmem_rank, graphmem_id)
    WHERE r.graphmem_source = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'SEMANTIC' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_source, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    MATCH (o:Graphmem)-[r:SEMANTIC]->(:Graphmem)
    USING INDEX r:SEMANTIC(graphmem_target, graphmem_rank, graphmem_id)
    WHERE r.graphmem_target = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'SEMANTIC' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_target, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    MATCH (:Graphmem)-[r:TEMPORAL]->(o:Graphmem)
    USING INDEX r:TEMPORAL(graphmem_source, graphmem_rank, graphmem_id)
    WHERE r.graphmem_source = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'TEMPORAL' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_source, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    MATCH (o:Graphmem)-[r:TEMPORAL]->(:Graphmem)
    USING INDEX r:TEMPORAL(graphmem_target, graphmem_rank, graphmem_id)
    WHERE r.graphmem_target = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'TEMPORAL' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_target, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    MATCH (:Graphmem)-[r:CAUSAL]->(o:Graphmem)
    USING INDEX r:CAUSAL(graphmem_source, graphmem_rank, graphmem_id)
    WHERE r.graphmem_source = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'CAUSAL' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_source, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    MATCH (o:Graphmem)-[r:CAUSAL]->(:Graphmem)
    USING INDEX r:CAUSAL(graphmem_target, graphmem_rank, graphmem_id)
    WHERE r.graphmem_target = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'CAUSAL' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_target, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    MATCH (:Graphmem)-[r:ENTITY]->(o:Graphmem)
    USING INDEX r:ENTITY(graphmem_source, graphmem_rank, graphmem_id)
    WHERE r.graphmem_source = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'ENTITY' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_source, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    MATCH (o:Graphmem)-[r:ENTITY]->(:Graphmem)
    USING INDEX r:ENTITY(graphmem_target, graphmem_rank, graphmem_id)
    WHERE r.graphmem_target = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'ENTITY' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_target, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    MATCH (:Graphmem)-[r:CO_OCCURRENCE]->(o:Graphmem)
    USING INDEX r:CO_OCCURRENCE(graphmem_source, graphmem_rank, graphmem_id)
    WHERE r.graphmem_source = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'CO_OCCURRENCE' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_source, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    MATCH (o:Graphmem)-[r:CO_OCCURRENCE]->(:Graphmem)
    USING INDEX r:CO_OCCURRENCE(graphmem_target, graphmem_rank, graphmem_id)
    WHERE r.graphmem_target = id AND r.graphmem_rank > -2 AND r.graphmem_id > '' AND 'CO_OCCURRENCE' IN $q.types
        /* include edge_is_visible */
    RETURN r, o ORDER BY r.graphmem_target, r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
}
