// 15 Why was this recalled
// The last traced recall whose question holds some words: where it started, what it reached, what it found. A picture.
// :param scope => 'default'
// :param query => ''
MATCH (q:Recall) WHERE q.scope = $scope AND q.id > '' AND toLower(q.query) CONTAINS toLower($query)
WITH q ORDER BY q.id DESC LIMIT 1
OPTIONAL MATCH (q)-[a:ACTIVATED]->(e:Graphmem)
OPTIONAL MATCH (q)-[f:FOUND]->(p:Graphmem)
RETURN q, a, e, f, p
