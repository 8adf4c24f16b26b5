// Ours, told in a way that no index serves: a plan made for an empty memory would read the whole index for each entity.
(e)-[r:/* include types */]-(:Graphmem)
    WHERE coalesce(r.graphmem_id, '') <> ''
