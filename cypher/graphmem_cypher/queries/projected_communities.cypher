// The communities that GDS found for the nodes of a projection.
CALL gds.graph.nodeProperty.stream($q.graph, $q.property) YIELD nodeId, propertyValue
RETURN gds.util.asNode(nodeId).id AS id, propertyValue AS community
