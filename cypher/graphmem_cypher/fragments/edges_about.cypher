// Facts of graphmem, filtered without an index: a plan made for an empty store would read the whole index per entity.
(e)-[r:/* include types */]-(:Graphmem)
    WHERE coalesce(r.graphmem_id, '') <> ''
