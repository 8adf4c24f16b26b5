// Memory that GDS needs to project a graph of some size: share of the heap, rounded up to a tenth, and as text.
CALL gds.graph.project.estimate(
    '*',
    {FACT: {type: '*', orientation: 'UNDIRECTED', properties: 'weight'}},
    {nodeCount: $q.nodes, relationshipCount: $q.relationships, nodeProperties: 'seed'}
) YIELD heapPercentageMin, requiredMemory
RETURN [heapPercentageMin, requiredMemory] AS row
