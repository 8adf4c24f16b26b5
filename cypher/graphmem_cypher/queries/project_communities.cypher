// Project the active facts between unarchived entities of a scope for GDS, undirected.
/* include live_edges */
/* include project */
