// Projects the active facts between the live entities of a scope for GDS, undirected.
/* include live_edges */
/* include project */
